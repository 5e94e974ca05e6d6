"""The public half of a PooledDPALS step: from released sums to item factors and biases."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpals.public.evidence import Evidence
from dpals.public.item_step import unpacked
from dpals.public.item_weights import WeightEstimates

Doubles = NDArray[np.float64]

_LEAST_WEIGHT = 0.01  # of an item, about one rating by somebody who has 10,000
_EXPECTED_ITEMS = 30.0  # what the variance of item biases that is expected before looking counts as
_LEAST_VARIANCE = 0.03  # of item biases, as a share of what is expected
_ROUNDS = 8  # in which line and variance are fitted
_TYPICAL_DIFFERENCE = 0.1  # between the mean direction of an item's users and that of all users


@dataclass(frozen=True, eq=False)
class PooledGram:
    """Second moments of all users' vectors together, per unit of item weight.

    Parameters
    ----------
    vectors
        Mean of u_i u_i^T.
    covariance
        Mean of the posterior covariance of the u_i.
    scale
        Mean of the factors by which users were scaled down.
    noise
        Standard deviation of the noise in an entry of both matrices together.
    """

    vectors: Doubles
    covariance: Doubles
    scale: float
    noise: float

    @classmethod
    def of(cls, gram: Doubles, covariance: Doubles, noise: float, total: float, constant: float) -> "PooledGram":
        """From the released triangles and the released sum of user weights.

        Because of the noise, eigenvalues are raised to at least a thousandth of the largest.
        """
        rank = int(np.sqrt(2 * len(covariance) + 0.25))
        everything = _positive(unpacked(gram, rank + 1) / total)
        scale = everything[-1, -1] / constant**2
        spread = _positive(unpacked(covariance, rank) / total) if rank else np.zeros((0, 0))
        return cls(everything[:rank, :rank], spread, float(scale), noise / total)

    def whitening(self) -> Doubles:
        """The symmetric B for which the u_i B^-1 have unit second moments, their covariance included.

        They are expected to have these already, give or take 1, so that a matrix that is mostly noise changes little.
        """
        moments = (self.vectors + self.covariance) / self.scale
        rank = len(moments)
        trust = 1 / (1 + rank * (self.noise / self.scale) ** 2)
        values, vectors = np.linalg.eigh(trust * moments + (1 - trust) * np.eye(rank))
        root: Doubles = (vectors * np.sqrt(np.maximum(values, 0.01))) @ vectors.T
        return root


def add_moments(
    known: Evidence, moments: Doubles, factors: Doubles, pooled: PooledGram, noise: float, damping: float
) -> None:
    """Add released sums of w_ij e_ij u_i to the evidence, where e_ij are residuals of the present factors.

    A user's vector was fitted to the rating whose residual it is multiplied by. That pulls the sums by the covariance C
    of users' vectors times the present factors: at the solution they equal A_j C v_j. So the step solves
    A_j (G + damping C) (new - old) = moments - A_j C old. A damping of 1 is expectation maximisation, which is slow; 0
    is Newton's method, which is unstable.
    """
    response = pooled.vectors + damping * pooled.covariance
    pull = pooled.vectors - (1 - damping) * pooled.covariance
    known.add(moments + known.weights[:, None] * (factors @ pull), response, noise)


class BiasEstimates(NamedTuple):
    """Item biases, and how many numbers were in effect fitted for them."""

    biases: Doubles
    n_parameters: float


def bias_estimates(known: Evidence, weights: WeightEstimates, expected: float, sampling: Doubles) -> BiasEstimates:
    """Item biases, shrunk toward a straight line in the logarithm of the items' weights.

    Items that many people rate are rated higher, and little else is known about rarely rated items. How much biases
    vary around the line comes from the evidence less its noise, where the variance that is expected counts as
    `_EXPECTED_ITEMS` well-known items. `sampling` is the variance that a bias has because the item's users are few.
    """
    precision = known.weights**2 * known.precision[0, 0]
    heard = precision > 0
    measured = np.divide(known.information[:, 0], precision, out=np.zeros_like(precision), where=heard)
    noise = np.divide(1.0, precision, out=np.full_like(precision, np.inf), where=heard) + sampling
    reliability = weights.reliability
    logarithms = np.log(np.maximum(weights.mean, _LEAST_WEIGHT))
    line = np.column_stack([np.ones_like(logarithms), logarithms - np.median(logarithms)])
    # Measurements per unit of the root mean square of the weights vary as much as the biases.
    per_rms = np.divide(known.weights, weights.root_mean_square, out=np.ones_like(precision), where=heard)[heard]
    variance = expected
    for _ in range(_ROUNDS):
        trust = 1 / (noise + variance)
        # The line starts at 0, with the weight of one well-known item.
        system = line.T @ ((trust * reliability**2)[:, None] * line) + np.eye(2) / expected
        trend = line @ np.linalg.solve(system, line.T @ (trust * reliability * measured))
        left = measured - reliability * trend
        squares, errors = (left[heard] * per_rms) ** 2, noise[heard] * per_rms**2
        shares = (variance / (errors + variance)) ** 2  # how much an item says about the variance
        variance = (_EXPECTED_ITEMS * expected + shares @ (squares - errors)) / (_EXPECTED_ITEMS + shares.sum())
        variance = max(variance, _LEAST_VARIANCE * expected)
    gains = variance / (noise + variance)
    return BiasEstimates(trend + gains * reliability * left, float(gains.sum()))


def inverse_root(matrix: Doubles) -> Doubles:
    """The symmetric B for which B M B is the identity, where M is the matrix made positive."""
    values, vectors = np.linalg.eigh(_positive(matrix))
    root: Doubles = (vectors / np.sqrt(values)) @ vectors.T
    return root


def _positive(matrix: Doubles) -> Doubles:
    """The matrix with eigenvalues of at least a thousandth of the largest one."""
    values, vectors = np.linalg.eigh(matrix)
    positive: Doubles = (vectors * np.maximum(values, max(1e-3 * values[-1], 1e-9))) @ vectors.T
    return positive


def cooccurrence_features(moments: Doubles, weights: Doubles, noise: float) -> tuple[Doubles, Doubles]:
    """Features of the items, of unit variance, from released sums of weight times direction of the users.

    An item's features are the mean direction of the users who rate it, less that of all users, shrunk according to the
    noise. The directions in which items differ most come first. The second result is the standard deviations in them.
    """
    around = moments - weights[:, None] * (moments.sum(axis=0) / max(float(weights.sum()), 1e-9))
    evidence = Evidence.none(weights, moments.shape[1])
    evidence.add(around, np.eye(moments.shape[1]), noise)
    values, vectors = evidence.principal_directions(_TYPICAL_DIFFERENCE**2)
    values, vectors = values[::-1], vectors[:, ::-1]
    safe = np.maximum(weights, 1e-9)[:, None]
    seen = np.where(weights[:, None] > 0, around / safe, 0.0)
    scales: Doubles = np.sqrt(values)
    return seen @ vectors * scales / (values + (noise / safe) ** 2), scales
