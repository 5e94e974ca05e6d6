"""Singular vectors of ratings, for the methods that are not private."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds

from dpals.public.initial_factors import random_factors
from dpals.public.spectra import signs

Doubles = NDArray[np.float64]


def top_right_vectors(matrix: csr_matrix, number: int) -> tuple[Doubles, Doubles]:
    """The largest singular values, largest first, and the right singular vectors that go with them, as columns.

    The entry of a vector that is farthest from zero is positive. There are at most as many as the matrix has rows and
    columns. Of zeros they are any vectors.

    Examples
    --------
    >>> values, vectors = top_right_vectors(csr_matrix(np.diag([1.0, 5.0, 3.0])), 2)
    >>> values.round(6), abs(vectors).round(6)
    (array([5., 3.]), array([[0., 0.],
           [1., 0.],
           [0., 1.]]))
    """
    shorter = min(matrix.shape)
    if not matrix.data.any():
        size = min(number, shorter)
        return np.zeros(size), np.eye(matrix.shape[1], size)
    if number >= shorter - 1:  # Lanczos' method cannot find all vectors
        _, values, rows = np.linalg.svd(matrix.toarray(), full_matrices=False)
    else:
        _, values, rows = svds(matrix, k=number, v0=random_factors(shorter, 1, seed=0)[:, 0])
    order = np.argsort(-values)[:number]
    vectors = rows[order].T
    return values[order], vectors * signs(vectors)
