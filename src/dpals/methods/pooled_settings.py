"""What the arguments of PooledDPALS may be, what its releases cost, and the rank that suits a budget."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpals.methods.constraints import COUNT, NOT_NEGATIVE, POSITIVE, SHARE, Within
from dpals.release.accounting import Budget

Doubles = NDArray[np.float64]

_LARGEST_RANK = 32
_LEAST_SIGNAL = 7.0  # below it factors cost more than they tell

CONSTRAINTS: dict[str, Within] = {
    "rank": Within(low=0, closed=True, whole=True, optional=True),
    "steps": COUNT,
    "growth": POSITIVE,
    "weight_exponent": NOT_NEGATIVE,
    "clip": POSITIVE,
    "noise_scale": POSITIVE,
    "taste_scale": POSITIVE,
    "bias_scale": POSITIVE,
    "user_bias_ridge": POSITIVE,
    "caution": Within(high=1, closed=True),
    "fading": Within(high=1, closed=True),
    "settling": Within(high=1, closed=True),
    "mean_share": SHARE,
    "weight_share": SHARE,
    "bias_share": SHARE,
    "gram_share": SHARE,
}


@dataclass(frozen=True)
class StepCosts:
    """What the releases of one step cost."""

    moments: int
    gram: int
    covariance: int


@dataclass(frozen=True)
class Costs:
    """What each release of a training run costs."""

    mean: int
    popularity: int
    weights: int
    breadths: int
    biases: StepCosts
    steps: tuple[StepCosts, ...]


def split_budget(
    budget: Budget,
    steps: int,
    growth: float,
    mean_share: float,
    weight_share: float,
    bias_share: float,
    gram_share: float,
) -> Costs:
    """Costs of all releases: fixed before the first one, and within the budget together.

    What the first shares leave goes to the steps, each of which may cost `growth` times the one before.
    """
    growing = growth ** np.arange(steps)
    growing *= (1 - mean_share - weight_share - bias_share) / growing.sum()
    parts = (1 - gram_share, 0.6 * gram_share, 0.4 * gram_share)
    mean, popularity, weights, breadths, *training = budget.split(
        mean_share,
        *(weight_share * part for part in (0.46, 0.46, 0.08)),
        *np.outer([bias_share, *growing], parts).ravel(),
    )
    biases, *others = [StepCosts(*training[at : at + 3]) for at in range(0, len(training), 3)]
    return Costs(mean, popularity, weights, breadths, biases, tuple(others))


def rises_above(weights: Doubles, noise: float) -> bool:
    """Whether released weights are more than noise: their sum of squares is 3 standard deviations above its mean.

    Examples
    --------
    >>> rises_above(np.full(100, 2.0), noise=1.0), rises_above(np.full(100, 1.0), noise=1.0)
    (True, False)
    """
    squares = np.sum(weights**2) / noise**2
    return bool(squares > len(weights) + 3 * np.sqrt(2 * len(weights)))


def suitable_rank(weights: Doubles, noise: float, budget: Budget) -> int:
    """The rank that did best on simulated data, from released weights of the items.

    The signal is the weight of the item that a typical rating is about, in units of the noise of a release of
    bound 1 that costs everything. Where it is small, biases alone do better.

    Examples
    --------
    >>> weights = np.full(1000, 300.0)
    >>> [suitable_rank(weights, noise=20.0, budget=Budget(epsilon, 1e-5)) for epsilon in (0.01, 1.0, 10.0)]
    [0, 6, 14]
    """
    squares = np.sum(weights**2) - len(weights) * noise**2
    typical = max(float(squares), 0.0) / max(float(np.maximum(weights, 0.0).sum()), 1e-9)
    signal = budget.mu * typical
    return 0 if signal < _LEAST_SIGNAL else min(round(1.1 * signal**0.4), _LARGEST_RANK)
