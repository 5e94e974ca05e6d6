"""Simulated data for the audit: users who are odd in many ways, and a data set so small that each of them matters."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.kernels.hashing import hashed_uniform
from dpals.methods.base.estimator import PrivateEstimator

RANGE = (0.5, 5.0)
CATALOGUE_SIZES = (40, 200, 1000, 5000)
"""Catalogue sizes to try: methods with a large rank, for instance, need many items."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as they come from outside, some of them repeated. Users and items are numbers, items below `n_items`."""

    users: NDArray[np.int64]
    items: NDArray[np.int64]
    values: NDArray[np.float64] | None
    n_items: int

    def ratings(self, keep: NDArray[np.bool_] | slice = slice(None), with_names: bool = False) -> Ratings:
        """The rows to keep as `Ratings`. With names, user ids are text that sorts in the same order."""
        rated: dict[str, Any] = {}
        if self.values is not None:
            rated = {"values": self.values[keep], "rating_range": RANGE}
        users: Any = self.users[keep]
        if with_names:
            users = np.char.add("user ", np.char.zfill(users.astype(str), 9))
        return Ratings.from_arrays(users, self.items[keep], **rated, catalogue=range(self.n_items))


def odd_users(n_users: int, n_items: int, implicit: bool, seed: int = 0, busiest: float = 1.0) -> Rows:
    """Users with very many, very few, extreme and repeated ratings, so that each of them can matter.

    Some items have a single user. So have the highest rating and the lowest, the only one that is not a whole number.
    One row in twenty occurs a second time, with another rating. The most active users rate `busiest` of the items.
    """
    user, item = np.arange(n_users)[:, None], np.arange(n_items)[None, :]
    activity = busiest * hashed_uniform(seed, user, np.array([[-1]])) ** 2
    users, items = np.nonzero(hashed_uniform(seed, user, item) < np.maximum(activity, 1.5 / n_items))
    again = hashed_uniform(seed + 1, users, items) < 0.05
    users, items = (np.concatenate([column, column[again]]) for column in (users, items))
    values = np.floor(1 + 4 * hashed_uniform(seed + 2, np.arange(len(users))))
    for user_id, value in zip(np.unique(users), RANGE, strict=False):
        values[users == user_id] = value
    return Rows(users, items, None if implicit else values, n_items)


def four_users(n_items: int, implicit: bool) -> Rows:
    """Four users with two ratings each, all different.

    Removing one changes minimum, maximum, median and number of users visibly: what depends on them is seen here.
    """
    values = np.array([0.5, 1.0, 2.0, 2.5, 3.5, 4.0, 4.5, 5.0])
    return Rows(np.repeat(np.arange(4), 2), np.arange(8) % n_items, None if implicit else values, n_items)


def accepts_ratings(estimator: PrivateEstimator) -> bool:
    """Whether the method takes ratings; if not, it takes implicit feedback."""
    try:
        smallest_catalogue(estimator, lambda size: odd_users(10, size, implicit=False).ratings())
    except InputError:
        return False
    return True


def smallest_catalogue(estimator: PrivateEstimator, make: Callable[[int], Ratings]) -> int:
    """The smallest catalogue with which the method accepts the data; the method's own error where none will do."""
    for n_items in CATALOGUE_SIZES:
        try:
            estimator.check(make(n_items))
        except InputError:
            if n_items == CATALOGUE_SIZES[-1]:
                raise
        else:
            return n_items
    raise AssertionError
