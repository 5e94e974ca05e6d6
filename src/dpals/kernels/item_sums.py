"""Sums over users, item by item: the loops behind `release.sums`.

They add integers in float64. The caller makes sure that every partial sum is an integer below 2^53, so that each is
exact, in any order and with or without fused multiplication.
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
def add_vectors(part, indptr, items, coefficients, vectors):  # type: ignore[no-untyped-def]
    """part[j] += c_ij * x_i, user by user. `indptr` and `vectors` are those of some of the users."""
    dimension = vectors.shape[1]
    vector = np.empty(dimension)
    for i in range(len(indptr) - 1):
        for k in range(dimension):
            vector[k] = vectors[i, k]
        for e in range(indptr[i], indptr[i + 1]):
            coefficient = np.float64(coefficients[e])
            row = part[items[e]]
            for k in range(dimension):
                row[k] += coefficient * vector[k]


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
