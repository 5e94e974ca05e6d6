"""Products and solutions by tiles against dense numpy."""

import numpy as np
import pytest

from dpals.kernels.small_matrices import add_product, add_to_panel, add_weighted_rows, padded, solve_positive

TYPES = [np.float32, np.float64]
WIDTHS = [8, 16, 24, 32, 40, 64, 72]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("width", [4, 12, *WIDTHS])
@pytest.mark.parametrize("depth", [0, 1, 2, 7, 50])
def test_products_are_those_of_numpy(dtype: type, width: int, depth: int) -> None:
    """Small integers, so that there is nothing to round. Rows beyond the depth are not read."""
    width, rng = padded(width, dtype), np.random.default_rng(width)
    left, right = (rng.integers(-9, 10, (depth + 3, width)).astype(dtype) for _ in range(2))
    left[depth:], right[depth:] = np.nan, np.nan
    out = rng.integers(-9, 10, (width, width)).astype(dtype)
    expected = out + left[:depth].T @ right[:depth]
    add_product(out, left, right, depth)
    assert np.array_equal(np.triu(out), np.triu(expected))


def test_products_leave_the_columns_behind_them_alone() -> None:
    rows, out = np.ones((5, 24), np.float32), np.zeros((24, 32), np.float32)
    add_product(out, rows, rows, 5)
    assert not out[:, 24:].any()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("depth", [0, 1, 50])
def test_panels_are_those_of_numpy(dtype: type, depth: int) -> None:
    rng, width = np.random.default_rng(depth), 2 * padded(1, dtype)
    left, panel = (rng.integers(-9, 10, (depth, size)).astype(dtype) for size in (12, width))
    out = np.ones((12, width), dtype)
    add_to_panel(out, left, panel)
    assert np.array_equal(out, 1 + left.T @ panel)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("width", [*WIDTHS, 136])
def test_weighted_rows_are_those_of_numpy(dtype: type, width: int) -> None:
    rng = np.random.default_rng(width)
    rows, weights = rng.integers(-9, 10, (31, width)).astype(dtype), rng.integers(-9, 10, (31, 1)).astype(dtype)
    out = np.ones((1, width), dtype)
    add_weighted_rows(out, weights, rows, 30)
    assert np.array_equal(out, 1 + weights[:30].T @ rows[:30])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_solutions_are_those_of_numpy(dtype: type, width: int) -> None:
    """What lies below the diagonal is not read."""
    rng = np.random.default_rng(width)
    root, right = rng.normal(size=(width, width)), rng.normal(size=width)
    matrix = (root @ root.T / width + np.eye(width)).astype(dtype)
    system = np.zeros((width, width + padded(1, dtype)), dtype)
    system[:, :width] = np.triu(matrix) + np.tril(np.full_like(matrix, np.nan), -1)
    system[:, width] = right
    solution, scratch = np.empty((1, width), dtype), np.empty((1, width), dtype)
    assert solve_positive(system, solution, scratch)
    error = 1e-3 if dtype is np.float32 else 1e-11
    np.testing.assert_allclose(solution[0], np.linalg.solve(matrix.astype(float), right), rtol=error, atol=error)


@pytest.mark.parametrize("at", [0, 9, 15])
@pytest.mark.parametrize("pivot", [0.0, -1.0, np.nan])
def test_a_pivot_that_is_not_positive_is_told(at: int, pivot: float) -> None:
    system = np.eye(16, 24, dtype=np.float32)
    system[at, at] = pivot
    assert not solve_positive(system, np.empty((1, 16), np.float32), np.empty((1, 16), np.float32))
