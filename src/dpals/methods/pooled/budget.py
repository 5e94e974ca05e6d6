"""What PooledDPALS is given, what its releases cost, and the rank that suits a budget."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from dpals.release.accounting import Budget

Doubles = NDArray[np.float64]

_LARGEST_RANK = 31  # vectors have one coordinate more, and kernels work on eight
_SHORT_HISTORY = 30.0  # ratings of a user, with which the signal counts half
_MORE_WEIGHT = 0.25  # share of the rest that goes to item weights if nothing is known of them
_SOME_WEIGHT = 1e-4  # in any case: every release costs something
_LEAST_SIGNAL = 430.0  # times the ratings of a user, if these are many, from which on factors pay
_FEW_RATINGS = 8.0  # of a user, with which it must be twice as much
_LEAST_USE = 4000.0  # signal times popular items from which on factors of implicit feedback pay
_FEW_POPULAR = 600.0  # items, for which the signal must be half as large as for none
_FEW_ITEMS = 20.0  # of a user, with which it must be twice as large

FIRST_SHARE = 0.005  # of the budget, for the global mean of ratings, or how many items users have
SCALE_SHARES = (0.0025, 0.01)  # of the budget, for the typical distance of ratings from the mean, and their spread
SQUARES_SHARE = 0.0025  # of the budget, for squared weights of the items
CENTRE_SHARE = 0.005  # of the budget, for the global mean again, at the end
BIAS_SHARE = 0.04  # of what is left for the training, for a first round of biases of ratings
FIT_SHARE = 0.01  # of each step, for how well users' ratings are fitted
HISTORY_SHARE = 0.003  # of each step, for what users' histories say about their vectors, and once before them
GROWTH = 1.15
"""Each step costs this many times what the one before cost: early steps only need to find the direction."""
_MOST_GROWTH = 100.0  # however many steps there are, so that the first can be paid for
_ROUNDS = 4  # of co-occurrence
_ROUND_GROWTH = 2.5
_HALF_SIGNAL = 40.0  # with which co-occurrence gets half its share
_ROUND_GRAM_SHARE = 0.15


@dataclass(frozen=True)
class StepCosts:
    """What the releases of one step, or of one round of co-occurrence, cost."""

    moments: int
    gram: int
    covariance: int = 0
    fit: int = 0
    history: int = 0


@dataclass(frozen=True)
class Costs:
    """What the releases of the training proper cost."""

    cooccurrence: tuple[StepCosts, ...]
    histories: int
    biases: StepCosts
    steps: tuple[StepCosts, ...]


@dataclass(frozen=True)
class Shares:
    """How the budget is divided.

    Parameters
    ----------
    first, weights
        Shares of the whole budget for the first release, and for the popularity and weights of the items.
    cooccurrence, biases
        Shares of the rest for the rounds of co-occurrence and the bias step. The steps get what is left.
    gram, fit, history
        Shares of each step for the matrices that all items share, for how well users' ratings are fitted, and for what
        users' histories say about their vectors.
    """

    first: float
    weights: float
    cooccurrence: float
    biases: float
    gram: float
    fit: float = 0.0
    history: float = 0.0

    def before_training(self, *others: float) -> tuple[float, ...]:
        """Shares of the first release, of the three releases about the items' weights, of others, and of the rest."""
        shares = (self.first, 0.2 * self.weights, 0.72 * self.weights, 0.08 * self.weights, *others)
        return (*shares, 1 - sum(shares))

    def training(self, rest: int, rank: int, steps: int, signal: float = np.inf) -> Costs:
        """Costs of everything after the weights of the items. Together they are at most the rest of the budget.

        Without factors there is no use for co-occurrence, and with a small signal little.
        """
        rounds = _rising(use_of_factors(signal) * (rank > 0) * self.cooccurrence, _ROUND_GROWTH, _ROUNDS)
        histories = self.history * (rank > 0)
        training = _rising(1 - rounds.sum() - self.biases - histories, GROWTH, steps)
        whole = rest * (1 - 1e-9)  # so that rounding cannot add up to more than the rest

        def step(share: float, covariance: float) -> StepCosts:
            history = self.history * (covariance > 0)
            left = 1 - self.gram - self.fit - history
            parts = (left, (1 - covariance) * self.gram, covariance * self.gram, self.fit, history)
            return StepCosts(*(int(whole * share * part) for part in parts))

        return Costs(
            cooccurrence=tuple(
                StepCosts(int(whole * share * (1 - _ROUND_GRAM_SHARE)), int(whole * share * _ROUND_GRAM_SHARE))
                for share in rounds
                if rank
            ),
            histories=int(whole * histories),
            biases=step(self.biases, covariance=0.0),
            steps=tuple(step(share, covariance=0.4 if rank else 0.0) for share in training),
        )


