"""The releases of PooledDPALS that ratings and implicit feedback share: item weights, co-occurrence, a step's sums."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpals.data.ratings import Ratings
from dpals.methods.pooled.budget import StepCosts, rises_above
from dpals.methods.shared.means import release_popularity
from dpals.private.pooled import Bounds, WeightedUsers, covariance_share
from dpals.private.user_vectors import LeastSquaresProblem, LogisticProblem
from dpals.public.initial_factors import random_factors
from dpals.public.item_step import unpacked
from dpals.public.pooled import PooledGram, cooccurrence_features, inverse_root
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]

_LARGEST_SUM = 20.0  # users whose rating weights add up to more count as this in pooled sums; about 400 ratings


@dataclass(frozen=True, eq=False)
class ItemStatistics:
    """What is released before the training proper, about the items and about all users together."""

    popularity: Doubles
    rating_weights: Doubles
    """What a rating of the item weighs, before each user's weights are scaled to length 1."""
    weights: Doubles
    """Sums of the users' weights for the item, with noise: they may be negative."""
    weight_noise: float
    total_user_weight: float

    @property
    def can_learn(self) -> bool:
        """Whether the weights are more than noise."""
        return rises_above(self.weights, self.weight_noise)

    @property
    def usable_weights(self) -> Doubles:
        """Weights from 0 on; all 0 where they may be noise alone, so that nothing counts as evidence."""
        usable: Doubles = np.maximum(self.weights, 0.0) * self.can_learn
        return usable


@dataclass(frozen=True, eq=False)
class Training:
    """What the releases of one training share: the users, what is known of the items, and the mechanism."""

    users: WeightedUsers
    items: ItemStatistics
    mechanism: Mechanism


def release_item_statistics(
    ratings: Ratings, weight_exponent: float, mechanism: Mechanism, costs: Sequence[int]
) -> Training:
    """Popularity and weights of the items; and the users, with the rating weights that follow from popularity."""
    popularity_cost, weight_cost, total_cost = costs
    popularity = np.maximum(release_popularity(mechanism, ratings, popularity_cost), mechanism.releases[-1].sigma)
    rating_weights = popularity**-weight_exponent
    users = WeightedUsers.of(ratings, rating_weights, _LARGEST_SUM)

    query = Query("sum of user weights", 1, 1.0)
    total = mechanism.release(query, users.user_weight_contribution(), total_cost)[0, 0]
    total = max(float(total), mechanism.releases[-1].sigma)
    items = ItemStatistics(popularity, rating_weights, np.zeros(ratings.n_items), np.inf, total)
    return release_weights(Training(users, items, mechanism), weight_cost)


def release_weights(training: Training, cost: int) -> Training:
    """The same training after one more release of the item weights: what is known is the mean of all such releases."""
    users, items, mechanism = training.users, training.items, training.mechanism
    query = Query("item weights", users.ratings.n_items, 1.0)
    weights = mechanism.release(query, users.weight_contribution(), cost)[:, 0]
    before, now = items.weight_noise**-2, mechanism.releases[-1].sigma ** -2
    mean = (before * items.weights + now * weights) / (before + now)
    return replace(training, items=replace(items, weights=mean, weight_noise=(before + now) ** -0.5))


def release_cooccurrence(
    training: Training, rank: int, seed: int, costs: tuple[StepCosts, ...]
) -> tuple[Doubles, Doubles]:
    """Which items occur together in users' histories, whatever the ratings: features of each item, of unit variance.

    Items that the same people rate tend to be liked by the same people. This is a subspace iteration on the
    co-occurrence of the items that starts with random features. The second result is how much items differ in each
    feature.
    """
    users, mechanism, weights = training.users, training.mechanism, training.items.usable_weights
    size = -(-3 * rank // 2)
    features, scales = random_factors(len(weights), size, seed), np.ones(size)
    for number, cost in enumerate(costs, 1):
        centred = features - weights @ features / max(float(weights.sum()), 1e-9)
        centred *= (weights > 0)[:, None]
        bound = float(size)  # features have variance 1 where they are known, and a user's weights length 1
        query = Query(f"Gram matrix of co-occurrence, round {number}", 1, bound, "symmetric", size)
        gram = mechanism.release(query, users.gram_contribution(users.feature_sums(centred), bound), cost.gram)[0]
        # Whitened on the public side: a product over all users could round one user's row by who else is there.
        whitened = users.feature_sums(centred @ inverse_root(unpacked(gram, size)))
        query = Query(f"co-occurrence of the items, round {number}", len(weights), 1.0, "vector", size)
        moments = mechanism.release(query, users.direction_contribution(whitened), cost.moments)
        features, scales = cooccurrence_features(moments, weights, mechanism.releases[-1].sigma)
    return features, scales


@dataclass(frozen=True)
class StepScale:
    """How large a user's part in a step is expected to be.

    Parameters
    ----------
    constant
        The coordinate beside a user's vector, whose own coordinates have unit variance.
    residual
        Largest norm of a user's weighted residuals, times a vector of the expected length.
    """

    constant: float
    residual: float

    def bounds(self, rank: int) -> Bounds:
        """Sensitivities of the releases of a step."""
        # A user's vector has unit variance in each direction, of which about half is known to the user.
        length = np.sqrt(rank / 2 + self.constant**2)
        return Bounds(moments=self.residual * length, gram=length**2 / 2, covariance=0.3 * np.sqrt(rank))


@dataclass(frozen=True, eq=False)
class StepSums:
    """What one step released: the right-hand sides with their noise, and what all users look like together."""

    moments: Doubles
    noise: float
    pooled: PooledGram


def release_step(
    training: Training, problem: LeastSquaresProblem | LogisticProblem, scale: StepScale, cost: StepCosts, name: str
) -> StepSums:
    """Residual times vector, summed for every item, and the Gram and covariance matrices of all users' vectors."""
    users, mechanism, rank = training.users, training.mechanism, problem.rank
    bounds = scale.bounds(rank)
    contributions = users.step_contributions(problem, scale.constant, bounds)

    query = Query(f"Gram matrix of all users, {name}", 1, bounds.gram, "symmetric", rank + 1)
    gram = mechanism.release(query, contributions.gram, cost.gram)[0]
    gram_noise = mechanism.releases[-1].sigma
    covariance = np.zeros(0)
    if rank:
        query = Query(f"covariance of all users, {name}", 1, bounds.covariance, "vector", rank * (rank + 1) // 2)
        covariance = mechanism.release(query, contributions.covariance, cost.covariance)[0] / covariance_share(rank)
        gram_noise = np.hypot(gram_noise, mechanism.releases[-1].sigma / covariance_share(rank))
    query = Query(
        f"right-hand sides, {name}",
        users.ratings.n_items,
        bounds.moments,
        "vector",
        rank + 1,
        coefficient_norm=scale.residual,
    )
    moments = mechanism.release(query, contributions.moments, cost.moments)
    noise = mechanism.releases[-1].sigma
    total = training.items.total_user_weight
    return StepSums(moments, noise, PooledGram.of(gram, covariance, gram_noise, total, scale.constant))
