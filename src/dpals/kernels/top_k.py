"""The best columns of each row of a product of two matrices, without ever holding the whole product."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpals.kernels.half_step import in_threads

Floats = NDArray[np.float32]
Sparse = tuple[NDArray[np.int64], NDArray[np.int32]]
"""indptr and indices of a sparse matrix whose entries have no values."""

_CELLS_AT_ONCE = 1 << 21
"""Scores that a thread holds at a time: 8 MB."""


def top_k(
    left: Floats, right: Floats, k: int, *, excluded: Sparse | None = None, threads: int | None = None
) -> tuple[NDArray[np.int64], Floats]:
    """For each row of `left`, the k rows of `right` with the largest inner products.

    Parameters
    ----------
    left, right
        Users and items, with as many columns each.
    k
        How many to find.
    excluded
        Pairs of a row of `left` and a row of `right` that do not count.
    threads
        How many to use; all cores by default.

    Returns
    -------
    positions, products
        Both of shape (rows of `left`, k), best first, and the lower position first among equals. Where fewer
        than k are left, the rest is -1 and minus infinity.

    Examples
    --------
    >>> users, items = np.array([[1.0], [-1.0]], np.float32), np.array([[3.0], [5.0], [4.0]], np.float32)
    >>> positions, products = top_k(users, items, 2)
    >>> positions.tolist(), products.tolist()
    ([[1, 2], [0, 2]], [[5.0, 4.0], [-3.0, -4.0]])
    """
    positions = np.full((len(left), k), -1, np.int64)
    products = np.full((len(left), k), -np.inf, np.float32)
    nothing = np.zeros(len(left) + 1, np.int64), np.zeros(0, np.int32)
    indptr, indices = nothing if excluded is None else excluded
    rows_at_once = max(1, _CELLS_AT_ONCE // max(1, len(right)))
    columns = np.ascontiguousarray(right.T)

    def work(start: int, stop: int) -> None:
        table = np.empty((min(rows_at_once, stop - start), len(right)), np.float32)
        for first in range(start, stop, rows_at_once):
            last = min(first + rows_at_once, stop)
            scores = np.matmul(left[first:last], columns, out=table[: last - first])
            _exclude(scores, indptr[first : last + 1], indices)
            _keep_largest(scores, positions[first:last], products[first:last])

    if k > 0:
        in_threads(work, np.arange(len(left) + 1), threads)
    return positions, products


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _exclude(scores, indptr, indices):  # type: ignore[no-untyped-def]
    for row in range(len(scores)):
        for entry in range(indptr[row], indptr[row + 1]):
            scores[row, indices[entry]] = -np.inf


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _keep_largest(scores, positions, products):  # type: ignore[no-untyped-def]
    """A heap of the k best so far, its root the worst of them; then the heap is taken down, worst first."""
    k = positions.shape[1]
    for row in range(len(scores)):
        heap, values = positions[row], products[row]
        for position in range(scores.shape[1]):
            score = scores[row, position]
            if score > values[0]:  # an equal score at a later position does not count
                _replace_root(heap, values, k, position, score)
        for size in range(k - 1, 0, -1):
            position, score = heap[size], values[size]
            heap[size], values[size] = heap[0], values[0]
            _replace_root(heap, values, size, position, score)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _replace_root(heap, values, size, position, score):  # type: ignore[no-untyped-def]
    """Put another element in place of the root and let it sink below all that are worse."""
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        if child + 1 < size and _is_worse(heap, values, child + 1, values[child], heap[child]):
            child += 1
        if not _is_worse(heap, values, child, score, position):
            break
        heap[hole], values[hole] = heap[child], values[child]
        hole = child
    heap[hole], values[hole] = position, score


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _is_worse(heap, values, at, score, position):  # type: ignore[no-untyped-def]
    """Whether the element `at` has a lower score than the given one, or the same at a later position."""
    return values[at] < score or (values[at] == score and heap[at] > position)
