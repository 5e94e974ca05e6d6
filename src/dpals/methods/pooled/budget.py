"""What the releases of PooledDPALS cost, and the rank that suits a budget."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpals.release.accounting import Budget

Doubles = NDArray[np.float64]

_LARGEST_RANK = 32

FIRST_SHARE = 0.005  # of the budget, for the global mean of ratings, or how many items users have
BIAS_SHARE = 0.04  # of what is left after the weights, for a first round of biases of ratings
GROWTH = 1.15  # what a step costs, over the one before: early steps only need to find the direction
_ROUNDS_OF_COMPANY = 4
_GROWTH_OF_COMPANY = 2.5
_SPREAD_PART = 0.15


def first_shares(first: float, weight_share: float) -> tuple[float, ...]:
    """Shares of the first release, of the three about the items' weights, and of the rest."""
    return (first, 0.46 * weight_share, 0.46 * weight_share, 0.08 * weight_share, 1 - first - weight_share)


@dataclass(frozen=True)
class StepCosts:
    """What the releases of one step cost."""

    moments: int
    gram: int
    covariance: int = 0


@dataclass(frozen=True)
class Costs:
    """What the releases of the training proper cost."""

    company: tuple[StepCosts, ...]
    biases: StepCosts
    steps: tuple[StepCosts, ...]


def split_rest(
    rest: int, rank: int, steps: int, growth: float, company_share: float, bias_share: float, gram_share: float
) -> Costs:
    """Costs of everything after the weights of the items, within the rest of the budget together.

    Each step may cost `growth` times the one before. Without factors there is no need for company.
    """
    company = _rising(company_share if rank else 0.0, _GROWTH_OF_COMPANY, _ROUNDS_OF_COMPANY)
    training = _rising(1 - company.sum() - bias_share, growth, steps)
    whole = rest * (1 - 1e-9)  # so that rounding cannot add up to more than the rest

    def with_covariance(share: float) -> StepCosts:
        parts = (1 - gram_share, 0.6 * gram_share, 0.4 * gram_share) if rank else (1 - gram_share, gram_share)
        return StepCosts(*(int(whole * share * part) for part in parts))

    return Costs(
        company=tuple(
            StepCosts(int(whole * share * (1 - _SPREAD_PART)), int(whole * share * _SPREAD_PART))
            for share in company
            if rank
        ),
        biases=StepCosts(int(whole * bias_share * (1 - gram_share)), int(whole * bias_share * gram_share)),
        steps=tuple(with_covariance(share) for share in training),
    )


def _rising(total: float, growth: float, length: int) -> Doubles:
    powers = growth ** np.arange(length)
    result: Doubles = total * powers / powers.sum()
    return result


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

    Where the signal is small, biases alone do better.

    Examples
    --------
    >>> weights = np.full(1000, 300.0)
    >>> [suitable_rank(weights, noise=20.0, budget=Budget(epsilon, 1e-5)) for epsilon in (0.01, 0.2, 1.0, 10.0)]
    [0, 2, 6, 14]
    """
    signal = _signal(weights, noise, budget)
    return 0 if signal < 10 else min(round(0.17 * signal**0.8), round(1.1 * signal**0.4), _LARGEST_RANK)


def choice_rank(weights: Doubles, noise: float, budget: Budget) -> int:
    """The same for implicit feedback, which shows more of people's tastes: at most 31.

    It is one less than a multiple of 8, as vectors with one number more are fast to compute with.

    Examples
    --------
    >>> weights = np.full(1000, 300.0)
    >>> [choice_rank(weights, noise=20.0, budget=Budget(epsilon, 1e-5)) for epsilon in (0.01, 1.0, 10.0)]
    [0, 15, 31]
    """
    signal = _signal(weights, noise, budget)
    wanted = 5 * round(1.1 * signal**0.4) // 2 + 1
    return 0 if signal < 7 else min(8 * -(-wanted // 8), _LARGEST_RANK) - 1


def _signal(weights: Doubles, noise: float, budget: Budget) -> float:
    """Weight of the item that a typical rating is about, in the noise of a release of bound 1 that costs everything."""
    squares = np.sum(weights**2) - len(weights) * noise**2
    return budget.mu * max(float(squares), 0.0) / max(float(np.maximum(weights, 0.0).sum()), 1e-9)
