import numpy as np
import pytest

from dpals.public.spectra import eigenpairs, orthonormal_basis, signs


@pytest.mark.parametrize("size", [1, 2, 30])
def test_eigenvectors_are_those_of_the_matrix_with_one_sign(size):
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size, size))
    matrix = root + root.T
    values, vectors = eigenpairs(matrix)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-10)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(size), atol=1e-10)
    assert (np.diff(values) > 0).all()
    assert (vectors.max(axis=0) == np.abs(vectors).max(axis=0)).all()


def test_the_order_of_rows_changes_no_sign():
    """LAPACK alone would give some vectors the other sign."""
    rng = np.random.default_rng(0)
    root, order = rng.normal(size=(20, 20)), rng.permutation(20)
    matrix = root @ root.T
    vectors, moved = eigenpairs(matrix).vectors, eigenpairs(matrix[order][:, order]).vectors
    np.testing.assert_allclose(moved, vectors[order], atol=1e-9)
    plain, plain_moved = (np.linalg.eigh(one).eigenvectors for one in (matrix, matrix[order][:, order]))
    assert np.abs(plain_moved - plain[order]).max() > 0.1


def test_a_basis_spans_the_columns_one_after_the_other():
    columns = np.random.default_rng(1).normal(size=(15, 4))
    basis = orthonormal_basis(columns)
    np.testing.assert_allclose(basis.T @ basis, np.eye(4), atol=1e-12)
    for k in range(1, 5):
        part = basis[:, :k]
        np.testing.assert_allclose(part @ (part.T @ columns[:, :k]), columns[:, :k], atol=1e-12)
    np.testing.assert_allclose(orthonormal_basis(-columns), basis, atol=1e-12)


def test_columns_without_direction_keep_their_sign():
    assert signs(np.zeros((3, 2))).tolist() == [1, 1]
    assert signs(np.zeros((3, 0))).shape == (0,)
