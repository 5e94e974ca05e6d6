"""What users contribute to the scales of ratings: how far ratings lie from the mean, from their own, from a fit."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpals.data.ratings import Ratings
from dpals.kernels.rows import entry_norms
from dpals.private.means import per_entry, user_offsets
from dpals.release.contribution import Contribution, Pattern

Doubles = NDArray[np.float64]

MOST_SPREAD = 5.0
"""Variances within a user's ratings count up to this many squares of the unit."""
MOST_DEVIATION = 6.0
"""The same for squared distances of a user's mean from the mean of all."""
LARGEST_GAIN = 0.3
"""The gain of a user's fit counts up to this many squares of the unit; most are smaller."""
_FULL_HISTORY = 20  # users with this many ratings count half in the comparison of fits


class Distances(NamedTuple):
    """The mean of all ratings, the largest possible distance from it, and the number of bins for distances."""

    mean: float
    largest: float
    n_bins: int


def distance_contribution(ratings: Ratings, public: Distances) -> Contribution:
    """1 in the bin of the user's root mean square distance from the mean. Norm at most 1.

    Bin k is for distances from 2^-(k+1)/2 to 2^-k/2 of the largest; the last one also for smaller ones.
    """
    counts, n_users = np.diff(ratings.indptr), ratings.n_users
    distances = entry_norms(ratings.indptr, np.asarray(ratings.values, np.float64) - public.mean) / public.largest
    shares = np.maximum(distances**2 / np.maximum(counts, 1), np.ldexp(1.0, -public.n_bins))
    bins = np.clip(-np.frexp(shares)[1], 0, public.n_bins - 1).astype(np.int32)
    return Contribution(Pattern(np.arange(n_users + 1), bins, public.n_bins), (counts > 0).astype(np.float64))


class Centre(NamedTuple):
    """What is expected of a rating of each item, and the unit for distances from it."""

    expected: Doubles
    unit: float


def spread_contribution(ratings: Ratings, public: Centre) -> Contribution:
    """Four numbers between 0 and 1, with norm at most 2, for the variances within and between users.

    With n ratings that lie d above what is expected on average, and squared distances from there that add up to r, they
    are r / m and (n - 1) / m, n d^2 / m and n / m, where m is n or at least 2. The first and the third are in units of
    the largest that count. So expectations are the noise variance times the second number, and the variance of users'
    means times the fourth, plus the noise variance times the difference between the fourth and the second.
    """
    counts = np.diff(ratings.indptr)
    deviations = user_offsets(ratings, public.expected, shrinkage=0.0)
    residuals = np.asarray(ratings.values, np.float64) - public.expected[ratings.indices]
    squares = (entry_norms(ratings.indptr, residuals - per_entry(ratings, deviations)) / public.unit) ** 2
    deviations = deviations / public.unit
    at_least = np.maximum(counts, 2)
    vectors = [
        np.minimum(squares / at_least / MOST_SPREAD, 1.0),
        np.maximum(counts - 1, 0) / at_least,
        np.minimum(counts * deviations**2 / at_least / MOST_DEVIATION, 1.0),
        counts / at_least,
    ]
    return Contribution(Pattern.one_item(ratings.n_users), np.ones(ratings.n_users), np.column_stack(vectors))


def centre_contribution(ratings: Ratings, public: Centre) -> Contribution:
    """How far the user's ratings lie above what is expected, cut to one unit, and 1. Norm at most sqrt(2)."""
    counts = np.diff(ratings.indptr)
    deviations = user_offsets(ratings, public.expected, shrinkage=0.0)
    vectors = np.column_stack([np.clip(deviations / public.unit, -1.0, 1.0), np.ones(len(counts))])
    return Contribution(Pattern.one_item(ratings.n_users), (counts > 0).astype(np.float64), vectors)


class Fits(NamedTuple):
    """Two fits to the same users' ratings, one with vectors and biases and one with biases alone.

    For each user and fit, the sum of squared residuals and how many parameters the fit has in effect. And the user's
    response: how far what the user contributes to each item would follow a rise of the rating, added up over the items,
    as a share of the largest weight of a user.
    """

    counts: NDArray[np.int64]
    squares: Doubles
    parameters: Doubles
    squares_alone: Doubles
    parameters_alone: Doubles
    responses: Doubles


class FitUnits(NamedTuple):
    """The unit of ratings, and what multiplies the error of a fit with vectors.

    This penalty is there because the items' vectors were fitted to the same ratings.
    """

    unit: float
    penalty: float


def fit_contribution(fits: Fits, public: FitUnits) -> Contribution:
    """Four numbers, with norm at most 2: gain of the vectors, variance around the fit, degrees of freedom, response.

    The gain, between -1 and 1, is that in the generalised cross-validation error, in units of the largest that counts.
    """
    unit, penalty = public
    square = unit * unit
    at_least = np.maximum(fits.counts, 2)
    error = _cross_validation(fits.counts, fits.squares, fits.parameters) * penalty
    alone = _cross_validation(fits.counts, fits.squares_alone, fits.parameters_alone)
    vectors = [
        np.clip((alone - error) / (LARGEST_GAIN * square), -1.0, 1.0) * fits.counts / (fits.counts + _FULL_HISTORY),
        np.minimum(fits.squares / at_least / (MOST_SPREAD * square), 1.0),
        np.clip((fits.counts - fits.parameters) / at_least, 0.0, 1.0),
        np.clip(fits.responses, 0.0, 1.0),
    ]
    return Contribution(Pattern.one_item(len(at_least)), np.ones(len(at_least)), np.column_stack(vectors))


def _cross_validation(counts: NDArray[np.int64], squares: Doubles, parameters: Doubles) -> Doubles:
    """Generalised cross-validation: squared error to expect for a rating that the fit was not given."""
    freedom = np.maximum(counts - parameters, 0.1 * np.maximum(counts, 2))
    error: Doubles = counts * squares / freedom**2
    return error
