"""What users contribute to means and biases; and the user's own mean, which never leaves the user."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpals.data.ratings import Ratings
from dpals.kernels.rows import row_sums
from dpals.private.clipping import clip_entries, clip_users
from dpals.release.contribution import Contribution, Pattern

FloatArray = NDArray[np.float64]


def pattern_of(ratings: Ratings) -> Pattern:
    """Which items each user rated."""
    return Pattern(ratings.indptr, ratings.indices, ratings.n_items)


def per_entry(ratings: Ratings, per_user: FloatArray) -> FloatArray:
    """Repeat one number per user for each of the user's ratings."""
    return np.repeat(per_user, np.diff(ratings.indptr))


def user_offsets(ratings: Ratings, item_values: FloatArray, shrinkage: float) -> FloatArray:
    """How far each user's ratings lie above the items' values on average, shrunk toward 0.

    Each number is computed from one user's ratings and public values. It belongs to that user.
    """
    counts = np.diff(ratings.indptr)
    residuals = np.asarray(ratings.values, np.float64) - item_values[ratings.indices]
    return row_sums(ratings.indptr, residuals) / np.maximum(counts + shrinkage, 1e-12)


def user_means(ratings: Ratings, otherwise: float) -> NDArray[np.float32]:
    """Mean of each user's own ratings, `otherwise` for users without any; 0 for implicit feedback."""
    if ratings.values is None:
        return np.zeros(ratings.n_users, np.float32)
    counts = np.diff(ratings.indptr)
    sums = row_sums(ratings.indptr, ratings.values)
    return np.where(counts > 0, sums / np.maximum(counts, 1), otherwise).astype(np.float32)


def mean_contribution(ratings: Ratings, public: None = None) -> Contribution:  # noqa: ARG001
    """Each user's mean less the middle of the rating range, and half the range, which counts the users with ratings.

    The second number is as large as the first can be, so the norm is at most half the range times sqrt(2).
    """
    assert ratings.rating_range is not None
    low, high = ratings.rating_range
    middle = (low + high) / 2
    means = middle + user_offsets(ratings, np.full(ratings.n_items, middle), shrinkage=0.0)
    vectors = np.column_stack([means - middle, np.full(ratings.n_users, (high - low) / 2)])
    has_ratings = (np.diff(ratings.indptr) > 0).astype(np.float64)
    return Contribution(Pattern.one_item(ratings.n_users), has_ratings, vectors)


def clipped_entries(ratings: Ratings, mean: float, largest: float) -> FloatArray:
    """Ratings less the mean, clipped to [-largest, largest]; ones for implicit feedback."""
    if ratings.values is None:
        return np.ones(ratings.n_ratings)
    return clip_entries(ratings.values - mean, largest)


def equal_weights(ratings: Ratings) -> FloatArray:
    """The same weight on each of a user's ratings, with squares that add up to 1."""
    counts = np.diff(ratings.indptr)
    return per_entry(ratings, 1 / np.sqrt(np.maximum(counts, 1)))


def weight_contribution(ratings: Ratings, public: None = None) -> Contribution:  # noqa: ARG001
    """The weights of the users' ratings: their sums say how much is known about each item. Norm at most 1."""
    return Contribution(pattern_of(ratings), equal_weights(ratings))


class MeanAndBound(NamedTuple):
    """What residuals are taken from, and their largest norm for a user."""

    mean: float
    bound: float


def residual_contribution(ratings: Ratings, public: MeanAndBound) -> Contribution:
    """Weighted distances of the ratings from the mean, scaled down for users for whom their norm exceeds the bound."""
    residuals = equal_weights(ratings) * (np.asarray(ratings.values, np.float64) - public.mean)
    clip_users(ratings.indptr, residuals, public.bound)
    return Contribution(pattern_of(ratings), residuals)
