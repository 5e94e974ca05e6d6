"""From counts to what they prove: confidence bounds on shares, and lower bounds on mu and epsilon."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta

CONFIDENCE = 0.9999
"""Of every bound of an audit: one sound method in ten thousand is called broken by chance."""

Scores = NDArray[np.float64]


def share_bounds(successes: int, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Clopper-Pearson: the true share is below the first number, and above the second, with 1 - confidence each.

    Examples
    --------
    >>> [round(bound, 3) for bound in share_bounds(40, 100, confidence=0.95)]
    [0.318, 0.487]
    """
    risk = 1 - confidence
    low = 0.0 if successes == 0 else float(beta.ppf(risk, successes, trials - successes + 1))
    high = 1.0 if successes == trials else float(beta.ppf(1 - risk, successes + 1, trials - successes))
    return low, high


def mu_lower_bound(false_alarms: int, absent: int, misses: int, present: int, confidence: float = CONFIDENCE) -> float:
    """Lower bound on mu, given how often an attack was wrong about absent and about present users.

    Under mu-Gaussian-DP every attack has Phi^-1(1 - false alarms) - Phi^-1(misses) <= mu (Dong, Roth & Su 2022). As
    in Nasr et al. (2023), both rates are replaced by upper confidence bounds. To exceed mu, one of them must be wrong,
    by more than what the other is on the safe side: for two rates alike that is far less likely than 1 - confidence.

    Examples
    --------
    >>> round(mu_lower_bound(false_alarms=16_000, absent=100_000, misses=16_000, present=100_000), 3)
    1.953
    """
    alarmed, missed = share_bounds(false_alarms, absent, confidence)[1], share_bounds(misses, present, confidence)[1]
    return max(0.0, float(-ndtri(alarmed) - ndtri(missed)))


def epsilon_lower_bound(
    hits: int, trials: int, slips: int, other_trials: int, delta: float, confidence: float = CONFIDENCE
) -> float:
    """Lower bound on epsilon, given how often an event was seen on one side and on the other.

    Under (epsilon, delta)-DP the first share is at most exp(epsilon) times the second, plus delta.

    Examples
    --------
    >>> round(epsilon_lower_bound(hits=50_000, trials=100_000, slips=10_000, other_trials=100_000, delta=1e-5), 2)
    1.56
    """
    low = share_bounds(hits, trials, confidence)[0] - delta
    high = share_bounds(slips, other_trials, confidence)[1]
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def epsilon_from_scores(
    absent: Scores, present: Scores, expected: Callable[[Scores], tuple[Scores, Scores]], delta: float
) -> float:
    """The larger of what high scores and low scores prove about epsilon, those of present users being higher.

    Where scores count as high or low is decided before they are looked at: where the bound should be best if scores
    are distributed as ``expected`` says, which takes scores and returns the shares of absent and of present users
    that lie below.

    Two sides with two bounds each may be wrong, so each of the four has a quarter of the risk.
    """
    confidence = 1 - (1 - CONFIDENCE) / 4
    candidates = np.linspace(-6.0, 6.0, 97)
    below_absent, below_present = expected(candidates)
    sides = []
    for sign, hit, slip in ((1, 1 - below_present, 1 - below_absent), (-1, below_absent, below_present)):
        promised = [
            epsilon_lower_bound(
                round(one * len(present)), len(present), round(other * len(absent)), len(absent), delta, confidence
            )
            for one, other in zip(hit, slip, strict=True)
        ]
        hits, slips = (present, absent) if sign > 0 else (absent, present)
        limit = sign * candidates[int(np.argmax(promised))]
        found = int(np.sum(sign * hits > limit)), len(hits), int(np.sum(sign * slips > limit)), len(slips)
        sides.append(epsilon_lower_bound(*found, delta, confidence))
    return max(sides)


def expected_mu_lower_bound(mu: float, threshold: float, trials: int, noise: float = 1.0) -> float:
    """The lower bound on mu to expect from scores N(0, noise^2) of absent and N(mu, noise^2) of present users.

    Examples
    --------
    >>> round(expected_mu_lower_bound(0.268, 0.134, trials=2_000_000), 3)
    0.261
    """
    alarms, misses = _tail(threshold / noise), _tail((mu - threshold) / noise)
    return mu_lower_bound(round(alarms * trials), trials, round(misses * trials), trials)


def trials_to_refute(mu: float, reach: float = 1.0) -> int:
    """How many trials it takes until noise half as large as claimed should be noticed; at most 2^40.

    ``reach`` is the share of the bounds that the canaries reach.

    Examples
    --------
    >>> trials_to_refute(mu=0.268)
    2048
    """
    trials = 1
    while trials < 2**40 and not expected_mu_lower_bound(reach * mu, mu / 2, trials, noise=0.5) > mu:
        trials *= 2
    return trials


def _tail(value: float) -> float:
    """P(Z > value)."""
    return math.erfc(value / math.sqrt(2)) / 2
