"""Simulated ratings, for when the real ones cannot be shipped.

`movielens_like` has the shape of MovieLens 10M; `paper_synthetic` is the synthetic task of the paper. The
same seed gives the same bits on the same machine, whatever the number of threads: every block of users has
a random generator of its own.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from dpals.data.film_titles import film_titles
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.kernels.threads import single_threaded_blas

__all__ = ["SyntheticTask", "movielens_like", "paper_synthetic"]

# How MovieLens 10M is imitated. The numbers were calibrated together, at full size, against the facts listed
# in tests/data/test_simulate.py: after a change of one, measure all facts again (`make test-slow`).

# Each user has FEWEST_RATINGS and a lognormal number more, with log standard deviation COUNT_SPREAD.
FEWEST_RATINGS = 20
COUNT_SPREAD = 1.27
# The item at quantile q of the catalogue (the most popular at 0) has popularity exp(-DECAY * q ** BEND).
POPULARITY_DECAY = 10.8
POPULARITY_BEND = 0.33
# Heavy users follow it less: to the power 1 - TAIL_TASTE * log(own number of ratings / mean number).
TAIL_TASTE = 0.03
# The k-th of the dimensions of taste has a standard deviation in proportion to k ** -TASTE_DECAY.
TASTE_DIMENSIONS = 48
TASTE_DECAY = 0.65
# Taste decides how users rate items, interest which ones they pick. Interest multiplies the popularity of an
# item by a lognormal factor with log standard deviation INTEREST_PULL.
INTEREST_PULL = 1.8
INTEREST_TASTE_CORRELATION = 0.5
# A rating is BEST_MEAN for the most popular item, QUALITY_SLOPE less per unit of log popularity below it, plus
# effects of user, item, taste and noise with these standard deviations.
BEST_MEAN = 3.52
QUALITY_SLOPE = 0.058
USER_SPREAD = 0.37
ITEM_SPREAD = 0.52
TASTE_SPREAD = 0.622
NOISE_SPREAD = 0.73

STARS = (0.5, 5.0)
# Entries of the paper's synthetic task have standard deviation 1. Of the 50 million with 50,000 users about
# three lie beyond this limit, and are clipped to it.
SYNTHETIC_LIMIT = 10.0
# Entries held out for testing, per training entry.
HELD_OUT = 0.1

# Users are simulated in blocks of about this many (user, item) cells.
BLOCK_CELLS = 2**21

Floats = NDArray[np.float32]
Result = TypeVar("Result")


def movielens_like(
    n_users: int = 69_878, n_items: int = 10_677, mean_ratings: float = 143, seed: int = 0, *, titles: bool = False
) -> Ratings:
    """Simulate star ratings that look like MovieLens 10M, by default at its size.

    Few items get most of the ratings, and they are the better ones. Users pick items by popularity and by
    interest, heavy users more from the tail, and rate them by taste, in 48 dimensions that matter less and
    less. So biases, factor models and item recommendation all have something to find, and about as much as
    in the real data.

    Parameters
    ----------
    n_users, n_items
        Size. Items are numbered from 0 in random order, and all of them are in the catalogue.
    mean_ratings
        Ratings per user on average. Every user has at least 20, or all items of a smaller catalogue.
    seed
        Other seeds give other users and items of the same kind.
    titles
        Give items the titles of films in place of numbers. Films of the same kind appeal to the same users.

    Returns
    -------
    Ratings
        Half stars from 0.5 to 5, without timestamps.

    Examples
    --------
    >>> movielens_like(n_users=100, n_items=500, mean_ratings=60)
    Ratings(100 users, 500 items, 6,006 ratings from 0.5 to 5)
    """
    fewest = min(FEWEST_RATINGS, n_items)
    if n_users < 1 or n_items < 1:
        raise InputError(f"need at least one user and one item, not {n_users:,} and {n_items:,}")
    if not fewest <= mean_ratings <= n_items:
        raise InputError(
            f"mean_ratings must lie between {fewest}, the fewest ratings of a user, and {n_items:,}, "
            f"the number of items, not {mean_ratings:g}"
        )
    item_seed, user_seed = SeedSequence(seed).spawn(2)
    rng = np.random.default_rng(item_seed)
    catalogue = _draw_catalogue(n_items, rng)
    counts = rng.permutation(_user_counts(n_users, n_items, mean_ratings))

    def rate(users: slice, rng: Generator) -> _Rows:
        return _rate(catalogue, counts[users], mean_ratings, rng)

    names = film_titles(catalogue.factors) if titles else None
    return _to_ratings(_map_blocks(rate, n_users, n_items, user_seed), n_items, STARS, names)


class _Catalogue(NamedTuple):
    """What the simulation knows of the items."""

    attraction: Floats
    """Log popularity, at most 0."""
    quality: Floats
    """Mean rating by users who are average in every way."""
    factors: Floats
    """One row per item; the product with a standard normal taste has variance near 1."""


def _draw_catalogue(n_items: int, rng: Generator) -> _Catalogue:
    quantile = (np.arange(n_items) + 0.5) / n_items
    attraction = rng.permutation(-POPULARITY_DECAY * quantile**POPULARITY_BEND)
    quality = BEST_MEAN + QUALITY_SLOPE * attraction + ITEM_SPREAD * rng.standard_normal(n_items)
    spectrum = np.arange(1, TASTE_DIMENSIONS + 1) ** -TASTE_DECAY
    factors = rng.standard_normal((n_items, TASTE_DIMENSIONS)) * (spectrum / np.linalg.norm(spectrum))
    return _Catalogue(*(array.astype(np.float32) for array in (attraction, quality, factors)))


def _user_counts(n_users: int, n_items: int, mean_ratings: float) -> NDArray[np.int64]:
    """Quantiles of the distribution, not draws from it, so that their mean is the one asked for."""
    from scipy.special import ndtri

    fewest = min(FEWEST_RATINGS, n_items)
    room = n_items - fewest
    spread = np.exp(COUNT_SPREAD * ndtri((np.arange(n_users) + 0.5) / n_users))

    def counts(log_scale: float) -> NDArray[np.float64]:
        extra: NDArray[np.float64] = np.exp(log_scale) * spread
        return fewest + extra * room / (extra + room)  # lognormal at first, but never beyond the catalogue

    low, high = -40.0, 60.0  # everybody has the fewest ratings, everybody rates everything
    for _ in range(60):
        middle = (low + high) / 2
        if counts(middle).mean() < mean_ratings:
            low = middle
        else:
            high = middle
    return np.rint(counts(high)).astype(np.int64)


class _Rows(NamedTuple):
    """Ratings of a block of users, as in a CSR matrix."""

    counts: NDArray[np.int64]
    items: NDArray[Any]
    values: NDArray[Any]


def _rate(catalogue: _Catalogue, counts: NDArray[np.int64], mean_ratings: float, rng: Generator) -> _Rows:
    """Let users with the given numbers of ratings pick items and rate them."""
    attraction, quality, factors = catalogue
    bias = USER_SPREAD * rng.standard_normal(len(counts), dtype=np.float32)
    taste, other = rng.standard_normal((2, len(counts), TASTE_DIMENSIONS), dtype=np.float32)
    shared = INTEREST_TASTE_CORRELATION
    interest = shared * taste + (1 - shared**2) ** 0.5 * other
    herding = (1 - TAIL_TASTE * np.log(counts / mean_ratings)).astype(np.float32)

    log_odds = herding[:, None] * attraction + (INTEREST_PULL * interest) @ factors.T
    items = _pick(log_odds, counts, rng)
    users = np.repeat(np.arange(len(counts)), counts)
    liking = np.einsum("nk,nk->n", taste[users], factors[items])
    noise = rng.standard_normal(len(items), dtype=np.float32)
    opinion = quality[items] + bias[users] + TASTE_SPREAD * liking + NOISE_SPREAD * noise
    return _Rows(counts, items, np.clip(np.rint(2 * opinion) / 2, *STARS))


def _pick(log_odds: Floats, counts: NDArray[np.int64], rng: Generator) -> NDArray[np.int32]:
    """Draw items without replacement, one after the other, each with odds in proportion to exp(log_odds).

    Every item has an alarm clock that rings at rate exp(log_odds). The first ones to ring are such a draw.
    """
    alarm = rng.standard_exponential(log_odds.shape, dtype=np.float32) * np.exp(-log_odds)
    first = [np.sort(np.argpartition(row, count - 1)[:count]) for row, count in zip(alarm, counts, strict=True)]
    return np.concatenate(first, dtype=np.int32, casting="same_kind")


@dataclass(frozen=True)
class SyntheticTask:
    """Entries of a low-rank matrix, some to learn from and some to test with. See `paper_synthetic`."""

    train: Ratings
    test: Ratings
    """Other entries of the same matrix: users and items have the same indices as in `train`."""
    user_factors: NDArray[np.float64]
    """U*, users by rank, with orthonormal columns."""
    item_factors: NDArray[np.float64]
    """V*, items by rank, with orthonormal columns."""
    scale: float
    """The matrix is ``scale * user_factors @ item_factors.T``."""


def paper_synthetic(n_users: int, n_items: int = 1000, rank: int = 5, seed: int = 0) -> SyntheticTask:
    """Simulate the synthetic task of the paper: a low-rank matrix, seen here and there, without noise.

    The matrix is U* V*ᵀ for two random matrices with orthonormal columns, scaled to entries of standard
    deviation 1. Each entry is seen independently with probability p = 20 ln(n_users) / n_items, at most 1.
    The declared rating range is 10 standard deviations either way; entries beyond it, if any, are clipped.

    Parameters
    ----------
    n_users, n_items, rank
        Size of the matrix. The paper has 5,000 to 50,000 users, 1,000 items and rank 5.
    seed
        Other seeds give other matrices.

    Returns
    -------
    SyntheticTask
        With the training entries and, on average, a tenth as many test entries, drawn at random from the
        rest. Where p exceeds 10/11 there are fewer, and none where it is 1.

    Examples
    --------
    >>> task = paper_synthetic(n_users=500, n_items=400)
    >>> task.train
    Ratings(500 users, 400 items, 62,037 ratings from -10 to 10)
    >>> task.test
    Ratings(500 users, 400 items, 6,201 ratings from -10 to 10)
    """
    if not 1 <= rank <= min(n_users, n_items):
        raise InputError(f"rank must lie between 1 and {min(n_users, n_items):,}, the shorter side, not {rank}")
    *factor_seeds, user_seed = SeedSequence(seed).spawn(3)
    with single_threaded_blas():
        user_factors, item_factors = (
            np.linalg.qr(np.random.default_rng(factor_seed).standard_normal((side, rank))).Q
            for factor_seed, side in zip(factor_seeds, (n_users, n_items), strict=True)
        )
    scale = float(np.sqrt(n_users * n_items / rank))
    seen = min(1.0, 20 * float(np.log(n_users)) / n_items)

    def observe(users: slice, rng: Generator) -> tuple[_Rows, _Rows]:
        truth = np.clip(scale * user_factors[users] @ item_factors.T, -SYNTHETIC_LIMIT, SYNTHETIC_LIMIT)
        luck = rng.random(truth.shape)
        train, test = luck < seen, (seen <= luck) & (luck < (1 + HELD_OUT) * seen)
        return _rows_where(train, truth), _rows_where(test, truth)

    blocks = _map_blocks(observe, n_users, n_items, user_seed)
    train, test = (
        _to_ratings(rows, n_items, (-SYNTHETIC_LIMIT, SYNTHETIC_LIMIT)) for rows in zip(*blocks, strict=True)
    )
    return SyntheticTask(train, test, user_factors, item_factors, scale)


def _rows_where(chosen: NDArray[np.bool_], values: NDArray[np.float64]) -> _Rows:
    return _Rows(chosen.sum(axis=1), np.nonzero(chosen)[1].astype(np.int32), values[chosen].astype(np.float32))


def _map_blocks(
    work: Callable[[slice, Generator], Result], n_users: int, n_items: int, seed: SeedSequence
) -> list[Result]:
    """Do the work on all cores, for each block of users with a generator of its own. Results are in order."""
    size = max(1, BLOCK_CELLS // n_items)
    blocks = [slice(start, min(start + size, n_users)) for start in range(0, n_users, size)]
    generators = [np.random.default_rng(child) for child in seed.spawn(len(blocks))]
    with single_threaded_blas(), ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, blocks, generators))


def _to_ratings(
    blocks: Sequence[_Rows], n_items: int, rating_range: tuple[float, float], names: list[str] | None = None
) -> Ratings:
    from scipy.sparse import csr_array

    counts, items, values = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    indptr = np.concatenate(([0], np.cumsum(counts)))
    matrix = csr_array((values, items, indptr), shape=(len(counts), n_items))
    return Ratings.from_csr(matrix, users=np.arange(matrix.shape[0]), items=names, rating_range=rating_range)
