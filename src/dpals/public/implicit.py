"""From released sums to log odds: the public half of PooledDPALS for implicit feedback."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpals.kernels.quadrature import NODE_SHARES, NODES

Doubles = NDArray[np.float64]

_LARGEST_RATE = 0.9  # no item is assumed to be with more than this share of the users
_ROUNDS = 10
_CELLS = 32.0  # in a unit of log rates and of lengths of factors


@dataclass(frozen=True, eq=False)
class Activity:
    """How many items users have: the distribution over groups of users with about the same number.

    Parameters
    ----------
    counts
        Number of items of a user of the group.
    shares
        Share of the group among all users.
    n_users
        Number of all users.
    """

    counts: Doubles
    shares: Doubles
    n_users: float

    @staticmethod
    def n_groups(n_items: int) -> int:
        """Two groups for each doubling of the number of items."""
        return int(np.floor(2 * np.log2(max(n_items, 1)))) + 1

    @classmethod
    def of(cls, released: Doubles, noise: float) -> "Activity":
        """From the released sizes of the groups. Groups that do not rise above the noise count as empty.

        Examples
        --------
        >>> Activity.of(np.array([0.4, -1.0, 0.2, 90.0, 30.0]), noise=1.0)
        Activity(counts=array([3.36358566, 4.75682846]), shares=array([0.75, 0.25]), n_users=120.0)
        """
        sizes = np.where(released > 3 * noise, released, 0.0)
        if not sizes.any():
            sizes[np.argmax(released)] = 1.0
        counts: Doubles = 2 ** ((np.arange(len(released)) + 0.5) / 2)
        return cls(counts[sizes > 0], sizes[sizes > 0] / sizes.sum(), float(sizes.sum()))

    def rates(self, popularity: Doubles) -> Doubles:
        """Share of the users who have an item, for items of these relative popularities."""
        rates: Doubles = np.minimum(popularity / popularity.sum() * float(self.counts @ self.shares), _LARGEST_RATE)
        return rates


def calibrated(rates: Doubles, lengths: Doubles, activity: Activity) -> tuple[Doubles, Doubles]:
    """Offsets for which users have the items at these rates, and the dispersion of the items.

    A user has item j with log odds b + o_j + t, where t is normal with standard deviation `lengths[j]` and b depends
    on the user's group. Nearly everyone inclined to a very popular item has it already, so the users who have it differ
    less from others than its factors say: by the index of dispersion E[p (1 - p)] / E[p], where p is the chance that a
    user has the item. That is the second result.
    """
    # Items that are alike are calibrated once: there may be a million, and what differs is known to first order.
    alike, places, sizes = _alike(np.column_stack([np.log(rates), lengths]))
    logs, leanings = alike[:, 0], alike[:, 1:] * NODES
    # Means over a normal t by quadrature: one row per group of users, one column per item, one layer per node.
    offsets = logs - np.minimum(alike[:, 1], 2.0) ** 2 / 2
    shifts = np.log(activity.counts / (np.exp(logs) @ sizes))
    for _ in range(_ROUNDS):
        of_groups = _chances(offsets, shifts, leanings) @ NODE_SHARES
        offsets = offsets + np.clip(logs - np.log(activity.shares @ of_groups), -2, 2)
        shifts = shifts + np.clip(np.log(activity.counts / (of_groups @ sizes)), -1, 1)
    chances = _chances(offsets, shifts, leanings)
    variances = activity.shares @ ((chances * (1 - chances)) @ NODE_SHARES)
    dispersion = variances / (activity.shares @ (chances @ NODE_SHARES))
    between = np.log(rates) - logs[places] - (lengths**2 - alike[places, 1] ** 2) / 2
    return offsets[places] + between, dispersion[places]


def _alike(numbers: Doubles) -> tuple[Doubles, NDArray[np.int64], Doubles]:
    """The different rows of numbers, rounded to a fraction, which of these each row is, and how many are the same."""
    rounded = np.round(numbers * _CELLS)
    least = rounded.min(axis=0)
    span = rounded[:, 1].max() - least[1] + 1
    cells, places, sizes = np.unique(
        (rounded[:, 0] - least[0]) * span + rounded[:, 1] - least[1], return_inverse=True, return_counts=True
    )
    first, second = np.divmod(cells, span)
    return np.column_stack([first + least[0], second + least[1]]) / _CELLS, places, sizes.astype(np.float64)


def _chances(offsets: Doubles, shifts: Doubles, leanings: Doubles) -> Doubles:
    chances: Doubles = expit(shifts[:, None, None] + offsets[:, None] + leanings)
    return chances
