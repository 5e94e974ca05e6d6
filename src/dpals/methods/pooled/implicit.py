"""PooledDPALS for implicit feedback: popularity first, then factors, from the vectors of the users who have an item."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import Population
from dpals.methods.base.options import AfterStep
from dpals.methods.pooled.budget import (
    SQUARES_SHARE,
    Costs,
    Settings,
    StepCosts,
    more_for_weights,
    rank_for_implicit,
    signal_of_weights,
)
from dpals.methods.pooled.learner import FADING, SETTLING
from dpals.methods.pooled.releases import (
    ItemStatistics,
    StepScale,
    Training,
    release_cooccurrence,
    release_item_statistics,
    release_squares,
    release_step,
    release_weights,
)
from dpals.methods.shared.means import release_popularity
from dpals.model.factor_model import FactorModel
from dpals.private.pooled import activity_contribution
from dpals.private.user_vectors import LogisticProblem
from dpals.public.evidence import Evidence, Sampling
from dpals.public.implicit import Activity, calibrated
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]

DAMPING = 0.8
"""Where a step lies between Newton's method (0) and expectation maximisation (1), which is slow for short histories."""
_LEAST_WEIGHT = 0.3  # of an item that may be noise alone, in standard deviations of the noise
_TASTES = 6.0  # variance, before looking, of what tastes add to the log odds of an item
_PRIOR_WEIGHT = 300.0  # what is expected of tastes counts as this many items
_LONGEST = 4.0  # factors of an item: however alike its few users look, others have it, too
_CONSTANT = 0.7  # the coordinate beside a user's vector, which shows how far users were scaled down


def fit_implicit(
    ratings: Population, settings: Settings, mechanism: Mechanism, after_step: AfterStep
) -> tuple[FactorModel, ItemStatistics]:
    """Factors v_j and offsets o_j, for which user i has item j with log odds o_j + x_i . v_j.

    Vectors x_i are normal over the users. The users who have an item then have the mean v_j, except for very popular
    items. So each step releases for every item the sum of the vectors of the users who have it, as far as these are
    known. The second result is what is known of the items.
    """
    start, rank, costs = _before_training(ratings, settings, mechanism)
    features, spreads = release_cooccurrence(start.training, rank, settings.seed, costs.cooccurrence)
    # Users' directions have length 1, their vectors variance 1 in every coordinate.
    factors = (features * spreads * np.sqrt(features.shape[1]))[:, :rank]
    learner = ImplicitLearner(start, factors, StepScale(_CONSTANT, residual=settings.clip))
    can_learn = start.training.items.can_learn
    for number, cost in enumerate(costs.steps if rank and can_learn else (), 1):
        if number <= SETTLING * settings.steps:
            learner.about_factors.fade(FADING)
        learner.step(cost, f"step {number}")
        after_step(number, settings.steps, learner.model)
    return learner.model(), start.training.items


class Start(NamedTuple):
    """What is known before training, about items and users."""

    training: Training
    squares_per_weight: Doubles
    activity: Activity


def _before_training(ratings: Population, settings: Settings, mechanism: Mechanism) -> tuple[Start, int, Costs]:
    """What is known before training, the rank, and what the releases of the run may cost."""
    shares = settings.shares.before_training(SQUARES_SHARE)
    activity_cost, *weight_costs, squares_cost, rest = mechanism.budget.split(*shares)
    training = release_item_statistics(ratings, settings.weight_exponent, mechanism, weight_costs)
    activity, items = _release_activity(training, activity_cost), training.items
    signal = signal_of_weights(items.weights, items.weight_noise, mechanism.budget)
    chosen = rank_for_implicit(signal, items.typical_count(activity.n_users), items.estimates.n_popular)
    chosen = min(chosen, ratings.n_items)
    rank = chosen if settings.rank is None else settings.rank
    squares = release_squares(training, activity.n_users, squares_cost)
    if rank:
        more = int(more_for_weights(items.estimates.share_known) * rest)
        training, rest = release_weights(training, more), rest - more
    else:  # then popularity is all there is to learn
        popularity = release_popularity(mechanism, ratings, rest)
        noise, equal = mechanism.releases[-1].sigma, np.ones(ratings.n_items)
        items = replace(items, weights=popularity, weight_noise=noise, rating_weights=equal)
        training = replace(training, items=items)
    return Start(training, squares, activity), rank, settings.shares.training(rest, rank, settings.steps)


