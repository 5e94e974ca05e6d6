"""Item factors from noisy statistics: a small symmetric system for every item, projected to be positive first."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpals.kernels.blas import LOWER, PLAIN, VECTORS, dposv, dsyevd, dsyrk
from dpals.kernels.threads import in_threads, single_threaded_blas

Floats = NDArray[np.float64]


def solve_psd(
    gram_packed: Floats,
    moments: Floats,
    ridges: Floats,
    base: Floats | None = None,
    *,
    project: bool = True,
    threads: int | None = None,
) -> Floats:
    """Solve (P(G_j) + base + ridge_j I) x_j = b_j for every item j, where P makes a matrix positive semi-definite.

    P sets negative eigenvalues, which come from noise, to zero. That gives the nearest such matrix.

    Parameters
    ----------
    gram_packed
        The upper triangle of G_j, row by row as in ``np.triu_indices``, one row per item.
    moments
        b_j, one row per item.
    ridges
        One positive number per item.
    base
        Positive semi-definite matrix, added to every projected matrix; none by default.
    project
        Whether to apply P. Without it, eigenvalues of the noisy system may be near zero or negative.
    threads
        How many to use; all cores by default.

    Returns
    -------
    array with one solution per item

    Examples
    --------
    >>> gram = np.array([[2.0, 0.0, -5.0]])  # eigenvalues 2 and -5
    >>> solve_psd(gram, np.array([[3.0, 1.0]]), np.array([1.0]))
    array([[1., 1.]])
    """
    n_items, rank = moments.shape
    if gram_packed.shape != (n_items, rank * (rank + 1) // 2):
        raise ValueError(f"{n_items} upper triangles of order {rank} expected, got shape {gram_packed.shape}")
    if not (np.isfinite(gram_packed).all() and np.isfinite(moments).all()):
        raise ValueError("item statistics must be finite numbers")
    solutions = np.zeros((n_items, rank))
    if rank == 0:
        return solutions
    shared = np.zeros((rank, rank)) if base is None else np.ascontiguousarray(base, np.float64)

    def work(start: int, stop: int) -> bool:
        done: bool = _solve(gram_packed, moments, ridges, shared, base is not None, project, start, stop, solutions)
        return done

    with single_threaded_blas():
        converged = all(in_threads(work, np.arange(n_items + 1), threads))
    if not converged:
        raise np.linalg.LinAlgError("the eigenvalues of an item's matrix did not converge")
    return solutions


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _solve(gram_packed, moments, ridges, base, with_base, project, start, stop, solutions):  # type: ignore[no-untyped-def]
    """Solve a range of items; False where LAPACK finds no eigenvalues."""
    rank = moments.shape[1]
    matrix, values, system = np.empty((rank, rank)), np.empty(rank), np.empty((rank, rank))
    workspaces = _workspaces(rank)
    for j in range(start, stop):
        _unpack(gram_packed[j], matrix)
        if with_base and not project:
            matrix += base
        if not _eigenpairs(matrix, values, *workspaces):
            return False
        if project:
            values[:] = np.maximum(values, 0)
        if project and with_base:
            system[:] = base
            _reassemble(matrix, values, system)
            matrix[:] = system
            if _solve_by_cholesky(system, ridges[j], moments[j], solutions[j]):
                continue
            # The ridge was lost in rounding. Added to the eigenvalues, it cannot be.
            if not _eigenpairs(matrix, values, *workspaces):
                return False
            values[:] = np.maximum(values, 0)
        _solve_from_eigenpairs(matrix, values, ridges[j], moments[j], solutions[j])
    return True


@njit(nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _unpack(packed, matrix):  # type: ignore[no-untyped-def]
    """Fill the upper triangle of a matrix."""
    at = 0
    for k in range(len(matrix)):
        for other in range(k, len(matrix)):
            matrix[k, other] = packed[at]
            at += 1


@njit(nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _workspaces(rank):  # type: ignore[no-untyped-def]
    """Workspaces of the sizes that LAPACK asks for."""
    return np.empty(1 + 6 * rank + 2 * rank**2), np.empty(3 + 5 * rank, np.int32)


@njit(nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _eigenpairs(matrix, values, floats, integers):  # type: ignore[no-untyped-def]
    """Eigenvalues of the matrix whose upper triangle is given; row k of it becomes eigenvector k."""
    order, info = np.full(1, len(matrix), np.int32), np.zeros(1, np.int32)
    n_floats, n_integers = np.full(1, len(floats), np.int32), np.full(1, len(integers), np.int32)
    dsyevd(
        VECTORS.ctypes,
        LOWER.ctypes,
        order.ctypes,
        matrix.ctypes,
        order.ctypes,
        values.ctypes,
        floats.ctypes,
        n_floats.ctypes,
        integers.ctypes,
        n_integers.ctypes,
        info.ctypes,
    )
    return info[0] == 0


@njit(nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _solve_from_eigenpairs(vectors, values, ridge, moment, solution):  # type: ignore[no-untyped-def]
    solution[:] = 0
    for k in range(len(values)):
        vector, along = vectors[k], 0.0
        for i in range(len(moment)):
            along += vector[i] * moment[i]
        along /= values[k] + ridge
        for i in range(len(moment)):
            solution[i] += along * vector[i]


@njit(nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _reassemble(vectors, values, matrix):  # type: ignore[no-untyped-def]
    """Add sum_k values_k v_k v_k^T to the upper triangle of a matrix. The vectors are scaled in place."""
    order, one = np.full(1, len(values), np.int32), np.ones(1)
    for k in range(len(values)):
        vectors[k] *= np.sqrt(values[k])
    dsyrk(
        LOWER.ctypes,
        PLAIN.ctypes,
        order.ctypes,
        order.ctypes,
        one.ctypes,
        vectors.ctypes,
        order.ctypes,
        one.ctypes,
        matrix.ctypes,
        order.ctypes,
    )


@njit(nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _solve_by_cholesky(matrix, ridge, moment, solution):  # type: ignore[no-untyped-def]
    order, single, info = np.full(1, len(moment), np.int32), np.ones(1, np.int32), np.zeros(1, np.int32)
    for k in range(len(moment)):
        matrix[k, k] += ridge
        solution[k] = moment[k]
    dposv(
        LOWER.ctypes,
        order.ctypes,
        single.ctypes,
        matrix.ctypes,
        order.ctypes,
        solution.ctypes,
        order.ctypes,
        info.ctypes,
    )
    return info[0] == 0
