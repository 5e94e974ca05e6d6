"""The releases of PooledDPALS that ratings and implicit feedback share: item weights, co-occurrence, a step's sums."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import Population
from dpals.methods.pooled.budget import StepCosts, rises_above
from dpals.methods.shared.means import release_popularity
from dpals.private.histories import Histories, HistoryFit, history_gram_contribution
from dpals.private.pooled import (
    Bounds,
    Features,
    Groups,
    PooledStep,
    RatingWeights,
    covariance_share,
    direction_contribution,
    feature_gram_contribution,
    item_weight_contribution,
    squared_weight_contribution,
    step_contributions,
    weight_contributions,
)
from dpals.private.scales import MOST_SPREAD, FitUnits
from dpals.private.user_vectors import SHORT_HISTORY, LeastSquaresProblem, LogisticProblem
from dpals.public.histories import history_features, whitened
from dpals.public.initial_factors import random_factors
from dpals.public.item_step import unpacked
from dpals.public.item_weights import WeightEstimates, groups_of_equal_weight, squares_per_weight, weight_estimates
from dpals.public.pooled import PooledGram, cooccurrence_features, inverse_root
from dpals.public.scales import Fit
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism
from dpals.release.passes import BlockFunction

Doubles = NDArray[np.float64]

LARGEST_SUM = 20.0  # users whose rating weights add up to more count as this in pooled sums; about 400 ratings
_GROUPS = 12  # of items, for squared weights


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
    total_noise: float

    @property
    def can_learn(self) -> bool:
        """Whether the weights are more than noise."""
        return rises_above(self.weights, self.weight_noise)

    @property
    def usable_weights(self) -> Doubles:
        """Weights from 0 on; all 0 where they may be noise alone, so that nothing counts as evidence."""
        usable: Doubles = np.maximum(self.weights, 0.0) * self.can_learn
        return usable

    def typical_count(self, n_users: float, less: float = 0.0) -> float:
        """Ratings of a typical user, by a sum of user weights that is so many standard deviations of its noise less."""
        return (LARGEST_SUM * max(self.total_user_weight - less * self.total_noise, 0.0) / n_users) ** 2

    @cached_property
    def estimates(self) -> WeightEstimates:
        """What the released weights say about the true ones; all 0 where they may be noise alone."""
        if not self.can_learn:
            return WeightEstimates.certain(np.zeros(len(self.weights)))
        return weight_estimates(self.weights, self.weight_noise)


@dataclass(frozen=True, eq=False)
class Training:
    """What the releases of one run share: the users, how their ratings weigh, the items, and the mechanism."""

    users: Population
    weights: RatingWeights
    items: ItemStatistics
    mechanism: Mechanism

    def release(self, function: BlockFunction, public: Any, query: Query, cost: int) -> Doubles:
        """One release after one pass over the users."""
        return self.mechanism.release_together(self.users, function, public, [(query, cost)])[0]


def release_item_statistics(
    ratings: Population, weight_exponent: float, mechanism: Mechanism, costs: Sequence[int]
) -> Training:
    """Popularity and weights of the items; and the users, with the rating weights that follow from popularity."""
    popularity_cost, weight_cost, total_cost = costs
    popularity = np.maximum(release_popularity(mechanism, ratings, popularity_cost), mechanism.releases[-1].sigma)
    weights = RatingWeights(popularity**-weight_exponent, LARGEST_SUM)
    queries = [(Query("sum of user weights", 1, 1.0), total_cost), (_weight_query(ratings), weight_cost)]
    total, sums = mechanism.release_together(ratings, weight_contributions, weights, queries)
    total_noise, weight_noise = (release.sigma for release in mechanism.releases[-2:])
    at_least = max(float(total[0, 0]), total_noise)
    items = ItemStatistics(popularity, weights.of_items, sums[:, 0], weight_noise, at_least, total_noise)
    return Training(ratings, weights, items, mechanism)


def release_weights(training: Training, cost: int) -> Training:
    """The same training after one more release of the item weights: what is known is the mean of all such releases."""
    items, query = training.items, _weight_query(training.users)
    weights = training.release(item_weight_contribution, training.weights, query, cost)[:, 0]
    before, now = items.weight_noise**-2, training.mechanism.releases[-1].sigma ** -2
    mean = (before * items.weights + now * weights) / (before + now)
    return replace(training, items=replace(items, weights=mean, weight_noise=(before + now) ** -0.5))


def release_squares(training: Training, n_users: float, cost: int) -> Doubles:
    """For each item the sum of squared weights over that of weights: 1 if its users have no others, less otherwise."""
    weights = training.items.estimates.mean
    groups = groups_of_equal_weight(weights, _GROUPS)
    query = Query("squared weights of groups of items", 1, 1.0, "vector", _GROUPS)
    squares = training.release(squared_weight_contribution, Groups(training.weights, groups, _GROUPS), query, cost)[0]
    return squares_per_weight(squares, training.mechanism.releases[-1].sigma, weights, groups, n_users)


def _weight_query(users: Population) -> Query:
    return Query("item weights", users.n_items, 1.0)


def release_cooccurrence(
    training: Training, rank: int, seed: int, costs: tuple[StepCosts, ...]
) -> tuple[Doubles, Doubles]:
    """Which items occur together in users' histories, whatever the ratings: features of each item, of unit variance.

    Items that the same people rate tend to be liked by the same people. This is a subspace iteration on the
    co-occurrence of the items that starts with random features. The second result is how much items differ in each
    feature.
    """
    weights = training.items.usable_weights
    size = -(-3 * rank // 2)
    features, scales = random_factors(len(weights), size, seed), np.ones(size)
    for number, cost in enumerate(costs, 1):
        centred = features - weights @ features / max(float(weights.sum()), 1e-9)
        centred *= (weights > 0)[:, None]
        bound = float(size)  # features have variance 1 where they are known, and a user's weights length 1
        query = Query(f"Gram matrix of co-occurrence, round {number}", 1, bound, "symmetric", size)
        public = Features(training.weights, centred, bound)
        gram = training.release(feature_gram_contribution, public, query, cost.gram)[0]
        # Whitened on the public side: a product over all users could round one user's row by who else is there.
        public = public._replace(of_items=centred @ inverse_root(unpacked(gram, size)))
        query = Query(f"co-occurrence of the items, round {number}", len(weights), 1.0, "vector", size)
        moments = training.release(direction_contribution, public, query, cost.moments)
        features, scales = cooccurrence_features(moments, weights, training.mechanism.releases[-1].sigma)
    return features, scales


def release_histories(training: Training, features: Doubles, n_users: float, cost: int) -> Histories:
    """Features of which users' histories are sums, in a basis in which these have unit second moments."""
    features = history_features(features, SHORT_HISTORY)
    size = features.shape[1]
    query = Query("Gram matrix of the histories", 1, 2.0 * size, "symmetric", size)
    gram = training.release(history_gram_contribution, Histories(features, 2.0 * size), query, cost)[0]
    return Histories(whitened(features, gram, training.mechanism.releases[-1].sigma, n_users), 2.0 * size)


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
    fit: Fit | None = None
    histories: Doubles | None = None
    history_noise: float = 0.0


