"""The expected bias of every item, over the possible weights of the item."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpals.kernels.threads import in_threads

Doubles = NDArray[np.float64]


def posterior_means(
    weights: Doubles, precision: float, evidence: Doubles, sampling: Doubles, variance: float
) -> Doubles:
    """Expected biases b, where sums y = A (b + s - c) + noise were seen, and one of several weights A is the true one.

    Before looking, b is normal with the given variance, s with `sampling` / A, and all weights are equally likely. The
    mean is over the weights in proportion to their size.

    Parameters
    ----------
    weights
        The possible weights, a row for each item.
    precision
        The sum over the observations of an item of 1 over the noise variance; the sums below have the same factors.
    evidence
        Four columns: the sums of y, c, c^2 and y c.
    sampling
        One number per item.
    variance
        Of the biases.
    """
    result = np.empty(len(weights))

    def work(start: int, stop: int) -> None:
        _posterior_means(weights, precision, evidence, sampling, variance, start, stop, result)

    in_threads(work, np.arange(len(weights) + 1))
    return result


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _posterior_means(weights, precision, evidence, sampling, variance, start, stop, result):  # type: ignore[no-untyped-def]
    n_values = weights.shape[1]
    means, likelihoods = np.empty(n_values), np.empty(n_values)
    for j in range(start, stop):
        largest = -np.inf
        for k in range(n_values):
            weight = weights[j, k]
            share = weight * variance / (weight * variance + sampling[j]) if weight > 0 else 0.0
            known = weight * weight * precision
            inverse = share / variance  # of the variance of b + s
            direction = weight * (weight * evidence[j, 1] + evidence[j, 0])
            means[k] = share * direction / (known + inverse) if weight > 0 else 0.0
            likelihoods[k] = -weight * (weight * evidence[j, 2] + 2 * evidence[j, 3]) / 2
            if weight > 0:
                likelihoods[k] += (direction * direction / (known + inverse) + np.log(inverse / (known + inverse))) / 2
            largest = max(largest, likelihoods[k])
        total, sum_of_means = 0.0, 0.0
        for k in range(n_values):
            chance = weights[j, k] * np.exp(likelihoods[k] - largest)
            total += chance
            sum_of_means += chance * means[k]
        result[j] = sum_of_means / total if total > 0 else 0.0
