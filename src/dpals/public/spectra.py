"""Eigenvectors and other bases in a canonical form, where mathematics allows several.

The sign of an eigenvector is arbitrary, and rounding decides it. Later releases add noise along these vectors, so a
flipped sign or a rotated basis gives another model. Vectors of equal eigenvalues rotate at the least change of the
matrix: take the eigenvectors of a matrix before its eigenvalues are cut to a common limit, never after.
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
    """Those of a symmetric matrix. The entry of each vector that is farthest from zero is positive.

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
    """Orthonormal columns: for every k, the first k span the same as the first k given. Signs as in `eigenpairs`."""
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
