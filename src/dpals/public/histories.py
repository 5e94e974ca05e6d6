"""What the items that users rated say about their vectors, whatever the ratings: learned from released sums."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpals.public.item_step import unpacked

Doubles = NDArray[np.float64]

_EXPLAINED = 0.2  # share of the variance of users' vectors that histories are expected to explain
_COUNTED = 0.05  # of a user: items were fitted to the same ratings, so that vectors say less than they seem to
_LEAST_RESPONSE = 0.1
_LEAST_VARIANCE = 0.1  # of a coordinate of the histories, as a share of the mean


def history_features(features: Doubles, short: float) -> Doubles:
    """Features of the items, with a constant, of which histories are sums over n + short.

    They make histories of about this length about one unit long in every direction.
    """
    return 2 * np.column_stack([np.ones(len(features)), features * short**0.5])


def whitened(features: Doubles, gram: Doubles, noise: float, n_users: float) -> Doubles:
    """The features in a basis in which the histories of the users have about unit second moments.

    `gram` is the released triangle of the sum of the users' histories times themselves. Directions in which it is no
    more than noise are not blown up.
    """
    values, vectors = np.linalg.eigh(unpacked(gram, features.shape[1]) / n_users)
    least = max(_LEAST_VARIANCE * float(np.mean(values)), 2 * noise / n_users * np.sqrt(len(values)), 1e-9)
    result: Doubles = features @ ((vectors / np.sqrt(np.maximum(values, least))) @ vectors.T)
    return result


@dataclass(eq=False)
class HistoryRegression:
    """A linear regression of users' vectors on their histories, both with unit second moments.

    Parameters
    ----------
    features
        Of the items, of which a history is a sum.
    n_users
        The released number of users.
    information, precision
        The sum over the releases of what was found, one row for each feature, times the precision of it.
    sampling
        Variance of what is found because users are few: once, as the users are the same in all releases.
    """

    features: Doubles
    n_users: float
    information: Doubles
    precision: Doubles
    sampling: Doubles

    @classmethod
    def none(cls, features: Doubles, n_users: float, rank: int) -> "HistoryRegression":
        shape = features.shape[1], rank + 1
        return cls(features, n_users, np.zeros(shape), np.full(rank + 1, 1e-12), np.zeros(rank + 1))

    @property
    def coefficients(self) -> Doubles:
        """One row for each feature, one column for each coordinate of users' vectors."""
        expected = _EXPLAINED / len(self.information)
        trust = expected / (expected + 1 / self.precision + self.sampling)
        result: Doubles = trust * self.information / self.precision
        return result

    def factors(self) -> Doubles:
        """What each item of a history adds to the vector that is expected of the user."""
        result: Doubles = self.features @ self.coefficients
        return result

    def add(self, sums: Doubles, noise: float, response: Doubles) -> None:
        """Add a release: sums of histories times what users' vectors lie above the present expectation.

        `response` says how far vectors, which are drawn toward the expectation, follow the users' ratings.
        """
        followed = self.n_users * np.maximum(response, _LEAST_RESPONSE)
        precision = (followed / noise) ** 2
        self.information += precision * (self.coefficients + sums / followed)
        self.precision += precision
        self.sampling = 1 / (_COUNTED * followed)

    def fade(self, keep: float) -> None:
        """Count for less what is known: users' vectors have changed since."""
        self.information *= keep
        self.precision *= keep

    def change_basis(self, basis: Doubles) -> None:
        """Express items' factors v_j as v_j B, and so users' vectors u_i as u_i B^-1."""
        self.information[:, :-1] = self.information[:, :-1] @ np.linalg.inv(basis)
