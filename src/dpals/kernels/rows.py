"""Sums, norms and products row by row, of sparse (CSR) and dense matrices."""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dpals.kernels.small_matrices import add_product, padded, row_product
from dpals.kernels.threads import in_threads


def row_sums(indptr: NDArray[np.int64], values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Sum of each row, in float64 and in the order of its entries; 0 for empty rows.

    A row's sum depends on that row alone, to the last bit. Privacy rests on this: a running total over all rows
    would let one user change the rounding of every other.

    Examples
    --------
    >>> row_sums(np.array([0, 2, 2, 3]), np.array([1.0, 2.0, 5.0]))
    array([3., 0., 5.])
    """
    result = np.empty(len(indptr) - 1)
    _row_sums(indptr, values, result)
    return result


@numba.njit(cache=True, nogil=True)
def _row_sums(indptr, values, result):  # type: ignore[no-untyped-def]
    for i in range(len(result)):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += values[e]
        result[i] = total


def entry_norms(indptr: NDArray[np.int64], values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Euclidean norm of the entries of each row, in float64; like `row_sums`, row by row.

    Examples
    --------
    >>> entry_norms(np.array([0, 2, 2]), np.array([3.0, 4.0]))
    array([5., 0.])
    """
    result = np.empty(len(indptr) - 1)
    _entry_norms(indptr, values, result)
    return result


@numba.njit(cache=True, nogil=True)
def _entry_norms(indptr, values, result):  # type: ignore[no-untyped-def]
    for i in range(len(result)):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += np.float64(values[e]) * np.float64(values[e])
        result[i] = np.sqrt(total)


def row_norms(matrix: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Euclidean norm of each row of a dense matrix, in float64; like `row_sums`, row by row.

    Examples
    --------
    >>> row_norms(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([5., 0.])
    """
    result = np.empty(len(matrix))
    _row_norms(matrix, result)
    return result


@numba.njit(cache=True, nogil=True)
def _row_norms(matrix, result):  # type: ignore[no-untyped-def]
    for i in range(len(result)):
        total = 0.0
        for k in range(matrix.shape[1]):
            total += np.float64(matrix[i, k]) * np.float64(matrix[i, k])
        result[i] = np.sqrt(total)


@numba.njit(cache=True, nogil=True)
def scale_rows(indptr, values, factors):  # type: ignore[no-untyped-def]
    """Multiply the entries of each row by the row's factor, in place."""
    for i in range(len(factors)):
        for e in range(indptr[i], indptr[i + 1]):
            values[e] *= factors[i]


def unit_rows(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """For every entry (i, j) weights[j], divided by the norm of these weights in row i; like `row_sums`, row by row.

    Examples
    --------
    >>> unit_rows(np.array([0, 2, 2, 3]), np.array([0, 1, 1], np.int32), np.array([3.0, 4.0]))
    array([0.6, 0.8, 1. ])
    """
    result = np.empty(len(indices))
    in_threads(lambda start, stop: _unit_rows(indptr, indices, weights, start, stop, result), indptr)
    return result


@numba.njit(cache=True, nogil=True)
def _unit_rows(indptr, indices, weights, start, stop, result):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            weight = weights[indices[e]]
            result[e] = weight
            total += weight * weight
        factor = 1 / max(np.sqrt(total), 1e-300)
        for e in range(indptr[i], indptr[i + 1]):
            result[e] *= factor


def entry_products(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], left: NDArray[np.float32], right: NDArray[np.float32]
) -> NDArray[np.float32]:
    """left[i] . right[j] for every entry (i, j), each from these two rows alone, the same bits on any processor.

    Examples
    --------
    >>> left, right = np.eye(2, dtype=np.float32), np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    >>> entry_products(np.array([0, 2, 3]), np.array([0, 2, 1], np.int32), left, right)
    array([1., 5., 4.], dtype=float32)
    """
    result = np.empty(len(indices), np.float32)
    others = _filled(right)
    in_threads(lambda start, stop: _entry_products(indptr, indices, left, others, start, stop, result), indptr)
    return result


@numba.njit(cache=True, nogil=True)
def _entry_products(indptr, indices, left, right, start, stop, result):  # type: ignore[no-untyped-def]
    row = np.zeros((1, right.shape[1]), np.float32)
    for i in range(start, stop):
        for k in range(left.shape[1]):
            row[0, k] = left[i, k]
        for e in range(indptr[i], indptr[i + 1]):
            result[e] = row_product(row, 0, right, indices[e])


def pair_products(
    rows: NDArray[np.int64], columns: NDArray[np.int64], left: NDArray[np.float32], right: NDArray[np.float32]
) -> NDArray[np.float32]:
    """left[i] . right[j] for pairs of a row i and a column j; like `entry_products`, pair by pair.

    Examples
    --------
    >>> left, right = np.eye(2, dtype=np.float32), np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    >>> pair_products(np.array([0, 1]), np.array([2, 2]), left, right)
    array([5., 6.], dtype=float32)
    """
    result, sides = np.empty(len(rows), np.float32), (_filled(left), _filled(right))
    in_threads(lambda start, stop: _pair_products(rows, columns, *sides, start, stop, result), np.arange(len(rows) + 1))
    return result


@numba.njit(cache=True, nogil=True)
def _pair_products(rows, columns, left, right, start, stop, result):  # type: ignore[no-untyped-def]
    for e in range(start, stop):
        result[e] = row_product(left, rows[e], right, columns[e])


def _filled(matrix: NDArray[np.floating[Any]]) -> NDArray[Any]:
    """The matrix with zeros behind its rows, up to whole vectors."""
    filled = np.zeros((len(matrix), padded(matrix.shape[1], matrix.dtype)), matrix.dtype)
    filled[:, : matrix.shape[1]] = matrix
    return filled


def gram_matrix(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """rows.T @ rows, summed in the order of the rows, with the same bits on any processor.

    Examples
    --------
    >>> gram_matrix(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[10., 14.],
           [14., 20.]])
    """
    upper = np.triu(_gram_matrix(_filled(rows))[: rows.shape[1], : rows.shape[1]])
    gram: NDArray[np.float64] = upper + np.triu(upper, 1).T
    return gram


@numba.njit(cache=True, nogil=True)
def _gram_matrix(rows):  # type: ignore[no-untyped-def]
    product = np.zeros((rows.shape[1], rows.shape[1]), rows.dtype)
    add_product(product, rows, rows, len(rows))
    return product


def row_combinations(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], weights: NDArray[np.float64], features: NDArray[np.float64]
) -> NDArray[np.float64]:
    """sum_j weights_ij features[j] for every row i, each row on its own.

    Examples
    --------
    >>> features = np.array([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    >>> row_combinations(np.array([0, 2, 2]), np.array([0, 1], np.int32), np.array([2.0, 3.0]), features)
    array([[2., 3.],
           [0., 0.]])
    """
    result = np.zeros((len(indptr) - 1, features.shape[1]))
    in_threads(lambda start, stop: _row_combinations(indptr, indices, weights, features, start, stop, result), indptr)
    return result


@numba.njit(cache=True, nogil=True)
def _row_combinations(indptr, indices, weights, features, start, stop, result):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        row = result[i]
        for e in range(indptr[i], indptr[i + 1]):
            weight, feature = weights[e], features[indices[e]]
            for k in range(len(row)):
                row[k] += weight * feature[k]
