"""One half of an alternating step: a small least-squares problem for every row of a sparse matrix."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dpals.kernels.blas import PLAIN, UPPER, sgemv, sposv, ssyrk

Floats = NDArray[np.float32]

_GATHERED_ROWS = 512
_PARTS_PER_THREAD = 8


def solve_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    targets: Floats,
    features: Floats,
    ridges: Floats,
    base: Floats,
    *,
    ridged: int | None = None,
    threads: int | None = None,
) -> Floats:
    """Solve (sum_j f_j f_j^T + base + ridge_i I) x_i = sum_j t_ij f_j for every row i, j over its entries.

    A row's solution depends on that row's entries alone, to the last bit, whatever the threads: what a user
    offers may not depend on other users.

    Parameters
    ----------
    indptr, indices, targets
        The sparse matrix t, row by row.
    features
        One row f_j per column of the sparse matrix.
    ridges
        One number per row, positive.
    base
        Symmetric matrix that is added to every system.
    ridged
        How many of the leading coordinates get the row's ridge; all by default. The others, biases for
        instance, have theirs in `base`.
    threads
        How many to use; all cores by default.

    Returns
    -------
    array with one solution per row; zero for rows without entries
    """
    solutions = np.zeros((len(indptr) - 1, features.shape[1]), np.float32)
    n_ridged = features.shape[1] if ridged is None else ridged
    if features.shape[1] == 0:
        return solutions

    def work(start: int, stop: int) -> None:
        _solve(indptr, indices, targets, features, ridges, base, n_ridged, start, stop, solutions)

    in_threads(work, indptr, threads)
    return solutions


def in_threads(work: Callable[[int, int], Any], pointers: NDArray[np.int64], threads: int | None = None) -> list[Any]:
    """Call work(start, stop) on ranges of rows with about the same number of entries, one BLAS thread in each."""
    threads = threads or os.cpu_count() or 1
    goals = np.linspace(0, pointers[-1], threads * _PARTS_PER_THREAD + 1)
    edges = sorted({0, len(pointers) - 1, *np.searchsorted(pointers, goals[1:-1]).tolist()})
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda edge: work(*edge), pairwise(edges)))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _solve(indptr, indices, targets, features, ridges, base, ridged, start, stop, solutions):  # type: ignore[no-untyped-def]
    rank = features.shape[1]
    gathered = np.empty((_GATHERED_ROWS, rank), np.float32)
    wanted = np.empty(_GATHERED_ROWS, np.float32)
    gram = np.empty((rank, rank), np.float32)
    solution = np.empty(rank, np.float32)
    one = np.ones(1, np.float32)
    order, single, depth, info = (
        np.full(1, rank, np.int32),
        np.ones(1, np.int32),
        np.empty(1, np.int32),
        np.empty(1, np.int32),
    )
    for i in range(start, stop):
        if indptr[i] == indptr[i + 1]:
            continue
        gram[:] = base
        solution[:] = 0
        for first in range(indptr[i], indptr[i + 1], _GATHERED_ROWS):
            last = min(first + _GATHERED_ROWS, indptr[i + 1])
            for e in range(first, last):
                feature = features[indices[e]]
                for k in range(rank):
                    gathered[e - first, k] = feature[k]
                wanted[e - first] = targets[e]
            depth[0] = last - first
            ssyrk(
                UPPER.ctypes,
                PLAIN.ctypes,
                order.ctypes,
                depth.ctypes,
                one.ctypes,
                gathered.ctypes,
                order.ctypes,
                one.ctypes,
                gram.ctypes,
                order.ctypes,
            )
            sgemv(
                PLAIN.ctypes,
                order.ctypes,
                depth.ctypes,
                one.ctypes,
                gathered.ctypes,
                order.ctypes,
                wanted.ctypes,
                single.ctypes,
                one.ctypes,
                solution.ctypes,
                single.ctypes,
            )
        for k in range(ridged):
            gram[k, k] += ridges[i]
        sposv(
            UPPER.ctypes,
            order.ctypes,
            single.ctypes,
            gram.ctypes,
            order.ctypes,
            solution.ctypes,
            order.ctypes,
            info.ctypes,
        )
        if info[0] == 0:
            solutions[i] = solution
