"""Splitting ratings into parts to train on and parts to test on, and the usual restrictions before that.

All of it looks at private data without noise: it is for the owner's own evaluation. A hash of seed and ids takes
every decision that should be random. So what becomes of a user's ratings does not depend on who else is in the data;
except in `split_users`, which holds out a given number of users.
"""

from dataclasses import dataclass, replace
from typing import overload

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import PartOfPopulation, Population
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.kernels.hashing import hashed_uniform, id_hashes
from dpals.private.sampling import PartOfSplit, Split, on_items, part_of_split, split_parts

_DRAW_OF_USERS, _DRAW_OF_TARGETS = np.array(1), np.array(2)


@overload
def split_entries(ratings: Ratings, fractions: tuple[float, ...] = ..., seed: int = ...) -> tuple[Ratings, ...]: ...
@overload
def split_entries(
    ratings: Population, fractions: tuple[float, ...] = ..., seed: int = ...
) -> tuple[Population, ...]: ...
def split_entries(
    ratings: Population, fractions: tuple[float, ...] = (0.8, 0.1, 0.1), seed: int = 0
) -> tuple[Population, ...]:
    """Split the ratings at random, one by one, into parts of about the given fractions.

    A hash of seed, user id and item id decides, so a rating falls into the same part whatever other ratings
    there are. All parts keep all users and the whole catalogue, so indices mean the same in each. Parts of users in
    blocks are not copied: they are chosen anew whenever a block is opened.

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
    split = Split(tuple(fractions), seed)
    if isinstance(ratings, Ratings):
        return split_parts(ratings, split)
    parts = [PartOfSplit(split, number) for number in range(len(fractions))]
    return tuple(PartOfPopulation(ratings, part_of_split, part) for part in parts)


@dataclass(frozen=True)
class HeldOutUsers:
    """Users to test on: what is known about them, and what is to be found out."""

    history: Ratings
    """What the model may see of them."""
    target: Ratings
    """What it should recommend: other items of the same users, in the same order of users and items."""


@dataclass(frozen=True)
class UserSplit:
    """What to train on and which users to test on, all parts with the same catalogue."""

    train: Ratings
    validation: HeldOutUsers
    test: HeldOutUsers


def split_users(
    ratings: Ratings,
    held_out: int,
    *,
    validation_share: float = 0.5,
    target_share: float = 0.2,
    train_items_only: bool = False,
    seed: int = 0,
) -> UserSplit:
    """Hold out users at random and split what is known about each into a history and a target.

    The protocol of Liang et al. (2018), which the paper follows for MovieLens 20M with 20,000 users held out, half
    for validation and half for testing.

    Parameters
    ----------
    held_out
        Number of users to hold out.
    validation_share
        The part of them that is for validation, rounded down; the others are for testing.
    target_share
        The part of each held-out user's ratings that is the target, rounded down, drawn at random. A user with
        few ratings may have none there, and then does not count for the metrics.
    train_items_only
        Leave out items that no user in the training part has, as Liang et al. did, before histories and targets
        are split. The catalogue is then taken from the data, and says so.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=500, n_items=100, mean_ratings=25, seed=1)
    >>> split = split_users(ratings, held_out=200)
    >>> split.train.n_users, split.validation.history.n_users, split.test.target.n_users
    (300, 100, 100)
    >>> held_out = split.test.history.n_ratings + split.test.target.n_ratings
    >>> round(split.test.target.n_ratings / held_out, 1)
    0.2
    """
    if not 0 <= held_out < ratings.n_users:
        raise InputError(
            f"{held_out:,} users to hold out: there must be more than that, and there are {ratings.n_users:,}"
        )
    if not (0 <= validation_share <= 1 and 0 <= target_share <= 1):
        raise ValueError(f"shares lie between 0 and 1, not {validation_share} and {target_share}")
    draws = hashed_uniform(seed, ratings.user_hashes(), _DRAW_OF_USERS)
    place = np.empty(ratings.n_users, np.int64)
    place[np.argsort(draws, kind="stable")] = np.arange(ratings.n_users)
    n_validation = _rounded_down(held_out * validation_share)
    if train_items_only:
        trained = ratings.take_users(place >= held_out)
        ratings = keep_items(ratings, np.bincount(trained.indices, minlength=ratings.n_items) > 0)
    return UserSplit(
        train=ratings.take_users(place >= held_out),
        validation=_history_and_target(ratings.take_users(place < n_validation), target_share, seed),
        test=_history_and_target(ratings.take_users((place >= n_validation) & (place < held_out)), target_share, seed),
    )


def _history_and_target(ratings: Ratings, share: float, seed: int) -> HeldOutUsers:
    users, items = ratings.user_hashes()[ratings.rows], id_hashes(ratings.items)[ratings.indices]
    order = np.lexsort((hashed_uniform(seed, users, items, _DRAW_OF_TARGETS), ratings.rows))
    place = np.empty(ratings.n_ratings, np.int64)
    place[order] = np.arange(ratings.n_ratings) - ratings.indptr[ratings.rows]
    is_target = place < _rounded_down(np.diff(ratings.indptr) * share)[ratings.rows]
    return HeldOutUsers(history=ratings.keep(~is_target), target=ratings.keep(is_target))


def liked(ratings: Ratings, threshold: float = 4.0, min_items: int = 5) -> Ratings:
    """Ratings turned into implicit feedback: what users rated `threshold` or more.

    Users with fewer than `min_items` such ratings are left out; the catalogue stays. With the defaults this is
    what Liang et al. (2018), and the paper, make of MovieLens 20M.

    Examples
    --------
    >>> ratings = Ratings.from_arrays(["ann", "ann", "bob"], [1, 2, 2], [5, 4, 3.5], rating_range=(0.5, 5))
    >>> liked(ratings, min_items=2)
    Ratings(1 user, 2 items, 2 implicit pairs)
    """
    if ratings.values is None or ratings.rating_range is None:
        raise InputError("this is implicit feedback already: there are no ratings to compare with a threshold")
    if not threshold <= ratings.rating_range[1]:
        raise InputError(f"no rating reaches {threshold}: the rating range is {ratings.rating_range}")
    high = ratings.keep(ratings.values >= np.float32(threshold))
    return replace(high.take_users(np.diff(high.indptr) >= min_items), values=None, rating_range=None)


def top_items(ratings: Ratings, n: int) -> Ratings:
    """Restrict the catalogue to the n items with the most ratings, and leave out users without any of them.

    Items keep their order; among equals the first ones stay. The choice is made from the data and not protected
    by any noise: by using the result you declare these n items public. `catalogue_declared` is therefore False,
    and `public_facts` says so.

    Examples
    --------
    >>> ratings = Ratings.from_arrays(["ann", "ann", "bob", "eve"], ["tea", "rum", "tea", "gin"])
    >>> top_items(ratings, 1)
    Ratings(2 users, 1 item, 2 implicit pairs)
    """
    if not 1 <= n <= ratings.n_items:
        raise InputError(f"n must lie between 1 and the number of items, {ratings.n_items:,}, not {n}")
    counts = np.bincount(ratings.indices, minlength=ratings.n_items)
    chosen = np.zeros(ratings.n_items, bool)
    chosen[np.argsort(-counts, kind="stable")[:n]] = True
    restricted = keep_items(ratings, chosen)
    return restricted.take_users(np.diff(restricted.indptr) > 0)


def keep_items(ratings: Ratings, chosen: NDArray[np.bool_]) -> Ratings:
    """The items for which `chosen` is true and their ratings, with the same users.

    The result has `catalogue_declared` False, because the choice may come from the data.
    """
    return replace(on_items(ratings, chosen), catalogue_declared=False)


def pairs(ratings: Ratings) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """The users and items of all ratings, as ids, rating by rating."""
    return ratings.users[ratings.rows], ratings.items[ratings.indices]


def _rounded_down(number: NDArray[np.float64] | float) -> NDArray[np.int64]:
    """Whole numbers, where a product that is whole but for rounding, such as 0.29 * 100, counts as whole."""
    return np.floor(np.asarray(number) + 1e-9).astype(np.int64)
