"""What noisy releases say about the items, combined by Bayes' rule."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpals.public.spectra import Eigenpairs, eigenpairs

Doubles = NDArray[np.float64]

_MOST_EXPLAINED = 0.8


@dataclass(eq=False)
class Evidence:
    """Observations y_j = A_j v_j R + noise of variance s^2, over several releases, about one vector v_j per item.

    All items share the response R of a release and differ in their weight A_j only, so that one small matrix
    holds the precision of all of them.

    Parameters
    ----------
    weights
        A_j, one per item.
    information
        Sum over the releases of A_j y_j R^T / s^2.
    precision
        Sum over the releases of R R^T / s^2; item j has A_j^2 times this.
    """

    weights: Doubles
    information: Doubles
    precision: Doubles

    @classmethod
    def none(cls, weights: Doubles, rank: int) -> "Evidence":
        return cls(weights, np.zeros((len(weights), rank)), np.zeros((rank, rank)))

    def add(self, observations: Doubles, response: Doubles, noise: float) -> None:
        """Add the observations of one release."""
        self.information += self.weights[:, None] * (observations @ response.T) / noise**2
        self.precision += response @ response.T / noise**2

    def fade(self, keep: float) -> None:
        """Count the evidence so far for less: users' vectors have changed since."""
        self.information *= keep
        self.precision *= keep

    def change_basis(self, basis: Doubles) -> None:
        """Express v_j as v_j B, for an invertible symmetric B."""
        inverse = np.linalg.inv(basis)
        self.information = self.information @ inverse
        self.precision = inverse @ self.precision @ inverse

    def principal_directions(self, typical: float) -> Eigenpairs:
        """Eigenvalues and eigenvectors of the covariance of the v_j, estimated from the evidence less its noise.

        Items count by how well they are known, with `typical` for the variance of a coordinate. Eigenvalues are raised
        to at least a thousandth of it. The eigenvectors are those from before: equal eigenvalues allow any basis, and
        rounding would decide which one it is.

        Examples
        --------
        >>> known = Evidence.none(np.full(4, 10.0), rank=1)
        >>> known.add(np.array([[20.0], [-20.0], [20.0], [-20.0]]), np.eye(1), noise=1.0)
        >>> known.principal_directions(typical=1.0).values.round(2)
        array([3.99])
        """
        rank = len(self.precision)
        noise = np.linalg.inv(self.precision)  # of an item of weight 1
        squares = np.where(self.weights > 0, self.weights, np.inf) ** 2
        measured = self.information @ noise / squares[:, None]
        variances = np.trace(noise) / rank / squares
        trust = np.where(self.weights > 0, 1 / (variances + typical) ** 2, 0.0)
        trust /= max(float(trust.sum()), 1e-300)
        covariance = measured.T @ (trust[:, None] * measured) - noise * float(np.sum(trust / squares))
        values, vectors = eigenpairs(covariance)
        return Eigenpairs(np.maximum(values, 1e-3 * typical), vectors)

    def posterior(
        self, prior: Doubles, features: Doubles | None = None, sampling: "Sampling | None" = None
    ) -> "Posterior":
        """What is known about the vectors, for a prior of mean 0 and this covariance.

        With features of the items, the prior mean is a linear function of them, fitted to the evidence. The covariance
        is reduced by the share that the fit explains, at most `_MOST_EXPLAINED`.

        Examples
        --------
        >>> known = Evidence.none(np.array([0.0, 1.0, 100.0]), rank=1)
        >>> known.add(np.array([[9.0], [2.0], [200.0]]), np.eye(1), noise=1.0)
        >>> known.posterior(prior=np.eye(1)).mean.round(2).ravel()
        array([0., 1., 2.])
        """
        spreads, directions = np.linalg.eigh(prior)  # after many changes of basis some may be nearly zero
        root = directions * np.sqrt(np.maximum(spreads, 0.0))
        values, vectors = np.linalg.eigh(root.T @ self.precision @ root)
        basis = root @ vectors  # in it the prior is the identity, and the precision diagonal
        precision = self.weights[:, None] ** 2 * np.maximum(values, 0.0)
        seen = self.information @ basis
        if sampling is not None:
            # Once, however many releases there were: they are about the same users.
            back = np.linalg.pinv(basis)
            trust = 1 / (
                1 + precision * sampling.of_items[:, None] * np.einsum("ki,ij,kj->k", back, sampling.shared, back)
            )
            seen, precision = seen * trust, precision * trust
        mean, left = np.zeros_like(seen), 1.0
        if features is not None:
            mean = _fitted(seen, precision, features)
            left = 1 - _explained(seen, precision, mean)
        variances = 1 / (1 / left + precision)
        estimate = mean + (seen - precision * mean) * variances
        return Posterior(estimate @ basis.T, precision * variances, estimate, variances, basis)


