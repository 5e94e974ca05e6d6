"""Item biases from released sums."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def shrunken_ratio(
    moments: FloatArray, weights: FloatArray, noise: float, prior: float, weight_noise: float = 0.0
) -> FloatArray:
    """Posterior mean of b from moments = weights * b + noise, where b has the prior standard deviation.

    Weights that are noisy themselves shrink it further: four times their noise variance did best on simulated ratings
    at epsilon from 0.01 to 5. Items about which little is known come out near 0.
    """
    weights = np.maximum(weights, 0.0)
    ridge = (noise / prior) ** 2 + 4 * weight_noise**2
    result: FloatArray = weights * moments / (weights**2 + ridge)
    return result
