"""The heap against a full sort by Python, on whole numbers, so that ties are real and products exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpals.kernels import top_k as module
from dpals.kernels.top_k import top_k

small = st.integers(-3, 3).map(float)


def brute_force(left, right, k, excluded):
    table = left.astype(np.float64) @ right.T.astype(np.float64)
    found, products = [], []
    for row, scores in zip(excluded, table.tolist(), strict=True):
        left_over = sorted((-score, at) for at, score in enumerate(scores) if not row[at])[:k]
        padding = k - len(left_over)
        found.append([at for _, at in left_over] + [-1] * padding)
        products.append([-score for score, _ in left_over] + [-np.inf] * padding)
    return found, products


def sparse(pairs):
    indptr = np.concatenate([[0], np.cumsum(pairs.sum(axis=1))]).astype(np.int64)
    return indptr, np.nonzero(pairs)[1].astype(np.int32)


@st.composite
def problems(draw):
    n, m, rank = (draw(st.integers(low, high)) for low, high in ((0, 6), (1, 40), (0, 3)))
    left, right = (draw(arrays(np.float32, (size, rank), elements=small)) for size in (n, m))
    return left, right, draw(st.integers(1, m + 2)), draw(arrays(bool, (n, m)))


@given(problems(), st.integers(1, 3))
def test_same_as_a_full_sort(problem, threads):
    left, right, k, excluded = problem
    positions, products = top_k(left, right, k, excluded=sparse(excluded), threads=threads)
    expected_positions, expected_products = brute_force(left, right, k, excluded)
    assert positions.tolist() == expected_positions
    assert products.tolist() == expected_products


@pytest.mark.parametrize("rows", [4, 64])
def test_the_size_of_blocks_does_not_matter(monkeypatch, rows):
    rng = np.random.default_rng(3)
    left, right = (rng.integers(-9, 10, (size, 4)).astype(np.float32) for size in (300, 90))
    excluded = rng.random((300, 90)) < 0.3
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", rows)
    positions, products = top_k(left, right, 7, excluded=sparse(excluded))
    expected_positions, expected_products = brute_force(left, right, 7, excluded)
    assert positions.tolist() == expected_positions
    assert products.tolist() == expected_products


@pytest.mark.parametrize("order", [1, -1])
def test_long_rows_in_rising_and_falling_order(order):
    right = np.arange(5_000, dtype=np.float32)[::order, None]
    positions, products = top_k(np.ones((2, 1), np.float32), right, 100)
    assert products.tolist() == [list(range(4_999, 4_899, -1))] * 2
    np.testing.assert_array_equal(right[positions, 0], products)


def test_none_wanted():
    positions, products = top_k(np.ones((3, 1), np.float32), np.ones((4, 1), np.float32), 0)
    assert positions.shape == products.shape == (3, 0)


@pytest.mark.parametrize("n_items", [7, 300, 2_500])
def test_a_row_does_not_depend_on_the_others(n_items):
    """The same row gives the same bits alone, among others, and in any place."""
    rng = np.random.default_rng(5)
    right = rng.normal(size=(n_items, 19)).astype(np.float32)
    row = rng.normal(size=(1, 19)).astype(np.float32)
    alone = top_k(row, right, 5)
    for size in (2, 63, 1_300):
        others = rng.normal(size=(size, 19)).astype(np.float32)
        for place in {0, size // 2, size - 1}:
            others[place] = row
            among = top_k(others, right, 5, threads=3)
            np.testing.assert_array_equal(among[0][place], alone[0][0])
            np.testing.assert_array_equal(among[1][place], alone[1][0])
    everywhere = top_k(np.repeat(row, 1_300, axis=0), right, 5)[1]
    assert (everywhere == alone[1]).all()
