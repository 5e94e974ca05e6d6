"""Hits: how many targets are among the best columns of a row, each row on its own."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpals.kernels.threads import in_threads
from dpals.kernels.top_k import Floats, Sparse


def count_hits(left: Floats, right: Floats, k: int, targets: Sparse, excluded: Sparse) -> NDArray[np.int64]:
    """For each row of `left`, how many of its targets are among the k rows of `right` with the largest products.

    The result is that of looking them up in `top_k`, where the first of equal products wins. A row's count depends on
    that row alone, to the last bit: there is no product over several rows, whose rounding could depend on all of them.

    Parameters
    ----------
    left, right
        Users and items, with as many columns each.
    k
        How many rows of `right` count as the best.
    targets, excluded
        Pairs of a row of `left` and a row of `right`: those to look for, and those that do not count.

    Examples
    --------
    >>> users, items = np.array([[1.0], [-1.0]], np.float32), np.array([[3.0], [5.0], [4.0]], np.float32)
    >>> targets = np.array([0, 2, 3]), np.array([1, 2, 1], np.int32)
    >>> nothing = np.zeros(3, np.int64), np.zeros(0, np.int32)
    >>> count_hits(users, items, 1, targets, nothing)
    array([1, 0])
    """
    hits = np.zeros(len(left), np.int64)
    columns = np.ascontiguousarray(right.T)
    in_threads(lambda start, stop: _count(left, columns, k, *targets, *excluded, start, stop, hits), targets[0])
    return hits


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _count(left, columns, k, indptr, indices, excluded_indptr, excluded_indices, start, stop, hits):  # type: ignore[no-untyped-def]
    scores = np.empty(columns.shape[1], np.float32)
    for row in range(start, stop):
        if indptr[row] == indptr[row + 1]:
            continue
        scores[:] = 0
        for part in range(len(columns)):
            weight = left[row, part]
            for position in range(len(scores)):
                scores[position] += weight * columns[part, position]
        for entry in range(excluded_indptr[row], excluded_indptr[row + 1]):
            scores[excluded_indices[entry]] = -np.inf
        for entry in range(indptr[row], indptr[row + 1]):
            target = indices[entry]
            better = 0
            for position in range(target):
                better += scores[position] >= scores[target]
            for position in range(target + 1, len(scores)):
                better += scores[position] > scores[target]
            hits[row] += better < k
