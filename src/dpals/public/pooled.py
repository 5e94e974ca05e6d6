"""The public half of a PooledDPALS step: from released sums to item factors and biases."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpals.public.evidence import Evidence
from dpals.public.item_step import unpacked

Doubles = NDArray[np.float64]

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
