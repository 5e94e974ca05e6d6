"""The best columns of each row of a product of two matrices, without ever holding the whole product."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpals.kernels.small_matrices import add_to_panel, padded
from dpals.kernels.threads import in_threads

Floats = NDArray[np.float32]
Sparse = tuple[NDArray[np.int64], NDArray[np.int32]]
"""indptr and indices, rising in each row, of a sparse matrix whose entries have no values."""

_ROWS_AT_ONCE = 128
_PANEL = 2 * padded(1, np.float32)


def top_k(
    left: Floats, right: Floats, k: int, *, excluded: Sparse | None = None, threads: int | None = None
) -> tuple[NDArray[np.int64], Floats]:
    """For each row of `left`, the k rows of `right` with the largest inner products.

    The result for a row depends, to the last bit, on that row and `right` alone. BLAS would round differently at
    different positions, and one user's scores would tell whether another user is there.

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
    panels = _panels(right)

    def work(start: int, stop: int) -> None:
        block = np.zeros((left.shape[1], _ROWS_AT_ONCE), np.float32)
        for first in range(start * _ROWS_AT_ONCE, min(stop * _ROWS_AT_ONCE, len(left)), _ROWS_AT_ONCE):
            last = min(first + _ROWS_AT_ONCE, len(left))
            block[:, : last - first] = left[first:last].T
            rows = slice(first, last)
            _search(block, panels, len(right), indptr[first : last + 1], indices, positions[rows], products[rows])

    if k > 0:
        in_threads(work, np.arange(-(-len(left) // _ROWS_AT_ONCE) + 1), threads)
    return positions, products


def _panels(right: Floats) -> NDArray[np.float32]:
    """The transpose of a matrix, cut into panels of a few columns each, the last one filled up with zeros."""
    n_panels = -(-len(right) // _PANEL)
    filled = np.zeros((n_panels * _PANEL, right.shape[1]), np.float32)
    filled[: len(right)] = right
    return np.ascontiguousarray(filled.reshape(n_panels, _PANEL, right.shape[1]).transpose(0, 2, 1))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _search(block, panels, n_columns, indptr, indices, positions, products):  # type: ignore[no-untyped-def]
    """Scan the panels with a heap of the k best so far for each row, whose root is the worst of them.

    In the end the heaps are emptied, worst first, which sorts them.
    """
    n_rows, k = positions.shape
    scores = np.empty((block.shape[1], _PANEL), np.float32)
    seen = indptr[:-1].copy()
    for panel in range(len(panels)):
        scores[:] = 0
        add_to_panel(scores, block, panels[panel])
        start, stop = panel * _PANEL, min((panel + 1) * _PANEL, n_columns)
        for row in range(n_rows):
            while seen[row] < indptr[row + 1] and indices[seen[row]] < stop:
                scores[row, indices[seen[row]] - start] = -np.inf
                seen[row] += 1
            for position in range(start, stop):
                score = scores[row, position - start]
                if score > products[row, 0]:  # an equal score at a later position does not count
                    _replace_root(positions[row], products[row], k, position, score)
    for row in range(n_rows):
        heap, values = positions[row], products[row]
        for size in range(k - 1, 0, -1):
            position, score = heap[size], values[size]
            heap[size], values[size] = heap[0], values[0]
            _replace_root(heap, values, size, position, score)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _replace_root(heap, values, size, position, score):  # type: ignore[no-untyped-def]
    """Replace the root by another element, and let it sink below all that are worse."""
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
