"""What users contribute to a matrix of items by items, and to products with it."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dpals.data.population import remembered
from dpals.data.ratings import Ratings
from dpals.kernels.rows import row_combinations
from dpals.private.clipping import clip_entries, clip_rows, clip_users
from dpals.private.frank_wolfe import FrankWolfeProblem
from dpals.private.means import clipped_entries, pattern_of, per_entry, user_offsets
from dpals.private.sampling import on_items, uniform_sample
from dpals.release.contribution import Contribution, Pattern

Doubles = NDArray[np.float64]

_USERS_AT_ONCE = 4_096


class Rows(NamedTuple):
    """Rows a_i, one per user: numbers in place of some of the user's ratings."""

    ratings: Ratings
    values: Doubles


class RowsOf(NamedTuple):
    """A function of this module's kind that gives the rows of a block, what it takes, and their largest norm."""

    rows: Callable[[Ratings, Any], Rows]
    public: Any
    longest: float


class SampledRows(NamedTuple):
    """Clipped ratings of chosen items, at most so many of each user's: public."""

    chosen: NDArray[np.bool_]
    at_most: int
    mean: float
    entry_clip: float
    seed: int


@remembered
def sampled_rows(ratings: Ratings, public: SampledRows) -> Rows:
    """Ratings of a uniform sample less the mean, clipped."""
    sample = uniform_sample(on_items(ratings, public.chosen), public.at_most, public.seed)
    return Rows(sample, clipped_entries(sample, public.mean, public.entry_clip))


class ResidualRows(NamedTuple):
    """What is left of the ratings of chosen items after public offsets, clipped: public.

    With a `user_shrinkage` a user's own mean is taken off as well, which starts with so many ratings' worth of
    evidence.
    """

    offsets: Doubles
    chosen: NDArray[np.bool_]
    user_shrinkage: float | None
    entry_clip: float


def residual_rows(ratings: Ratings, public: ResidualRows) -> Rows:
    """Ratings of the chosen items less their offsets and the user's own mean, clipped."""
    residuals = np.asarray(ratings.values, np.float64) - public.offsets[ratings.indices]
    if public.user_shrinkage is not None:
        residuals -= per_entry(ratings, user_offsets(ratings, public.offsets, public.user_shrinkage))
    residuals = clip_entries(residuals, public.entry_clip)[public.chosen[ratings.indices]]
    return Rows(on_items(ratings, public.chosen), residuals)


class FrankWolfeRows(NamedTuple):
    """What a problem that is solved so far leaves of the ratings of chosen items: public."""

    problem: FrankWolfeProblem
    chosen: NDArray[np.bool_]


@remembered
def frank_wolfe_rows(ratings: Ratings, public: FrankWolfeRows) -> Rows:
    """Residuals after the steps so far, clipped."""
    _, residuals = public.problem.solve_with_residuals(ratings)
    return Rows(on_items(ratings, public.chosen), residuals[public.chosen[ratings.indices]])


def covariance_contribution(ratings: Ratings, public: RowsOf) -> tuple[Iterator[Contribution]]:
    """The rows as vectors, for sum_i a_i a_i^T, scaled down to their largest norm; some users after the others."""
    return (_dense_rows(public.rows(ratings, public.public), public.longest),)


def _dense_rows(rows: Rows, longest: float) -> Iterator[Contribution]:
    ratings, scaled = rows.ratings, rows.values.copy()
    clip_users(ratings.indptr, scaled, longest)
    matrix = csr_matrix((scaled, ratings.indices, ratings.indptr), shape=(ratings.n_users, ratings.n_items))
    for start in range(0, ratings.n_users, _USERS_AT_ONCE):
        vectors = matrix[start : start + _USERS_AT_ONCE].toarray()
        yield Contribution(Pattern.one_item(len(vectors), start), np.ones(len(vectors)), vectors)


class Products(NamedTuple):
    """Rows, the factors X that they are multiplied by, and the largest norm of a product."""

    rows: RowsOf
    factors: Doubles
    longest: float


def product_contribution(ratings: Ratings, public: Products) -> Contribution:
    """a_ij times the clipped product a_i . X, for A^T A X."""
    rows = public.rows.rows(ratings, public.rows.public)
    return Contribution(pattern_of(rows.ratings), rows.values, _products(rows, public))


def squared_length_contribution(ratings: Ratings, public: Products) -> Contribution:
    """The squared length of the clipped product a_i . X, of one column."""
    products = _products(public.rows.rows(ratings, public.rows.public), public)
    return Contribution(Pattern.one_item(len(products)), products[:, 0] ** 2)


def _products(rows: Rows, public: Products) -> Doubles:
    ratings = rows.ratings
    return clip_rows(row_combinations(ratings.indptr, ratings.indices, rows.values, public.factors), public.longest)
