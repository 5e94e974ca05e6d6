"""Exact sums of what users contribute.

The products are integers of at most the sensitivity, 2^30, in absolute value, because each user's whole contribution
is. Vectors are added in int64, which holds nearly 2^33 users. Symmetric matrices are added in float64 first, at the
speed of the machine: a float64 adds integers exactly while every partial sum stays below 2^53, which holds for any 2^22
products in any order, fused or not. Everything beyond that is added in int64. The factors c_ij * u_ik of a symmetric
product are exact too: a vector of integers that is not zero has a norm of at least 1, so they are at most the
sensitivity.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpals.kernels import item_sums
from dpals.kernels.threads import balanced_ranges, map_ranges, thread_count
from dpals.release.contribution import MAX_SENSITIVITY_BITS, ClippedContribution, Pattern, Query

Integers = NDArray[np.int32]

EXACT_IN_FLOAT64 = 2 ** (52 - MAX_SENSITIVITY_BITS)
"""How many products are added in float64 at most, before the sum moves to int64."""

MAX_USERS = 2 ** (63 - MAX_SENSITIVITY_BITS) - 2**10
"""How many users int64 holds, with room for the noise."""

_RANGE_ENTRIES = 2**15
_RANGES_PER_THREAD = 8
_SMALL_TABLE = 2**14
_SAMPLED_ENTRIES = 2**12


def empty_sums(query: Query) -> NDArray[np.int64]:
    """The table that a release starts from: one row per item, one column per published coordinate."""
    return np.zeros((query.n_items, len(query.coordinate_weights)), np.int64)


def add_exactly(
    sums: NDArray[np.int64], contribution: ClippedContribution, query: Query, threads: int | None = None
) -> None:
    """Add a block of users to `sums`, in place.

    Formal guarantee (docs/privacy.md, step 2): `sums` grows by the exact integers sum_i c_ij * x_i. So the same
    contributions give the same bits, whatever the number of threads, the order of users or the split into blocks.

    ==========================  =====================================
    no users, no entries        nothing is added
    more than 2^33 users        ValueError
    ==========================  =====================================
    """
    pattern = contribution.pattern
    if pattern.first_user + pattern.n_users > MAX_USERS:
        raise ValueError(f"one release can hold at most {MAX_USERS} users")
    add = add_matrices if query.form == "symmetric" else add_vectors
    add(sums, pattern, contribution.coefficients, contribution.vectors, threads)


def add_matrices(
    sums: NDArray[np.int64], pattern: Pattern, coefficients: Integers, vectors: Integers, threads: int | None = None
) -> None:
    """sums[j] += upper triangle of sum_i c_ij x_i x_i^T, where 2^15 products of three numbers stay below 2^53.

    Each thread takes ranges of the entries, ordered by item. The items at the ends of each range are added last.
    """
    threads = thread_count(threads)
    pointers, positions, rows = pattern.by_item

    def part(first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        cut = np.searchsorted(pointers, [first, last - 1], side="right") - 1
        ends = np.zeros((2, sums.shape[1]), np.int64)
        entries = first, positions[first:last], rows[first:last]
        item_sums.add_symmetric(sums, ends, cut, pointers, *entries, coefficients, vectors)
        return cut, ends

    fair = -(-len(rows) // (_RANGES_PER_THREAD * threads))
    edges = [*range(0, len(rows), max(1, min(fair, _RANGE_ENTRIES, EXACT_IN_FLOAT64))), len(rows)]
    for cut, ends in map_ranges(part, list(pairwise(edges)), threads):
        np.add.at(sums, cut, ends)


def add_vectors(
    sums: NDArray[np.int64], pattern: Pattern, coefficients: Integers, vectors: Integers, threads: int | None = None
) -> None:
    """sums[j] += sum_i c_ij x_i.

    Threads share a large table, each a range of its items. Each fills a small one for some of the users.
    """
    threads = thread_count(threads)
    items = pattern.items

    def some_items(first: int, stop: int) -> None:
        item_sums.add_vectors(sums, pattern.indptr, items, coefficients, vectors, first, stop)

    def some_users(start: int, stop: int) -> NDArray[np.int64]:
        part, indptr = np.zeros_like(sums), pattern.indptr[start : stop + 1]
        item_sums.add_vectors(part, indptr, items, coefficients, vectors[start:stop], 0, len(sums))
        return part

    if sums.size > _SMALL_TABLE:
        list(map_ranges(some_items, _item_ranges(items, len(sums), threads), threads))
    else:
        for part in map_ranges(some_users, balanced_ranges(pattern.indptr, threads), threads):
            sums += part


def _item_ranges(items: NDArray[np.int32], n_items: int, parts: int) -> list[tuple[int, int]]:
    """Ranges of items with about the same number of entries, judged by some of the entries."""
    sample = np.sort(items[:: len(items) // _SAMPLED_ENTRIES + 1])
    edges = {sample[len(sample) * k // parts] for k in range(1, parts)} if len(sample) else set()
    return list(pairwise(sorted({0, n_items, *map(int, edges)})))
