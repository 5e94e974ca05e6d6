import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpals.kernels.rows import entry_norms, entry_products, gram_matrix, pair_products, row_sums, unit_rows


@given(st.lists(st.lists(st.floats(-1e6, 1e6), max_size=5), max_size=8))
def test_each_sum_depends_on_its_row_alone(rows):
    indptr = np.cumsum([0, *map(len, rows)])
    values = np.array([value for row in rows for value in row])
    alone = [row_sums(np.array([0, len(row)]), np.array(row, float))[0] for row in rows]
    assert row_sums(indptr, values).tolist() == alone
    np.testing.assert_allclose(alone, [sum(row) for row in rows], rtol=1e-12)


@pytest.mark.parametrize("rank", [0, 1, 7, 8, 9, 40])
def test_products_are_those_of_numpy_and_depend_on_their_pair_alone(rank):
    rng = np.random.default_rng(rank)
    left, right = (rng.normal(size=(size, rank)).astype(np.float32) for size in (30, 50))
    columns = np.sort(rng.random((30, 50)).argsort(axis=1)[:, :20])
    indptr, indices, rows = np.arange(0, 601, 20), columns.ravel().astype(np.int32), np.repeat(np.arange(30), 20)
    products = entry_products(indptr, indices, left, right)
    expected = (left.astype(float) @ right.astype(float).T)[rows, indices]
    np.testing.assert_allclose(products, expected, atol=1e-5)
    assert np.array_equal(pair_products(rows, indices.astype(np.int64), left, right), products)
    alone = [
        pair_products(np.zeros(1, int), np.zeros(1, int), left[[i]], right[[j]])[0]
        for i, j in zip(rows, indices, strict=True)
    ]
    assert np.array_equal(np.array(alone, np.float32), products)


@pytest.mark.parametrize("shape", [(0, 3), (5, 0), (7, 1), (1000, 33)])
def test_gram_matrices_are_those_of_numpy(shape):
    rows = np.random.default_rng(1).normal(size=shape)
    np.testing.assert_allclose(gram_matrix(rows), rows.T @ rows, atol=1e-11)


def test_unit_rows_have_the_weights_of_their_entries_and_norm_one():
    rng = np.random.default_rng(4)
    indptr = np.array([0, 5, 5, 6, 20])
    indices = np.concatenate([np.sort(rng.choice(30, n, replace=False)) for n in np.diff(indptr)]).astype(np.int32)
    weights = rng.uniform(0, 5, 30)
    found = unit_rows(indptr, indices, weights)
    lengths = np.repeat(
        [np.sqrt((weights[row] ** 2).sum()) for row in np.split(indices, indptr[1:-1])], np.diff(indptr)
    )
    np.testing.assert_allclose(found, weights[indices] / lengths, rtol=1e-14)
    np.testing.assert_allclose(entry_norms(indptr, found), [1, 0, 1, 1], rtol=1e-14)
    alone = unit_rows(np.array([0, 14]), indices[6:], weights)
    assert np.array_equal(alone, found[6:]), "a row depends on itself alone"
    assert not unit_rows(indptr, indices, np.zeros(30)).any()
