"""Splitting ratings into parts to train on and parts to test on."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpals.ratings import Ratings


def split_entries(
    ratings: Ratings, fractions: tuple[float, ...] = (0.8, 0.1, 0.1), seed: int = 0
) -> tuple[Ratings, ...]:
    """Split the ratings at random, one by one, into parts of about the given fractions.

    A hash of seed, user and item decides, so a rating falls into the same part whatever other ratings there
    are. All parts keep all users and the whole catalogue, so indices mean the same in each.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=500, n_items=100, mean_ratings=25, seed=1)
    >>> train, valid, test = split_entries(ratings)
    >>> train.n_ratings + valid.n_ratings + test.n_ratings == ratings.n_ratings
    True
    """
    if not fractions or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-9:
        raise ValueError(f"fractions must be at least 0 and add up to 1, got {fractions}")
    draws = _hashed_uniform(_rows(ratings), ratings.indices, seed)
    part = np.searchsorted(np.cumsum(fractions)[:-1], draws, side="right")
    return tuple(keep_entries(ratings, part == number) for number in range(len(fractions)))


def keep_entries(ratings: Ratings, keep: NDArray[np.bool_]) -> Ratings:
    """The ratings for which `keep` is true, with the same users and items."""
    kept_before = np.concatenate([[0], np.cumsum(keep)])
    return replace(
        ratings,
        indptr=kept_before[ratings.indptr],
        indices=ratings.indices[keep],
        values=None if ratings.values is None else ratings.values[keep],
        timestamps=None if ratings.timestamps is None else ratings.timestamps[keep],
    )


def pairs(ratings: Ratings) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """The users and items of all ratings, as ids, rating by rating."""
    return ratings.users[_rows(ratings)], ratings.items[ratings.indices]


def _rows(ratings: Ratings) -> NDArray[np.int64]:
    return np.repeat(np.arange(ratings.n_users), np.diff(ratings.indptr))


def _hashed_uniform(rows: NDArray[np.int64], items: NDArray[np.int32], seed: int) -> NDArray[np.float64]:
    """Numbers in [0, 1) from three rounds of splitmix64 over seed, user and item."""
    state = np.full(len(rows), seed, np.uint64)
    for word in (np.zeros(len(rows), np.uint64), rows.astype(np.uint64), items.astype(np.uint64)):
        state = (state ^ word) + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53
