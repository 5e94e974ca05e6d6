"""What released item weights say about the true ones."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Doubles = NDArray[np.float64]

_SURE = 20.0  # standard deviations of the noise from which on a released weight counts as the true one
_DIFFERENCE = 0.3  # of groups, relative, that is expected before looking
_LEAST_SQUARES = 0.02  # squares per weight, as a share of what they are on average
_ROUNDS = 15  # more would take noise for a few heavy items among many light ones
_CELLS = 8  # released weights are rounded to this part of the noise
_VALUES = 16  # that stand for what is known of a weight
_NORMAL = -_VALUES * np.diff(norm.pdf(norm.ppf(np.linspace(0, 1, _VALUES + 1))))  # means of parts of a normal
_GRID = np.concatenate([[0.0], np.geomspace(0.02, _SURE + 5, 100)])


@dataclass(frozen=True, eq=False)
class WeightEstimates:
    """What is known of each item's weight: a row of equally likely values, in rising order.

    Where a weight is uncertain, ratings are more likely to be of the item if it is large. `size_biased_mean` and
    `size_biased_rms` allow for that: chances are in proportion to the weight.
    """

    values: Doubles

    @classmethod
    def certain(cls, weights: Doubles) -> "WeightEstimates":
        """Weights that are known."""
        return cls(np.repeat(weights[:, None], _VALUES, axis=1))

    def _moment(self, power: int) -> Doubles:
        result: Doubles = np.mean(self.values**power, axis=1)
        return result

    @cached_property
    def mean(self) -> Doubles:
        return self._moment(1)

    @cached_property
    def root_mean_square(self) -> Doubles:
        return np.sqrt(self._moment(2))

    @cached_property
    def size_biased_mean(self) -> Doubles:
        return self._moment(2) / np.maximum(self.mean, 1e-300)

    @cached_property
    def size_biased_rms(self) -> Doubles:
        return np.sqrt(self._moment(3) / np.maximum(self.mean, 1e-300))

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether the mean is at least twice the standard deviation."""
        return self.mean**2 > 4 * (self.root_mean_square**2 - self.mean**2)

    @property
    def share_known(self) -> float:
        """Share of the whole weight that is of items whose weight is known."""
        return float(self.mean @ self.known / max(float(self.mean.sum()), 1e-300))

    @property
    def n_popular(self) -> float:
        """How many items of the same weight would concentrate it as much."""
        return float(self.mean.sum() ** 2 / max(float(np.sum(self.root_mean_square**2)), 1e-300))

    @property
    def reliability(self) -> Doubles:
        """The best linear estimate from a sum has the rms as its weight, and the sum times this."""
        result: Doubles = self.size_biased_mean / np.maximum(self.size_biased_rms, 1e-300)
        return result


def weight_estimates(released: Doubles, noise: float) -> WeightEstimates:
    """Where there are many items of little weight, most that look heavy owe it to noise, and are taken for light.

    Weights come from a distribution on a grid that starts as an exponential one of the same mean. A few rounds of
    expectation maximisation bring it closer to the most likely one (Kiefer and Wolfowitz, 1956).

    Examples
    --------
    >>> few, many = (np.append(np.zeros(n), [4.0, 100.0]) for n in (10, 100_000))
    >>> weight_estimates(few, noise=1.0).mean[-2:].round(1).tolist()
    [3.8, 100.0]
    >>> weight_estimates(many, noise=1.0).mean[-2:].round(1).tolist()
    [0.0, 100.0]
    """
    scaled = released / noise
    values = scaled[:, None] + _NORMAL
    unsure = scaled < _SURE
    if unsure.any():
        cells, places = np.unique(np.round(scaled[unsure] * _CELLS), return_inverse=True)
        values[unsure] = equally_likely(_posterior(cells / _CELLS, np.bincount(places)), _GRID)[places]
    return WeightEstimates(values * noise)


def equally_likely(chances: Doubles, values: Doubles) -> Doubles:
    """The means of `_VALUES` parts of each distribution, a row of chances of the values, that are equally likely.

    Examples
    --------
    >>> equally_likely(np.array([[0.5, 0.5]]), np.array([1.0, 3.0]))[0, [0, -1]].tolist()
    [1.0, 3.0]
    """
    edges, parts = np.linspace(0, 1, _VALUES + 1), np.empty((len(chances), _VALUES))
    for row, part in zip(chances, parts, strict=True):
        below, sums = (np.append(0.0, np.cumsum(numbers)) for numbers in (row, row * values))
        part[:] = np.diff(np.interp(edges, below, sums)) * _VALUES
    return parts


def groups_of_equal_weight(weights: Doubles, number: int) -> NDArray[np.int32]:
    """The group of each item, in the order of their weights, so that groups have about the same weight in all.

    Examples
    --------
    >>> groups_of_equal_weight(np.array([1.0, 4.0, 1.0, 2.0]), 2).tolist()
    [0, 1, 0, 0]
    """
    order = np.argsort(weights, kind="stable")
    before = np.cumsum(weights[order]) - weights[order] / 2
    groups = np.empty(len(weights), np.int32)
    groups[order] = np.minimum(number * before / max(float(weights.sum()), 1e-300), number - 1).astype(np.int32)
    return groups


def squares_per_weight(
    squares: Doubles, noise: float, weights: Doubles, groups: NDArray[np.int32], n_users: float
) -> Doubles:
    """For each item the sum of squared weights over the sum of weights, from released sums of squares per group.

    Squares add up to the number of users. Where noise hides how they differ, all groups have the same share of them.
    """
    totals = np.bincount(groups, weights, len(squares))
    everywhere = min(n_users / max(float(totals.sum()), 1e-300), 1.0)
    expected = everywhere * totals
    differences = (_DIFFERENCE * expected) ** 2
    trust = np.divide(differences, differences + noise**2, out=np.zeros_like(expected), where=expected > 0)
    found = (expected + trust * (squares - expected)) / np.maximum(totals, 1e-300)
    result: Doubles = np.clip(found, _LEAST_SQUARES * everywhere, 1.0)[groups]
    return result


def _posterior(observed: Doubles, counts: NDArray[np.int64]) -> Doubles:
    """Probabilities of the weights on the grid, given observations of them with unit noise and how many there are."""
    distances = (observed[:, None] - _GRID) ** 2 / 2
    likelihood = np.exp(-np.minimum(distances - distances.min(axis=1, keepdims=True), 700.0))
    mean = max(float(counts @ observed) / counts.sum(), counts.sum() ** -0.5)
    shares = np.exp(-_GRID / mean) * np.gradient(_GRID)
    shares /= shares.sum()
    for _ in range(_ROUNDS):
        chances = likelihood * shares
        chances /= chances.sum(axis=1, keepdims=True)
        shares = counts @ chances / counts.sum()
    chances = likelihood * shares
    result: Doubles = chances / chances.sum(axis=1, keepdims=True)
    return result
