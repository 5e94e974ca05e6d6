"""Splitting ratings into parts to train on and parts to test on."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpals.kernels.hashing import hashed_uniform, id_hashes
from dpals.ratings import Ratings


def split_entries(
    ratings: Ratings, fractions: tuple[float, ...] = (0.8, 0.1, 0.1), seed: int = 0
) -> tuple[Ratings, ...]:
    """Split the ratings at random, one by one, into parts of about the given fractions.

    A hash of seed, user id and item id decides, so a rating falls into the same part whatever other ratings
    there are. All parts keep all users and the whole catalogue, so indices mean the same in each.

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
    draws = hashed_uniform(seed, id_hashes(ratings.users)[_rows(ratings)], id_hashes(ratings.items)[ratings.indices])
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