def release_step(
    training: Training,
    problem: LeastSquaresProblem | LogisticProblem,
    scale: StepScale,
    cost: StepCosts,
    name: str,
    fit: FitUnits | None = None,
    history: HistoryFit | None = None,
) -> StepSums:
    """Residual times vector, summed for every item, and the Gram and covariance matrices of all users' vectors.

    If asked for, also how well users' ratings are fitted, and how users' vectors depend on their histories.
    """
    users, mechanism, rank, bounds = training.users, training.mechanism, problem.rank, scale.bounds(problem.rank)
    queries = {"gram": (Query(f"Gram matrix of all users, {name}", 1, bounds.gram, "symmetric", rank + 1), cost.gram)}
    if rank:
        query = Query(f"covariance of all users, {name}", 1, bounds.covariance, "vector", rank * (rank + 1) // 2)
        queries["covariance"] = query, cost.covariance
    if fit is not None:
        queries["fit"] = Query(f"fit of the users, {name}", 1, 2.0, "vector", 4), cost.fit
    if history is not None:
        query = Query(f"histories of the users, {name}", history.length, history.bound, "vector", rank + 1)
        queries["history"] = query, cost.history
    query = Query(
        f"right-hand sides, {name}", users.n_items, bounds.moments, "vector", rank + 1, coefficient_norm=scale.residual
    )
    queries["moments"] = query, cost.moments if rank else cost.moments + cost.covariance

    public = PooledStep(training.weights, problem, scale.constant, bounds, fit, history)
    tables = mechanism.release_together(users, step_contributions, public, list(queries.values()))
    table = dict(zip(queries, tables, strict=True))
    noise = dict(zip(queries, (release.sigma for release in mechanism.releases[-len(queries) :]), strict=True))
    covariance = table["covariance"][0] / covariance_share(rank) if rank else np.zeros(0)
    gram_noise = np.hypot(noise["gram"], noise["covariance"] / covariance_share(rank)) if rank else noise["gram"]
    total = training.items.total_user_weight
    return StepSums(
        table["moments"],
        noise["moments"],
        PooledGram.of(table["gram"][0], covariance, gram_noise, total, scale.constant),
        None if fit is None else _fit(table["fit"][0], noise["fit"], fit.unit),
        table.get("history"),
        noise.get("history", 0.0),
    )


def _fit(sums: Doubles, noise: float, unit: float) -> Fit:
    """In squares of the rating scale."""
    gain, squares, freedom, response = sums
    square = MOST_SPREAD * unit**2
    return Fit(gain, square * squares, freedom, response, noise, square * noise)
