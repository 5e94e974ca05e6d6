"""Exact sums over users of what they contribute.

Formal guarantee: the result is the exact integer sum_i c_ij * x_i, so the same contributions give the same bits
whatever the number of threads, the order of users or the split into blocks.

Why floats may be used: the products are integers of at most the bound B = 2^30 in absolute value, because
each user's whole contribution is. A float64 adds integers exactly while every partial sum stays below 2^53,
which holds for any 2^22 products in any order, fused or not. Kernels therefore add at most 2^22 users in
float64, at the speed of the machine, and everything beyond that in int64, which holds 2^33 users. The factors
c_ij * u_ik of a symmetric product are exact too: a vector of integers that is not zero has a norm of at least 1,
so they are at most the bound.

==========================  =====================================
no users, no entries        zeros
more than 2^33 users        ValueError
==========================  =====================================
"""

from itertools import pairwise

import numba
import numpy as np
from numpy.typing import NDArray

from dpals.kernels.small_matrices import add_product, padded
from dpals.kernels.threads import balanced_ranges, map_ranges, thread_count
from dpals.release.contribution import MAX_BOUND_BITS, ClippedContribution, Query

SLAB_USERS = 2 ** (52 - MAX_BOUND_BITS)
"""How many users are added in float64 before the sum moves to int64."""

MAX_USERS = 2 ** (63 - MAX_BOUND_BITS)

_GATHERED_ROWS = 32
_RANGE_ENTRIES = 2**15
_RANGES_PER_THREAD = 8
_LANES = padded(1, np.float64)


def empty_sums(query: Query) -> NDArray[np.int64]:
    """The table a release starts from: one row per item, one column per published coordinate."""
    return np.zeros((query.n_items, len(query.coordinate_weights)), np.int64)


def add_exactly(
    sums: NDArray[np.int64], contribution: ClippedContribution, query: Query, threads: int | None = None
) -> None:
    """Add a block of users to `sums`, in place."""
    pattern = contribution.pattern
    if pattern.first_user + pattern.n_users > MAX_USERS:
        raise ValueError(f"one release can hold at most {MAX_USERS} users")
    threads = thread_count(threads)
    if query.form == "symmetric":
        _add_matrices(sums, contribution, threads)
    else:
        _add_vectors(sums, contribution, threads)


def _add_matrices(sums: NDArray[np.int64], contribution: ClippedContribution, threads: int) -> None:
    """Each thread takes ranges of the entries, ordered by item. Items cut by the ends of a range come last."""
    pointers, positions, rows = contribution.pattern.by_item

    def part(first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        cut = np.searchsorted(pointers, [first, last - 1], side="right") - 1
        ends = np.zeros((2, sums.shape[1]), np.int64)
        entries = first, positions[first:last], rows[first:last]
        _add_symmetric(sums, ends, cut, pointers, *entries, contribution.coefficients, contribution.vectors)
        return cut, ends

    fair = -(-len(rows) // (_RANGES_PER_THREAD * threads))
    edges = [*range(0, len(rows), max(1, min(fair, _RANGE_ENTRIES, SLAB_USERS))), len(rows)]
    for cut, ends in map_ranges(part, list(pairwise(edges)), threads):
        np.add.at(sums, cut, ends)


def _add_vectors(sums: NDArray[np.int64], contribution: ClippedContribution, threads: int) -> None:
    """Each thread takes a slab of users and fills a table of its own."""
    pattern = contribution.pattern

    def slab(start: int, stop: int) -> NDArray[np.float64]:
        part = np.zeros(sums.shape)
        indptr, vectors = pattern.indptr[start : stop + 1], contribution.vectors[start:stop]
        _add_slab(part, indptr, pattern.items, contribution.coefficients, vectors)
        return part

    slabs = max(threads, -(-pattern.n_users // SLAB_USERS))
    for part in map_ranges(slab, balanced_ranges(pattern.indptr, slabs, longest=SLAB_USERS), threads):
        sums += part.astype(np.int64)


@numba.njit(cache=True, nogil=True)
def _add_slab(part, indptr, items, coefficients, vectors):  # type: ignore[no-untyped-def]
    """part[j] += c_ij * x_i, user by user."""
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
def _add_symmetric(sums, ends, cut, pointers, first, positions, rows, coefficients, vectors):  # type: ignore[no-untyped-def]
    """sums[j] += upper triangle of sum_i c_ij u_i u_i^T, for a range of entries that starts at `first`.

    The first and the last item of the range may have entries outside: they go to `ends`. The range has at most
    `SLAB_USERS` entries.
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
