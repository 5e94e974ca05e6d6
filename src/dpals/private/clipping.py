"""Clipping of a user's contribution, in real numbers. The mechanism checks it again in integers.

These are the parts. What a method clips, and to which norm, is where its contribution is computed: for the gradients of
DPSGD and SGLD in `private.gradients`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpals.kernels.rows import entry_norms, row_norms, scale_rows


def clip_rows(vectors: NDArray[np.floating[Any]], largest: float) -> NDArray[np.float64]:
    """Scale each row down to the norm `largest` if it is longer; zero stays zero."""
    scale = np.minimum(1.0, largest / np.maximum(row_norms(vectors), 1e-300))
    return np.asarray(vectors, np.float64) * scale[:, None]


def clip_users(indptr: NDArray[np.int64], values: NDArray[np.float64], largest: float | NDArray[np.float64]) -> None:
    """Scale each user's values down, in place, to a norm of at most `largest`, one number or one per user."""
    scale_rows(indptr, values, np.minimum(1.0, largest / np.maximum(entry_norms(indptr, values), 1e-12)))


def clip_entries(values: NDArray[np.floating[Any]], largest: float) -> NDArray[np.float64]:
    """Clip each entry to [-largest, largest]."""
    return np.clip(np.asarray(values, np.float64), -largest, largest)
