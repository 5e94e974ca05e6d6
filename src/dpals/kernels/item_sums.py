"""Sums over users, item by item: the loops behind `release.sums`.

Vectors are added in int64. Symmetric matrices are added in float64: the caller makes sure that every partial sum is an
integer below 2^53, so that each is exact, in any order and with or without fused multiplication.
"""

import numba
import numpy as np

from dpals.kernels.small_matrices import add_product, padded

_GATHERED_ROWS = 32
_LANES = padded(1, np.float64)


@numba.njit(cache=True, nogil=True)
def entries_by_item(indptr, items, n_items):  # type: ignore[no-untyped-def]
    """The entries of rows of items, ordered by item and then by row: item pointers, positions of the entries, rows."""
    pointers = np.zeros(n_items + 1, np.int64)
    for e in range(len(items)):
        pointers[items[e] + 1] += 1
    pointers = np.cumsum(pointers)
    free = pointers.copy()
    positions = np.empty(len(items), np.int64)
    rows = np.empty(len(items), np.int32)
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            slot = free[items[e]]
            free[items[e]] += 1
            positions[slot] = e
            rows[slot] = i
    return pointers, positions, rows


@numba.njit(cache=True, nogil=True)
def add_vectors(sums, indptr, items, coefficients, vectors, first, stop):  # type: ignore[no-untyped-def]
    """sums[j] += c_ij * x_i for the items from `first` to before `stop`, user by user.

    `indptr` and `vectors` are those of some of the users. The items of each user rise.
    """
    for i in range(len(indptr) - 1):
        begin, end = indptr[i], indptr[i + 1]
        if first > 0:
            begin = _first_from(items, begin, end, first)
        if stop < len(sums):
            end = _first_from(items, begin, end, stop)
        for e in range(begin, end):
            coefficient, total = np.int64(coefficients[e]), sums[items[e]]
            for k in range(vectors.shape[1]):
                total[k] += coefficient * np.int64(vectors[i, k])


@numba.njit(cache=True, nogil=True)
def _first_from(items, begin, end, item):  # type: ignore[no-untyped-def]
    """Where in a row that rises the items from `item` on begin."""
    while begin < end:
        middle = (begin + end) // 2
        if items[middle] < item:
            begin = middle + 1
        else:
            end = middle
    return begin


@numba.njit(cache=True, nogil=True)
def add_symmetric(sums, ends, cut, pointers, first, positions, rows, coefficients, vectors):  # type: ignore[no-untyped-def]
    """sums[j] += upper triangle of sum_i c_ij u_i u_i^T, for a range of the entries by item that starts at `first`.

    `positions` and `rows` are those of the range; `cut` names its first and its last item. These two may have entries
    outside the range, so what they add up to goes to `ends`.
    """
    dimension = vectors.shape[1]
    width = -(-dimension // _LANES) * _LANES
    plain = np.zeros((_GATHERED_ROWS, width))
    scaled = np.zeros((_GATHERED_ROWS, width))
    product = np.empty((width, width))
    weights = np.empty(len(rows))
    for e in range(len(rows)):  # ahead of the rest, because it waits for memory
        weights[e] = coefficients[positions[e]]
    for j in range(cut[0], cut[1] + 1):
        product[:] = 0
        stop = min(len(rows), pointers[j + 1] - first)
        for block in range(max(0, pointers[j] - first), stop, _GATHERED_ROWS):
            depth = min(_GATHERED_ROWS, stop - block)
            for e in range(depth):
                weight, vector = weights[block + e], vectors[rows[block + e]]
                for k in range(dimension):
                    value = np.float64(vector[k])
                    plain[e, k] = value
                    scaled[e, k] = weight * value
            add_product(product, scaled, plain, depth)
        total = ends[0] if j == cut[0] else ends[1] if j == cut[1] else sums[j]
        column = 0
        for k in range(dimension):
            for other in range(k, dimension):
                total[column] += np.int64(product[k, other])
                column += 1
