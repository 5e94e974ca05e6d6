"""Singular vectors against dense numpy."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from dpals.methods.shared.singular_vectors import top_right_vectors


@pytest.mark.parametrize(("shape", "number"), [((40, 12), 3), ((12, 40), 3), ((6, 9), 5), ((6, 9), 20)])
def test_they_are_those_of_the_dense_matrix_with_a_fixed_sign(shape, number):
    dense = np.random.default_rng(4).normal(size=shape)
    values, vectors = top_right_vectors(csr_matrix(dense), number)
    _, expected, rows = np.linalg.svd(dense, full_matrices=False)
    number = min(number, *shape)
    np.testing.assert_allclose(values, expected[:number], rtol=1e-8)
    np.testing.assert_allclose(np.abs(np.sum(vectors * rows[:number].T, axis=0)), 1.0, rtol=1e-8)
    farthest = np.argmax(np.abs(vectors), axis=0)
    assert (vectors[farthest, np.arange(number)] > 0).all()


def test_a_matrix_of_zeros_has_orthonormal_vectors_and_no_values():
    values, vectors = top_right_vectors(csr_matrix((5, 4)), 3)
    assert not values.any()
    assert np.array_equal(vectors.T @ vectors, np.eye(3))
