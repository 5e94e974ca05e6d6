"""Exact sums over users of what they offer.

Formal guarantee: the result is the exact integer sum_i c_ij * x_i, so the same offers give the same bits
whatever the number of threads, the order of users or the split into blocks.

Why floats may be used: the products are integers of at most the bound B = 2^30 in absolute value, because
each user's whole contribution is. A float64 adds integers exactly while every partial sum stays below 2^53,
which holds for any 2^22 products in any order, fused or not. Kernels therefore add at most 2^22 users in
float64, at the speed of the machine, and everything beyond that in int64, which holds 2^33 users.

==========================  =====================================
no users, no entries        zeros
more than 2^33 users        ValueError
==========================  =====================================
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dpals.release.contribution import MAX_BOUND_BITS, Contribution, Query

SLAB_USERS = 2 ** (52 - MAX_BOUND_BITS)
"""How many users are added in float64 before the sum moves to int64."""

MAX_USERS = 2 ** (63 - MAX_BOUND_BITS)

_GATHERED_ROWS = 256


def empty_sums(query: Query) -> NDArray[np.int64]:
    """The table a release starts from: one row per item, one column per published coordinate."""
    return np.zeros((query.n_items, len(query.coordinate_weights)), np.int64)


def add_exactly(sums: NDArray[np.int64], contribution: Contribution, query: Query, threads: int | None = None) -> None:
    """Add a block of users to `sums`, in place."""
    pattern = contribution.pattern
    if pattern.first_user + pattern.n_users > MAX_USERS:
        raise ValueError(f"one release can hold at most {MAX_USERS} users")
    threads = threads or os.cpu_count() or 1
    if query.form == "symmetric":
        pointers, positions, rows = pattern.by_item

        def add_items(start: int, stop: int) -> None:
            _add_symmetric(
                sums, pointers, positions, rows, contribution.coefficients, contribution.vectors, start, stop
            )

        _in_threads(add_items, _balanced(pointers, threads, query.n_items))
    else:

        def slab(start: int, stop: int) -> NDArray[np.float64]:
            part = np.zeros(sums.shape)
            _add_vectors(
                part,
                pattern.indptr[start : stop + 1],
                pattern.items,
                contribution.coefficients,
                contribution.vectors[start:stop],
            )
            return part

        slabs = max(threads, -(-pattern.n_users // SLAB_USERS))
        for part in _in_threads(slab, _balanced(pattern.indptr, slabs, SLAB_USERS)):
            sums += part.astype(np.int64)


def _balanced(pointers: NDArray[np.int64], parts: int, longest: int) -> list[tuple[int, int]]:
    """Ranges of rows with about the same number of entries, none longer than `longest` rows."""
    targets = np.linspace(0, pointers[-1], parts + 1)[1:-1]
    cuts = {0, len(pointers) - 1, *np.searchsorted(pointers, targets).tolist()}
    cuts.update(range(0, len(pointers) - 1, longest))
    edges = sorted(cuts)
    return list(pairwise(edges))


def _in_threads(work: Callable[[int, int], Any], ranges: list[tuple[int, int]]) -> list[Any]:
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(max(1, len(ranges))) as pool:
        return list(pool.map(lambda edge: work(*edge), ranges))


@numba.njit(cache=True, nogil=True)
def _add_vectors(part, indptr, items, coefficients, vectors):  # type: ignore[no-untyped-def]
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
def _add_symmetric(sums, pointers, positions, rows, coefficients, vectors, start, stop):  # type: ignore[no-untyped-def]
    """sums[j] += upper triangle of sum_i c_ij u_i u_i^T, item by item, as products of gathered blocks."""
    dimension = vectors.shape[1]
    plain = np.empty((_GATHERED_ROWS, dimension))
    scaled = np.empty((_GATHERED_ROWS, dimension))
    product = np.empty((dimension, dimension))
    for j in range(start, stop):
        for first in range(pointers[j], pointers[j + 1], _GATHERED_ROWS):
            last = min(first + _GATHERED_ROWS, pointers[j + 1])
            for e in range(first, last):
                coefficient = np.float64(coefficients[positions[e]])
                for k in range(dimension):
                    value = np.float64(vectors[rows[e], k])
                    plain[e - first, k] = value
                    scaled[e - first, k] = coefficient * value
            np.dot(scaled[: last - first].T, plain[: last - first], product)
            column = 0
            for k in range(dimension):
                for other in range(k, dimension):
                    sums[j, column] += np.int64(product[k, other])
                    column += 1
