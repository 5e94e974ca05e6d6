"""Eigenvectors and other bases, of which mathematics allows several, in one form.

The sign of an eigenvector is anyone's choice, and a machine makes it by rounding. What is released later carries noise
along these vectors, so a sign that flips, or a basis that turns, gives another model. Vectors that belong to equal
eigenvalues turn at the least change of the matrix: take eigenvectors of a matrix from before its eigenvalues are cut
to a common limit, never after.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


class Eigenpairs(NamedTuple):
    """Eigenvalues, the smallest first, and eigenvectors, one column each."""

    values: Doubles
    vectors: Doubles


def eigenpairs(matrix: Doubles) -> Eigenpairs:
    """Those of a symmetric matrix. The entry of a vector that is farthest from zero is positive.

    Examples
    --------
    >>> values, vectors = eigenpairs(np.array([[3.0, 4.0], [4.0, -3.0]]))
    >>> values.round(6), (vectors * 5**0.5).round(6)
    (array([-5.,  5.]), array([[-1.,  2.],
           [ 2.,  1.]]))
    """
    values, vectors = np.linalg.eigh(matrix)
    return Eigenpairs(values, vectors * signs(vectors))


def orthonormal_basis(columns: Doubles) -> Doubles:
    """Orthonormal columns, the first k of which span what the first k of these do, with signs as in `eigenpairs`."""
    basis = np.linalg.qr(columns).Q
    result: Doubles = basis * signs(basis)
    return result


def signs(columns: Doubles) -> Doubles:
    """For each column 1, or -1 where its entry that is farthest from zero is negative.

    Examples
    --------
    >>> signs(np.array([[1.0, 2.0], [-3.0, 1.0]]))
    array([-1.,  1.])
    """
    farthest = np.argmax(np.abs(columns), axis=0)
    return np.where(columns[farthest, np.arange(columns.shape[1])] < 0, -1.0, 1.0)
