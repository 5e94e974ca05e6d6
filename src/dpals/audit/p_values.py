"""P-values of noise and scores under what is claimed of them, and when a check fails because of them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.special import ndtr, ndtri

from dpals.audit.report import Check
from dpals.kernels.hashing import hashed_uniform

RISK = 1e-4
"""The chance that a sound method fails the checks of one level."""
CHECKS = 10
"""A level has at most so many checks that can fail by chance: each may use up this part of the risk."""

FEWEST_EXPECTED = 100
"""Expected count of a cell of a chi-square test: enough for small p-values to be accurate."""


def judge_p_values(question: str, p_values: ArrayLike, found: str) -> Check:
    """A check that fails where the smallest p-value, times their number, is below the check's part of the risk.

    Examples
    --------
    >>> judge_p_values("the coin is fair", [0.3, 1e-9], "2 coins").verdict
    'failed'
    """
    values = np.atleast_1d(np.asarray(p_values, float))
    limit, smallest = limit_for(len(values)), float(values.min())
    passed = smallest >= limit  # written so that NaN fails too
    found += f"; smallest of {len(values)} p-values: {smallest:.2g}, {'not below' if passed else 'limit'} {limit:.1g}"
    return Check(question, "passed" if passed else "failed", found)


def limit_for(n_values: int) -> float:
    """The smallest p-value of a check that passes, where it has so many of them."""
    return RISK / CHECKS / n_values


def standardised(noise: NDArray[np.int64], sigmas: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Exactly standard normal numbers, if the noise is round(sigma N(0, 1)), however small sigma is.

    Each integer stands for an interval of the normal distribution. A hash of `seed`, which must differ from table to
    table, chooses a number in it.

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
    """Of the sum of squares of standard normal numbers, on both sides."""
    total, n = float(np.sum(scores**2)), scores.size
    return min(1.0, 2 * float(min(stats.chi2.cdf(total, n), stats.chi2.sf(total, n))))


def samples_for_half_variance(limit: float) -> int:
    """How many numbers are all but certain to show that their variance is half of what it should be.

    Examples
    --------
    >>> 200 < samples_for_half_variance(1e-7) < 500
    True
    """
    n = np.arange(10, 2000)
    return int(n[np.argmax(stats.chi2.cdf(2 * stats.chi2.ppf(limit / 2, n), n) > 0.9999)])


def coin_p_values(heads: ArrayLike, tosses: ArrayLike) -> NDArray[np.float64]:
    """Of the number of heads of fair coins, on both sides.

    Examples
    --------
    >>> coin_p_values([5, 0], 10).round(3)
    array([1.   , 0.002])
    """
    heads, tosses = np.atleast_1d(np.asarray(heads, np.int64)), np.asarray(tosses, np.int64)
    below, above = stats.binom.cdf(heads, tosses, 0.5), stats.binom.sf(heads - 1, tosses, 0.5)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(below, above)))


def correlation_p_values(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the correlation between independent normal numbers and any others, row by row.

    The squared cosine between a normal vector and any other one has a beta distribution.
    """
    products = np.sum(one * other, axis=-1) ** 2
    share = products / np.maximum(np.sum(one**2, axis=-1) * np.sum(other**2, axis=-1), 1e-300)
    return np.atleast_1d(stats.beta.sf(np.minimum(share, 1.0), 0.5, (one.shape[-1] - 1) / 2))


def chi_square_p_value(counts: ArrayLike, chances: ArrayLike) -> float:
    """Of counts, by Pearson's test, after joining neighbouring cells until each is expected often enough.

    Examples
    --------
    >>> chi_square_p_value([700, 500, 1], [0.5, 0.49, 0.01]) < 1e-3
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