class Sampling(NamedTuple):
    """The covariance of an item's vector that has nothing to do with privacy: that its users are few.

    It is a number of the item times a matrix that all items share.
    """

    of_items: Doubles
    shared: Doubles


class Posterior(NamedTuple):
    """What is known about one vector per item.

    `gains` say how much of each coordinate comes from the evidence, from 0 to 1. Coordinates and their variances are
    those in a basis in which the prior is the identity.
    """

    mean: Doubles
    gains: Doubles
    coordinates: Doubles
    variances: Doubles
    basis: Doubles

    @property
    def n_parameters(self) -> float:
        """How many numbers were in effect fitted."""
        return float(self.gains.sum())

    def updated_prior(self, prior: Doubles, weight: float) -> Doubles:
        """The mean of the prior, which counts as this many items, and of what the items with evidence look like."""
        gains = self.gains.mean(axis=1)
        seen = self.coordinates.T @ (gains[:, None] * self.coordinates) + np.diag(gains @ self.variances)
        result: Doubles = (weight * prior + self.basis @ seen @ self.basis.T) / (weight + gains.sum())
        return result


def _fitted(seen: Doubles, precision: Doubles, features: Doubles) -> Doubles:
    """Regression of each coordinate, measured as seen / precision, on the features.

    Items of about the same precision count the same in the systems of equations, which saves a pass over all items for
    every coordinate.
    """
    expected, products = _grouped(precision, features)
    systems = np.tensordot((expected / (1 + expected)).T, products, axes=1) + np.eye(features.shape[1])
    sums = features.T @ (seen / (1 + precision))
    mean: Doubles = features @ np.linalg.solve(systems, sums.T[:, :, None])[:, :, 0].T
    return mean


def _grouped(precision: Doubles, features: Doubles) -> tuple[Doubles, Doubles]:
    """Mean precision of each group of items within a sixteenth of a decade, and the sum of the f_j f_j^T in it."""
    largest = precision.max(axis=1)
    known = np.flatnonzero(largest > 0)
    groups = np.floor(16 * np.log10(largest[known]))
    members = [known[groups == group] for group in np.unique(groups)]
    products = np.empty((len(members), features.shape[1], features.shape[1]))
    means = np.empty((len(members), precision.shape[1]))
    for mean, product, items in zip(means, products, members, strict=True):
        mean[:] = precision[items].mean(axis=0)
        product[:] = features[items].T @ features[items]
    return means, products


def _explained(seen: Doubles, precision: Doubles, mean: Doubles) -> float:
    """Share of the variance of the coordinates, less noise, that the mean explains."""
    squares = np.divide(seen**2, precision, out=np.ones_like(seen), where=precision > 0)
    signal = float(np.sum((squares - 1) / (1 + precision)))
    fitted = float(np.sum(mean**2 * precision / (1 + precision)))
    return _MOST_EXPLAINED if fitted >= _MOST_EXPLAINED * signal else max(fitted / signal, 0.0)