def _release_activity(training: Training, cost: int) -> Activity:
    n_groups = Activity.n_groups(training.users.n_items)
    query = Query("number of items per user", n_groups, 1.0)
    released = training.release(activity_contribution, n_groups, query, cost)[:, 0]
    return Activity.of(released, training.mechanism.releases[-1].sigma)


class ImplicitLearner:
    """Offsets and factors of the items while they are learned, and what is known about the factors so far."""

    def __init__(self, start: Start, factors: Doubles, scale: StepScale) -> None:
        self.start, self.training, self.scale = start, start.training, scale
        self.factors, rank = factors, factors.shape[1]
        items, estimates = self.training.items, self.training.items.estimates
        popularity = np.maximum(items.weights, _LEAST_WEIGHT * items.weight_noise) / items.rating_weights
        self.rates = start.activity.rates(popularity if items.can_learn else np.ones(len(popularity)))
        self.weights, self.reliability = estimates.size_biased_rms, estimates.reliability
        self.offsets, self.dispersion = self._calibrated()
        self.first_dispersion = self.dispersion
        self.about_factors = Evidence.none(self.weights * self.first_dispersion, rank)
        self.prior = np.eye(rank) * _TASTES / max(rank, 1)

    def _calibrated(self) -> tuple[Doubles, Doubles]:
        return calibrated(self.rates, np.linalg.norm(self.factors, axis=1), self.start.activity)

    def model(self) -> FactorModel:
        return FactorModel(
            items=self.training.users.items,
            item_factors=self.factors.astype(np.float32),
            item_biases=self.offsets.astype(np.float32),
            global_mean=0.0,
            user_ridge=1.0,
            log_odds=True,
        )

    def step(self, cost: StepCosts, name: str) -> None:
        """One release of the sums of users' vectors, and what follows from it for factors and offsets.

        A user's vector was fitted to the item itself, too, which pulls it by its covariance C times the item's factors.
        So the sums are A_j (G v_j + C old) for vectors with the second moments G, and (G + C) is the identity.
        """
        problem = LogisticProblem.of(self.factors, self.offsets)
        sums = release_step(self.training, problem, self.scale, cost, name)
        pooled, moments = sums.pooled, self.reliability[:, None] * sums.moments[:, :-1]
        moments -= self.weights[:, None] * (moments.sum(axis=0) / self.weights.sum())
        seen = self.weights * self.dispersion
        moments -= (1 - DAMPING) * seen[:, None] * (self.factors @ pooled.covariance)
        response = pooled.vectors + DAMPING * pooled.covariance
        self.about_factors.add(moments * (self.first_dispersion / self.dispersion)[:, None], response, sums.noise)

        basis = pooled.whitening()
        self.about_factors.change_basis(basis)
        back, prior = np.linalg.inv(basis), basis @ self.prior @ basis
        sampling = self.start.squares_per_weight / np.maximum(self.about_factors.weights, 1e-9)
        shared = back @ pooled.vectors @ back / pooled.scale
        posterior = self.about_factors.posterior(prior, sampling=Sampling(sampling, shared))
        self.prior = posterior.updated_prior(prior, _PRIOR_WEIGHT)
        lengths = np.linalg.norm(posterior.mean, axis=1)
        self.factors = posterior.mean * np.minimum(1.0, _LONGEST / np.maximum(lengths, 1e-300))[:, None]
        self.offsets, self.dispersion = self._calibrated()
