"""What users contribute to PooledDPALS: residuals times vectors, and what all users' vectors have in common."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpals.data.ratings import Ratings
from dpals.kernels.rows import entry_norms, row_combinations, row_norms, row_sums, scale_rows
from dpals.private.means import pattern_of
from dpals.private.sampling import share_of_users, unit_weights
from dpals.private.user_vectors import LeastSquaresProblem, LogisticProblem
from dpals.release.contribution import Contribution, Pattern

Doubles = NDArray[np.float64]

_JUST_BELOW = 1 - 1e-9  # so that rounding on the mechanism's grid does not scale a user down once more


def covariance_share(rank: int) -> float:
    """Share of the users who contribute the covariance of their vectors: fewer beyond rank 32, to save time."""
    return min(1.0, (32 / max(rank, 1)) ** 3)


class Bounds(NamedTuple):
    """Sensitivities of the three releases of a step."""

    moments: float
    gram: float
    covariance: float


class StepContributions(NamedTuple):
    """What all users contribute in one step."""

    moments: Contribution
    gram: Contribution
    covariance: Contribution


@dataclass(frozen=True, eq=False)
class WeightedUsers:
    """All users with the weights of their ratings, which stay the same for the whole training.

    Parameters
    ----------
    ratings, pattern
        What the users rated.
    weights
        w_ij, one per rating. The squares of each user's weights add up to 1.
    user_weights
        b_i, one per user, at most 1: how much the user says about all items together. It is the sum of the user's
        weights as a share of the largest sum that counts.
    """

    ratings: Ratings
    pattern: Pattern
    weights: Doubles
    user_weights: Doubles

    @classmethod
    def of(cls, ratings: Ratings, item_weights: Doubles, largest_sum: float) -> "WeightedUsers":
        """Weights in proportion to public weights of the items."""
        weights = unit_weights(ratings, item_weights)
        user_weights = np.minimum(row_sums(ratings.indptr, weights) / largest_sum, 1.0)
        return cls(ratings, pattern_of(ratings), weights, user_weights)

    def weight_contribution(self) -> Contribution:
        """The weights of a user's ratings. Norm at most 1."""
        return Contribution(self.pattern, self.weights)

    def user_weight_contribution(self) -> Contribution:
        """The weight of the user, at most 1."""
        return Contribution(Pattern.one_item(self.ratings.n_users), self.user_weights)

    def activity_contribution(self, n_bins: int) -> Contribution:
        """1 in the bin of the user's number of items, two bins for each doubling. Norm at most 1."""
        counts, n_users = np.diff(self.ratings.indptr), self.ratings.n_users
        bins = np.frexp(np.maximum(counts, 1).astype(np.float64) ** 2)[1].astype(np.int32) - 1  # 2 log2, rounded down
        return Contribution(Pattern(np.arange(n_users + 1), bins, n_bins), (counts > 0).astype(np.float64))

    def feature_sums(self, features: Doubles) -> Doubles:
        """The weighted sum of the features of each user's items, whatever the ratings."""
        return row_combinations(self.ratings.indptr, self.ratings.indices, self.weights, features)

    def gram_contribution(self, vectors: Doubles, bound: float) -> Contribution:
        """The user's vector for the Gram matrix of all users, with the weight of the user."""
        parts = _within(bound, self.user_weights, row_norms(vectors) ** 2)
        return Contribution(Pattern.one_item(self.ratings.n_users), parts, vectors)

    def direction_contribution(self, vectors: Doubles) -> Contribution:
        """Weight times the direction of the user's vector, for each item. Norm at most 1."""
        lengths = row_norms(vectors)[:, None]
        directions = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        return Contribution(self.pattern, self.weights * _JUST_BELOW, directions)

    def step_contributions(
        self, problem: LeastSquaresProblem | LogisticProblem, constant: float, bounds: Bounds
    ) -> StepContributions:
        """Contributions of one step: moments c_ij x_i, the Gram matrix of the x_i, and the covariance of the u_i.

        With x_i = (u_i, constant), the user's vector and a constant for the item's bias, and residuals e_ij of the
        user's own fit, or 1 for implicit feedback, c_ij = f_i w_ij e_ij, where f_i <= 1 scales the whole contribution
        down to its bound. The other two have the weight f_i b_i. The covariance, which says how uncertain u_i is given
        the user's ratings, comes from some of the users only: see `covariance_share`.
        """
        ratings, n_users, rank = self.ratings, self.ratings.n_users, problem.rank
        sampled = share_of_users(ratings, covariance_share(rank))
        inverses = np.zeros((int(sampled.sum()), rank * (rank + 1) // 2), np.float32)
        solved = problem.solve(ratings, inverses=inverses if rank else None, inverted=sampled)
        coefficients = problem.residuals(ratings, solved)
        coefficients *= self.weights
        vectors = np.column_stack([solved[:, :rank], np.full(n_users, constant)]).astype(np.float64)

        lengths = row_norms(vectors)
        norms = entry_norms(ratings.indptr, coefficients) * lengths
        scales = np.minimum(1.0, bounds.moments / np.maximum(norms, 1e-300)) * _JUST_BELOW
        scale_rows(ratings.indptr, coefficients, scales)

        everyone, parts = Pattern.one_item(n_users), self.user_weights * scales
        inverses *= np.float32(problem.ridge)
        return StepContributions(
            moments=Contribution(self.pattern, coefficients, vectors),
            gram=Contribution(everyone, _within(bounds.gram, parts, lengths**2), vectors),
            covariance=Contribution(
                Pattern.one_item(len(inverses)),
                _within(bounds.covariance, parts[sampled], row_norms(inverses)),
                inverses,
            ),
        )


def _within(bound: float, coefficients: Doubles, sizes: Doubles) -> Doubles:
    """The coefficients, reduced where coefficient times size would exceed the bound."""
    return np.minimum(coefficients, bound * _JUST_BELOW / np.maximum(sizes, 1e-300))
