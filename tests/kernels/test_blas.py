"""The routines of BLAS and LAPACK, called from compiled code, against numpy."""

import numpy as np
import pytest
from numba import njit

from dpals.kernels.blas import LOWER, PLAIN, VECTORS, dposv, dsyevd, dsyrk

RANKS = [1, 4, 13]


@njit
def _product(rows, result):
    order, depth, one = np.full(1, rows.shape[1], np.int32), np.full(1, rows.shape[0], np.int32), np.ones(1)
    dsyrk(
        LOWER.ctypes, PLAIN.ctypes, order.ctypes, depth.ctypes, one.ctypes, rows.ctypes, order.ctypes, one.ctypes,
        result.ctypes, order.ctypes,
    )  # fmt: skip


@njit
def _solve(matrix, solution):
    order, single, info = np.full(1, len(matrix), np.int32), np.ones(1, np.int32), np.zeros(1, np.int32)
    dposv(
        LOWER.ctypes, order.ctypes, single.ctypes, matrix.ctypes, order.ctypes, solution.ctypes, order.ctypes,
        info.ctypes,
    )  # fmt: skip
    return info[0]


@njit
def _eigenvalues(matrix, values):
    order, info = np.full(1, len(matrix), np.int32), np.zeros(1, np.int32)
    floats, integers = np.empty(1 + 6 * len(matrix) + 2 * len(matrix) ** 2), np.empty(3 + 5 * len(matrix), np.int32)
    n_floats, n_integers = np.full(1, len(floats), np.int32), np.full(1, len(integers), np.int32)
    dsyevd(
        VECTORS.ctypes, LOWER.ctypes, order.ctypes, matrix.ctypes, order.ctypes, values.ctypes, floats.ctypes,
        n_floats.ctypes, integers.ctypes, n_integers.ctypes, info.ctypes,
    )  # fmt: skip
    return info[0]


@pytest.mark.parametrize("rank", RANKS)
def test_a_product_is_added_to_the_upper_triangle(rank):
    rng = np.random.default_rng(rank)
    rows, result = rng.normal(size=(20, rank)), rng.normal(size=(rank, rank))
    expected = result.copy()
    upper = np.triu_indices(rank)
    expected[upper] += (rows.T @ rows)[upper]
    _product(rows, result)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.parametrize("rank", RANKS)
def test_a_positive_system_is_solved_from_its_upper_triangle(rank):
    rng = np.random.default_rng(rank)
    root, wanted = rng.normal(size=(rank, rank)), rng.normal(size=rank)
    matrix, solution = root @ root.T + np.eye(rank), wanted.copy()
    upper = np.triu(matrix)
    assert _solve(upper, solution) == 0
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, wanted), rtol=1e-9)


def test_a_system_that_is_not_positive_is_reported():
    assert _solve(-np.eye(3), np.ones(3)) == 1


@pytest.mark.parametrize("rank", RANKS)
def test_eigenvectors_come_in_rows(rank):
    noise = np.random.default_rng(rank).normal(size=(rank, rank))
    matrix = noise + noise.T
    vectors, values = np.triu(matrix), np.empty(rank)
    assert _eigenvalues(vectors, values) == 0
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix), atol=1e-10)
    np.testing.assert_allclose((vectors.T * values) @ vectors, matrix, atol=1e-10)
