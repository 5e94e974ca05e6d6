"""A small least-squares problem for every row of a sparse matrix: one half of an alternating step."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpals.kernels.small_matrices import add_product, add_weighted_rows, padded, solve_positive
from dpals.kernels.threads import in_threads

Floats = NDArray[np.float32]

_GATHERED_FLOATS = 4096  # half of the nearest cache
_LANES = padded(1, np.float32)


def solve_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    targets: Floats,
    features: Floats,
    ridges: Floats,
    base: Floats,
    *,
    ridged: int | None = None,
    inverses: Floats | None = None,
    inverted: NDArray[np.bool_] | None = None,
    threads: int | None = None,
) -> Floats:
    """Solve (sum_j f_j f_j^T + base + ridge_i I) x_i = sum_j t_ij f_j for every row i, j over its entries.

    A row's solution depends on that row's entries alone, to the last bit, for any number of threads and any type of
    processor: what a user contributes must not depend on other users or on the machine.

    Parameters
    ----------
    indptr, indices, targets
        The sparse matrix t, row by row.
    features
        One row f_j per column of the sparse matrix.
    ridges
        One positive number per row.
    base
        Symmetric matrix that is added to every system.
    ridged
        How many of the leading coordinates get the row's ridge; all by default. The others, such as biases, have
        theirs in `base`.
    inverses
        If given, it is filled with the inverse of a row's system on the ridged coordinates: its upper triangle, one
        line for each row that is `inverted`. Rows without a solution leave their line as it was.
    inverted
        The rows that `inverses` has a line for; all by default.
    threads
        How many to use; all cores by default.

    Returns
    -------
    array with one solution per row; zero for rows without entries and where a system is not positive definite
    """
    rank = features.shape[1]
    solutions = np.zeros((len(indptr) - 1, rank), np.float32)
    if rank == 0:
        return solutions
    common = padded_system(base)
    n_ridged = rank if ridged is None else ridged
    wanted = lines_of(len(solutions), inverses, inverted)

    def work(start: int, stop: int) -> None:
        _solve(indptr, indices, targets, features, ridges, common, n_ridged, start, stop, solutions, *wanted)

    in_threads(work, indptr, threads)
    return solutions


def padded_system(base: Floats) -> Floats:
    """The matrix in the corner of a wider one; the coordinates added for padding solve to zero."""
    system = np.eye(padded(len(base), np.float32), dtype=np.float32)
    system[: len(base), : len(base)] = base
    return system


def lines_of(
    n_rows: int, inverses: Floats | None, inverted: NDArray[np.bool_] | None
) -> tuple[Floats, NDArray[np.int64]]:
    """Where the inverses go, and for each row its line there, or -1."""
    if inverses is None:
        return np.empty((0, 0), np.float32), np.full(n_rows, -1)
    return inverses, np.arange(n_rows) if inverted is None else np.where(inverted, np.cumsum(inverted) - 1, -1)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _solve(indptr, indices, targets, features, ridges, common, ridged, start, stop, solutions, inverses, lines):  # type: ignore[no-untyped-def]
    rank, width = features.shape[1], len(common)
    depth = max(_LANES, _GATHERED_FLOATS // width)
    gathered = np.zeros((depth, width), np.float32)
    wanted = np.empty((depth, 1), np.float32)
    system = np.zeros((width, width + _LANES), np.float32)
    moments = np.empty((1, width), np.float32)
    scratch = np.empty((1, width), np.float32)
    root = np.empty((width, width), np.float32)
    for i in range(start, stop):
        if indptr[i] == indptr[i + 1]:
            continue
        for k in range(width):
            for other in range(k, width):
                system[k, other] = common[k, other]
            if k < ridged:
                system[k, k] += ridges[i]
        moments[:] = 0
        for first in range(indptr[i], indptr[i + 1], depth):
            last = min(first + depth, indptr[i + 1])
            for e in range(first, last):
                feature = features[indices[e]]
                for k in range(rank):
                    gathered[e - first, k] = feature[k]
                wanted[e - first, 0] = targets[e]
            add_product(system, gathered, gathered, last - first)
            add_weighted_rows(moments, wanted, gathered, last - first)
        for k in range(width):
            system[k, width] = moments[0, k]
            for pad in range(1, _LANES):
                system[k, width + pad] = 0
        if solve_positive(system, moments, scratch):
            for k in range(rank):
                solutions[i, k] = moments[0, k]
            if lines[i] >= 0:
                invert(system, scratch, rank, ridged, root, inverses[lines[i]])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def invert(system, reciprocals, rank, size, root, inverse):  # type: ignore[no-untyped-def]
    """Upper triangle of the leading block of (R^T R)^-1, as T^T T with T = R^-T.

    R is what `solve_positive` left in the system, which is overwritten; `root` is scratch for T.
    """
    for k in range(rank):
        root[k] = 0
        root[k, k] = 1
        for above in range(k):
            factor = system[above, k]
            for i in range(above + 1):
                root[k, i] -= factor * root[above, i]
        for i in range(k + 1):
            root[k, i] *= reciprocals[0, k]
    system[:] = 0
    add_product(system, root, root, rank)
    place = 0
    for i in range(size):
        for j in range(i, size):
            inverse[place] = system[i, j]
            place += 1
