"""Which of a user's ratings take part, and with what weight. Both depend on that user alone."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpals.data.ratings import Ratings
from dpals.kernels.elementary import powers
from dpals.kernels.hashing import hashed_uniform, id_hashes
from dpals.kernels.rows import unit_rows


def on_items(ratings: Ratings, chosen: NDArray[np.bool_]) -> Ratings:
    """The ratings of the chosen items, with a catalogue of these items only."""
    kept = ratings.keep(chosen[ratings.indices])
    position = np.cumsum(chosen, dtype=np.int32) - np.int32(1)
    return replace(kept, items=ratings.items[chosen], indices=position[kept.indices], is_checked=True)


class Split(NamedTuple):
    """How each user's ratings are split into parts at random: about these fractions, by a hash with this seed."""

    fractions: tuple[float, ...]
    seed: int


class PartOfSplit(NamedTuple):
    """One of the parts of a split, counting from 0."""

    split: Split
    number: int


def split_parts(ratings: Ratings, public: Split) -> tuple[Ratings, ...]:
    """The parts. A hash of user id and item id decides, rating by rating."""
    draws = hashed_uniform(public.seed, ratings.user_hashes()[ratings.rows], id_hashes(ratings.items)[ratings.indices])
    part = np.searchsorted(np.cumsum(public.fractions)[:-1], draws, side="right")
    return tuple(ratings.keep(part == number) for number in range(len(public.fractions)))


def part_of_split(ratings: Ratings, public: PartOfSplit) -> Ratings:
    """One of the parts."""
    return split_parts(ratings, public.split)[public.number]


def share_of_users(ratings: Ratings, share: float) -> NDArray[np.bool_]:
    """About this share of the users, chosen by a hash of their ids."""
    if share >= 1:  # hashing takes long for ids that are text
        return np.ones(ratings.n_users, bool)
    return hashed_uniform(0, ratings.user_hashes()) < share


def uniform_sample(ratings: Ratings, at_most: int, seed: int = 0) -> Ratings:
    """At most `at_most` of each user's ratings, chosen by a hash of user id and item id."""
    draws = hashed_uniform(seed, ratings.user_hashes()[ratings.rows], id_hashes(ratings.items)[ratings.indices])
    return ratings.keep(_lowest(ratings.indptr, draws, at_most))


def least_counted(ratings: Ratings, counts: NDArray[np.float64], at_most: int) -> Ratings:
    """At most `at_most` of each user's ratings: those of the items with the lowest released counts."""
    return ratings.keep(_lowest(ratings.indptr, counts[ratings.indices], at_most))


def adaptive_weights(ratings: Ratings, popularity: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """Weights in proportion to popularity^-exponent, with squares that add up to 1 for each user."""
    return unit_weights(ratings, powers(np.maximum(popularity, 1.0), -exponent))


def unit_weights(ratings: Ratings, item_weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights in proportion to those of the items, with squares that add up to 1 for each user."""
    return unit_rows(ratings.indptr, ratings.indices, item_weights)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _lowest(indptr, keys, at_most):  # type: ignore[no-untyped-def]
    """Mark the entries with the lowest keys of each row; the first of equal ones."""
    chosen = np.zeros(len(keys), np.bool_)
    for i in range(len(indptr) - 1):
        order = np.argsort(keys[indptr[i] : indptr[i + 1]], kind="mergesort")
        for k in order[:at_most]:
            chosen[indptr[i] + k] = True
    return chosen
