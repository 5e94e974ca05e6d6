"""The item half of a step: item factors from released Gram matrices and right-hand sides."""

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


def frequent_size(n_items: int, fraction: float) -> int:
    """ceil(fraction * n_items), but at least 1; rounded first, because 0.07 * 100 is above 7 in floats."""
    return max(1, int(np.ceil(round(fraction * n_items, 9))))


def most_frequent(counts: Doubles, fraction: float) -> NDArray[np.bool_]:
    """The ceil(fraction * m) items with the largest released counts."""
    size = frequent_size(len(counts), fraction)
    chosen = np.zeros(len(counts), bool)
    chosen[np.argsort(-counts, kind="stable")[:size]] = True
    return chosen


def count_ridges(ridge: float, counts: Doubles, exponent: float) -> Doubles:
    """ridge * count^exponent over its mean, from released counts that may be negative: they start at 1."""
    powers = np.maximum(counts, 1.0) ** exponent
    ridges: Doubles = ridge * powers / powers.mean()
    return ridges


def unpacked(triangles: Doubles, rank: int) -> Doubles:
    """Symmetric matrices from their upper triangles."""
    matrices = np.empty((*triangles.shape[:-1], rank, rank))
    rows, columns = np.triu_indices(rank)
    matrices[..., rows, columns] = triangles
    matrices[..., columns, rows] = triangles
    return matrices


def projected(matrices: Doubles) -> Doubles:
    """The nearest positive semi-definite matrices: negative eigenvalues become 0."""
    values, vectors = np.linalg.eigh(matrices)
    result: Doubles = (vectors * np.maximum(values, 0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return result


def orthonormalised(factors: Doubles) -> Doubles:
    """The nearest matrix whose columns are orthogonal, with entries of mean square 1."""
    left, _, right = np.linalg.svd(factors, full_matrices=False)
    result: Doubles = left @ right * np.sqrt(len(factors))
    return result
