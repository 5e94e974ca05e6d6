"""The user half of a step: each user's vector from the user's own data and public item factors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpals.data.population import remembered
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.kernels.elementary import powers
from dpals.kernels.least_squares import solve_rows
from dpals.kernels.logistic import ColumnGroups, solve_logistic
from dpals.kernels.rows import entry_products, gram_matrix, row_combinations
from dpals.private.item_groups import group_items

Floats = NDArray[np.float32]

SHORT_HISTORY = 20.0
"""Items of a user that say half of what a long history says about the user."""
_ACTIVITY_RIDGE = 1e-3  # a user's number of items is known, so the ridge is for numerical safety only


def histories_of(ratings: Ratings, features: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the user's n items say about the user, whatever the ratings: the sum of their features over n + 20.

    A mean of few features says little, and is drawn toward 0.
    """
    sums = row_combinations(ratings.indptr, ratings.indices, np.ones(ratings.n_ratings), features)
    result: NDArray[np.float64] = sums / (np.diff(ratings.indptr) + SHORT_HISTORY)[:, None]
    return result


@dataclass(frozen=True, eq=False)
class LeastSquaresProblem:
    """The least-squares problem that gives a user's vector, except for the user's ratings.

    For user i with n_i ratings: minimise sum_j (M_ij - offset_j - x . f_j)^2 + d . base d + ridge * n_i^exponent |d|^2,
    where d is x less what is expected from the user's history, by default 0.
    Everything here is public: nothing is computed from more than one user without the mechanism.

    Parameters
    ----------
    features
        f_j, one row per item.
    offsets
        What is subtracted from a rating of item j before the fit.
    ridge, exponent
        lambda / Z and nu of the paper.
    base
        Symmetric matrix added for every user: lambda_0 times the sum of f_j f_j^T, ridges of biases.
    rank
        Number of leading coordinates, those of the factors, that `ridge` applies to.
    history
        y_j, one row per item, whose `histories_of` are the vectors expected of the users. None for 0.
    """

    features: Floats
    offsets: Floats
    ridge: float
    exponent: float
    base: Floats
    rank: int
    history: NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls,
        factors: ArrayLike,
        biases: ArrayLike,
        mean: float,
        ridge: float,
        *,
        history: ArrayLike | None = None,
        bias_ridge: float | None = None,
        exponent: float = 0.0,
        unseen_weight: float = 0.0,
    ) -> "LeastSquaresProblem":
        """From item factors, item biases and the global mean, in single precision.

        With a `bias_ridge` users have a bias, the last coordinate. `unseen_weight` is lambda_0.
        """
        factors, biases = _single(factors), _single(biases)
        rank = factors.shape[1]
        features = factors if bias_ridge is None else np.column_stack([factors, np.ones(len(factors), np.float32)])
        base = np.zeros((features.shape[1],) * 2, np.float32)
        if unseen_weight:
            base[:rank, :rank] = unseen_weight * gram_matrix(factors.astype(np.float64))
        if bias_ridge is not None:
            base[-1, -1] = bias_ridge
        offsets = (float(mean) + biases).astype(np.float32)
        known = None if history is None else _single(history).astype(np.float64)
        return cls(np.ascontiguousarray(features), offsets, ridge, exponent, base, rank, known)

    def targets(self, ratings: Ratings) -> Floats:
        """What is fitted, rating by rating: the rating, or 1 for implicit feedback, less the item's offset."""
        targets = self.offsets[ratings.indices]
        return np.subtract(1.0 if ratings.values is None else ratings.values, targets, out=targets)

    def solve(
        self,
        ratings: Ratings,
        threads: int | None = None,
        inverses: Floats | None = None,
        inverted: NDArray[np.bool_] | None = None,
    ) -> Floats:
        """One vector per user; zero for users without ratings. Inverses are as in `solve_rows`."""
        counts = np.diff(ratings.indptr)
        ridges = (self.ridge * powers(np.maximum(counts, 1), self.exponent)).astype(np.float32)
        expected = expected_vectors(ratings, self)
        targets = self.targets(ratings) if expected is None else self.residuals(ratings, expected)
        solved = solve_rows(
            ratings.indptr,
            ratings.indices,
            targets,
            self.features,
            ridges,
            self.base,
            ridged=self.rank,
            inverses=inverses,
            inverted=inverted,
            threads=threads,
        )
        return solved if expected is None else solved + expected

    def residuals(self, ratings: Ratings, solved: Floats) -> Floats:
        """What the users' vectors leave of the targets, rating by rating."""
        fitted = entry_products(ratings.indptr, ratings.indices, solved, self.features)
        return np.subtract(self.targets(ratings), fitted, out=fitted)


@remembered
def expected_vectors(ratings: Ratings, public: LeastSquaresProblem) -> Floats | None:
    """What is expected of the users' vectors, from which items they rated; None for 0."""
    return None if public.history is None else histories_of(ratings, public.history).astype(np.float32)


@dataclass(frozen=True, eq=False)
class LogisticProblem:
    """The logistic regression that gives a user's vector from implicit feedback, except for the user's items.

    User i has item j with log odds offset_j + x . f_j. x is normal with variance 1 in every direction but the last,
    which says how many items the user has. The solution is the most likely x.

    Parameters
    ----------
    features
        f_j, one row per item; 1 at the end.
    offsets
        Log odds of the item for an average user.
    groups
        The items in groups, which stand for all items that the user might have.
    """

    features: Floats
    offsets: Floats
    groups: ColumnGroups
    ridge: float = 1.0

    @classmethod
    def of(cls, factors: ArrayLike, offsets: ArrayLike) -> "LogisticProblem":
        """For items with these factors and log odds for an average user."""
        factors, offsets = _single(factors), _single(offsets)
        features = np.column_stack([factors, np.ones(len(factors), np.float32)])
        return cls(np.ascontiguousarray(features, np.float32), offsets, group_items(factors, offsets))

    @property
    def rank(self) -> int:
        """Number of leading coordinates, those of the factors."""
        return int(self.features.shape[1]) - 1

    def solve(
        self,
        ratings: Ratings,
        threads: int | None = None,
        inverses: Floats | None = None,
        inverted: NDArray[np.bool_] | None = None,
    ) -> Floats:
        """One vector per user; zero for users without items. Inverses are as in `solve_logistic`."""
        base = np.eye(self.rank + 1, dtype=np.float32)
        base[-1, -1] = _ACTIVITY_RIDGE
        return solve_logistic(
            ratings.indptr,
            ratings.indices,
            self.features,
            self.groups,
            base,
            ridged=self.rank,
            inverses=inverses,
            inverted=inverted,
            threads=threads,
        )

    def residuals(self, ratings: Ratings, solved: Floats) -> Floats:  # noqa: ARG002, one interface for both problems
        """1 for every item: an item's moments are the sum of the vectors of the users who have it."""
        return np.ones(ratings.n_ratings, np.float32)


def _single(numbers: ArrayLike) -> Floats:
    """An array in single precision; an error where training has left it without finite numbers."""
    array = np.ascontiguousarray(numbers, np.float32)
    if not np.isfinite(array).all():
        raise InputError("item factors and biases must be finite: training diverged")
    return array
