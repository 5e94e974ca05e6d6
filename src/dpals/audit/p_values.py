"""How surprising a sample is: p-values of what noise and tries should be, and when a check fails for them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.special import ndtr, ndtri

from dpals.audit.report import Check
from dpals.kernels.hashing import hashed_uniform

RISK = 1e-4
"""The chance that a sound method fails the checks of one level."""
CHECKS = 10
"""A level has at most so many checks that chance can fail: each of them may use up this part of the risk."""

FEWEST_EXPECTED = 100
"""In a cell of a chi-square test, so that the distribution is that of its p-value even where it is small."""


def judge_p_values(question: str, p_values: ArrayLike, found: str) -> Check:
    """Failed where the smallest p-value, times how many there are, is below the check's part of the risk.

    Examples
    --------
    >>> judged("the coin is fair", [0.3, 1e-9], "2 coins").verdict
    'failed'
    """
    values = np.atleast_1d(np.asarray(p_values, float))
    limit, smallest = limit_for(len(values)), float(values.min())
    passed = smallest >= limit  # written so that NaN fails too
    found += f"; smallest of {len(values)} p-values: {smallest:.2g}, {'not below' if passed else 'limit'} {limit:.1g}"
    return Check(question, "passed" if passed else "failed", found)


def limit_for(n_values: int) -> float:
    """Smallest p-value that chance explains, where a check has so many of them."""
    return RISK / CHECKS / n_values


def standardised(noise: NDArray[np.int64], sigmas: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Standard normal numbers, if the noise is round(sigma N(0, 1)), for every sigma.

    Each integer stands for an interval of the normal distribution. A number in it is chosen by a hash of `seed`, which
    is to be another one for each table: so the result is exactly normal, and nothing is lost where sigma is small.

    Examples
    --------
    >>> standardised(np.array([[-3, 0, 2000]]), np.array([1.0, 1000.0, 1000.0]), seed=0).round(1)
    array([[-2.6,  0. ,  2. ]])
    """
    within = hashed_uniform(seed, np.arange(noise.size)).reshape(noise.shape)
    size = np.abs(noise).astype(float)
    inner, outer = ndtr((0.5 - size) / sigmas), ndtr((-0.5 - size) / sigmas)
    scores = np.clip(ndtri(outer + within * (inner - outer)), -40, 40)
    return np.where(noise < 0, scores, -scores)


def variance_p_value(scores: NDArray[np.float64]) -> float:
    """Of the sum of squares of standard normal numbers, both too small and too large."""
    total, n = float(np.sum(scores**2)), scores.size
    return min(1.0, 2 * float(min(stats.chi2.cdf(total, n), stats.chi2.sf(total, n))))


def samples_for_half_variance(limit: float) -> int:
    """How many numbers show, all but surely, that their variance is half of what it should be.

    Examples
    --------
    >>> 200 < enough_for_half_variance(1e-7) < 500
    True
    """
    n = np.arange(10, 2000)
    return int(n[np.argmax(stats.chi2.cdf(2 * stats.chi2.ppf(limit / 2, n), n) > 0.9999)])


def coin_p_values(heads: ArrayLike, tosses: ArrayLike) -> NDArray[np.float64]:
    """Of counts of heads of fair coins.

    Examples
    --------
    >>> coin_surprise([5, 0], 10).round(3)
    array([1.   , 0.002])
    """
    heads, tosses = np.atleast_1d(np.asarray(heads, np.int64)), np.asarray(tosses, np.int64)
    below, above = stats.binom.cdf(heads, tosses, 0.5), stats.binom.sf(heads - 1, tosses, 0.5)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(below, above)))


def correlation_p_values(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the correlation between two rows of numbers, of which one has independent normal numbers; row by row.

    The square of the cosine between a normal vector and any other one has a beta distribution.
    """
    products = np.sum(one * other, axis=-1) ** 2
    share = products / np.maximum(np.sum(one**2, axis=-1) * np.sum(other**2, axis=-1), 1e-300)
    return np.atleast_1d(stats.beta.sf(np.minimum(share, 1.0), 0.5, (one.shape[-1] - 1) / 2))


def chi_square_p_value(counts: ArrayLike, chances: ArrayLike) -> float:
    """Of counts, by Pearson's chi-square, after joining neighbouring cells until each is expected often enough.

    Examples
    --------
    >>> count_surprise([700, 500, 1], [0.5, 0.49, 0.01]) < 1e-3
    True
    """
    counts, chances = np.asarray(counts, float), np.asarray(chances, float)
    expected = chances / chances.sum() * counts.sum()
    starts, waiting = [0], 0.0
    for cell, more in enumerate(expected):
        if waiting >= FEWEST_EXPECTED and expected[cell:].sum() >= FEWEST_EXPECTED:
            starts, waiting = [*starts, cell], 0.0
        waiting += more
    observed, wanted = np.add.reduceat(counts, starts), np.add.reduceat(expected, starts)
    return 1.0 if len(starts) == 1 else float(stats.chisquare(observed, wanted).pvalue)
