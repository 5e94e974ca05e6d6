"""Numbers that say how good predictions are."""

import numpy as np
from numpy.typing import ArrayLike


def rmse(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Root of the mean squared error.

    Examples
    --------
    >>> rmse([3.0, 5.0], [3.0, 3.0])
    1.4142135623730951
    """
    errors = np.asarray(predictions, np.float64) - np.asarray(truth, np.float64)
    if errors.size == 0:
        raise ValueError("there is nothing to compare")
    return float(np.sqrt(np.mean(errors**2)))