def spread_over(costs: Sequence[StepCosts], number: int) -> list[StepCosts]:
    """The same costs in all, over another number of steps.

    Examples
    --------
    >>> [step.moments for step in spread_over([StepCosts(moments=300, gram=10)], 2)]
    [139, 160]
    """
    shares = _rising(1 - 1e-9, GROWTH, number)
    totals = [sum(kind) for kind in zip(*map(astuple, costs), strict=True)]
    return [StepCosts(*(int(total * share) for total in totals)) for share in shares]


@dataclass(frozen=True)
class Settings:
    """The arguments of PooledDPALS that matter for ratings and for implicit feedback."""

    rank: int | None
    steps: int
    weight_exponent: float
    clip: float
    shares: Shares
    seed: int


def _rising(total: float, growth: float, length: int) -> Doubles:
    powers = min(growth, _MOST_GROWTH ** (1 / length)) ** np.arange(length)
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


def signal_of_weights(weights: Doubles, noise: float, budget: Budget) -> float:
    """Weight of a typical rating's item, in units of the noise of a release of sensitivity 1 at the whole budget."""
    squares = np.sum(weights**2) - len(weights) * noise**2
    return budget.mu * max(float(squares), 0.0) / max(float(np.maximum(weights, 0.0).sum()), 1e-9)


def more_for_weights(known: float) -> float:
    """Share of the rest that goes to a second release of the item weights, given how much of them is known, up to 1.

    Examples
    --------
    >>> [round(more_for_weights(known), 3) for known in (0.0, 0.6, 1.0)]
    [0.25, 0.04, 0.0]
    """
    return max(_MORE_WEIGHT * (1 - known) ** 2, _SOME_WEIGHT)


def signal_of_tastes(signal: float, typical_count: float) -> float:
    """How much there is to learn about tastes, given the signal in the weights of the items; 0 if it is too little.

    Users have `typical_count` ratings. Few say little about the user's vector, however well the items are
    known.

    Examples
    --------
    >>> [round(signal_of_tastes(30.0, count), 1) for count in (2.0, 20.0, 200.0)]
    [0.0, 0.0, 26.1]
    """
    enough = signal * typical_count**2 > _LEAST_SIGNAL * (typical_count + _FEW_RATINGS)
    return signal * typical_count / (typical_count + _SHORT_HISTORY) if enough else 0.0


def use_of_factors(signal: float) -> float:
    """How much there is to learn about tastes with such a signal, up to 1; a little for a rank that was given.

    Examples
    --------
    >>> [round(use_of_factors(signal), 2) for signal in (0.0, 20.0, 1000.0)]
    [0.02, 0.33, 0.96]
    """
    return 1 / (1 + _HALF_SIGNAL / max(signal, 1.0))


def rank_for_ratings(signal: float) -> int:
    """The rank that did best on data with such a signal. Without any, biases alone do better.

    Examples
    --------
    >>> [rank_for_ratings(signal) for signal in (0.0, 10.0, 100.0, 1000.0)]
    [0, 2, 9, 23]
    """
    return 0 if signal == 0 else max(1, min(round(0.15 * signal), round(1.45 * signal**0.4), _LARGEST_RANK))


def rank_for_implicit(signal: float, typical_count: float, n_popular: float) -> int:
    """The rank that did best on implicit feedback with such a signal; 0 if it is too small.

    Users with `typical_count` items, if these are few, do not say much about many tastes. What there is to learn adds
    up over the items that most pairs are about. The rank is one less than a multiple of 8, because kernels work on
    eight coordinates.

    Examples
    --------
    >>> [rank_for_implicit(signal, typical_count=20.0, n_popular=1000) for signal in (2.0, 8.0, 40.0, 2000.0)]
    [0, 7, 15, 31]
    """
    use = signal * typical_count / (typical_count + _FEW_ITEMS)
    if use * (n_popular + _FEW_POPULAR) < _LEAST_USE:
        return 0
    return min(8 * int(5.2 * use**0.3 / 8) + 7, _LARGEST_RANK)
