"""Items that are alike, in groups that stand for them wherever all items count. Items and groups are public."""

import numpy as np
from numpy.typing import NDArray

from dpals.kernels.elementary import exponentials, logarithms, logistic
from dpals.kernels.hashing import hashed_uniform
from dpals.kernels.logistic import ColumnGroups
from dpals.kernels.nearest import nearest
from dpals.kernels.quadrature import NODE_SHARES, NODES
from dpals.kernels.rows import row_norms

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

_N_GROUPS = 512
_OFFSET_WEIGHT = 0.5  # of a difference in log odds, where one in a factor has 1
_MOST_LIKELY = 8192  # items that decide where the centres of the groups are
_ROUNDS = 5
_LARGEST_OFFSET = 60.0


def group_items(factors: Floats, offsets: Floats) -> ColumnGroups:
    """At most 512 groups of items with odds and factors that are alike; with few items each is a group.

    Items count by how often users have them. In a group, the mean and the variance of the factors are those of items
    weighted by their odds, and there are as many items, all of the same odds, as give the same sums of odds and of
    squared odds. The last feature, of which `factors` knows nothing, is 1 for every item.
    """
    groups = np.arange(len(factors))
    if len(factors) > _N_GROUPS:
        groups = _clusters(np.column_stack([factors, _OFFSET_WEIGHT * offsets]), _chances(factors, offsets))
    n_groups = int(groups.max(initial=-1)) + 1
    odds = exponentials(np.clip(offsets, -_LARGEST_OFFSET, _LARGEST_OFFSET))

    def sums(numbers: Doubles) -> Doubles:
        return np.bincount(groups, numbers, n_groups).astype(np.float64)

    total, squares = sums(odds), sums(odds**2)
    means, variances = np.ones((n_groups, factors.shape[1] + 1)), np.zeros((n_groups, factors.shape[1] + 1))
    for k, column in enumerate(factors.T.astype(np.float64)):
        means[:, k] = sums(odds * column) / total
        variances[:, k] = sums(odds * (column - means[groups, k]) ** 2) / total
    logs = logarithms(squares / total)
    return ColumnGroups(*(part.astype(np.float32) for part in (total**2 / squares, logs, means, variances)))


def _chances(factors: Floats, offsets: Floats) -> Doubles:
    """Chance that a user has the item, over users whose vectors are standard normal."""
    leanings = row_norms(factors)[:, None] * NODES
    chances: Doubles = (logistic(offsets[:, None] + leanings) * NODE_SHARES).sum(axis=1)
    return chances


def _clusters(points: Floats, weights: Doubles) -> NDArray[np.int64]:
    """The group of each item, by a few rounds of weighted k-means on the most likely items. No group is empty."""
    likely = np.sort(np.argsort(-weights, kind="stable")[:_MOST_LIKELY])
    some, weights = np.ascontiguousarray(points[likely], np.float32), weights[likely]
    draws = logarithms(hashed_uniform(0, likely)) / weights  # the largest are a sample in proportion to the weights
    centres = some[np.sort(np.argsort(-draws, kind="stable")[:_N_GROUPS])]
    for _ in range(_ROUNDS):
        groups = nearest(some, centres)
        total = np.bincount(groups, weights, len(centres))
        members = total > 0
        for k, column in enumerate(some.T):
            centres[members, k] = np.bincount(groups, weights * column, len(centres))[members] / total[members]
    return np.unique(nearest(points, centres), return_inverse=True)[1]
