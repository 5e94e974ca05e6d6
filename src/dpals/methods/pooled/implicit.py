"""PooledDPALS for implicit feedback: popularity first, then factors, from the vectors of the users who have an item."""

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import Population
from dpals.methods.base.options import AfterStep
from dpals.methods.pooled.budget import Costs, Settings, rank_for_implicit
from dpals.methods.pooled.releases import (
    ItemStatistics,
    StepScale,
    StepSums,
    Training,
    release_cooccurrence,
    release_item_statistics,
    release_step,
    release_weights,
)
from dpals.model.factor_model import FactorModel
from dpals.private.pooled import activity_contribution
from dpals.private.user_vectors import LogisticProblem
from dpals.public.evidence import Evidence
from dpals.public.implicit import Activity, calibrated
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]

_LEAST_WEIGHT = 0.3  # of an item that may be noise alone, in standard deviations of the noise
_TYPICAL_VARIANCE = 0.1  # of a coordinate of the factors
_CONSTANT = 0.7  # the coordinate beside a user's vector, which shows how far users were scaled down


def fit_implicit(
    ratings: Population, settings: Settings, mechanism: Mechanism, after_step: AfterStep
) -> tuple[FactorModel, ItemStatistics]:
    """Factors v_j and offsets o_j, for which user i has item j with log odds o_j + x_i . v_j.

    Vectors x_i are normal over the users. The users who have an item then have the mean v_j, except for very popular
    items. So each step releases for every item the sum of the vectors of the users who have it, as far as these are
    known. The second result is what is known of the items.
    """
    activity, training, rank, costs = _before_training(ratings, settings, mechanism)
    items, weights = training.items, training.items.usable_weights
    features, spreads = release_cooccurrence(training, rank, settings.seed, costs.cooccurrence)
    popularity = np.maximum(items.weights, _LEAST_WEIGHT * items.weight_noise) / items.rating_weights
    rates = activity.rates(popularity if items.can_learn else np.ones(ratings.n_items))
    scale = StepScale(_CONSTANT, residual=settings.clip)

    def model() -> FactorModel:
        return FactorModel(
            items=ratings.items,
            item_factors=factors.astype(np.float32),
            item_biases=offsets.astype(np.float32),
            global_mean=0.0,
            user_ridge=1.0,
            log_odds=True,
        )

    # Users' directions have length 1, their vectors variance 1 in every coordinate.
    factors = (features * spreads * np.sqrt(features.shape[1]))[:, :rank]
    offsets, first_dispersion = calibrated(rates, np.linalg.norm(factors, axis=1), activity)
    dispersion, about_factors = first_dispersion, Evidence.none(weights * first_dispersion, rank)
    for number, cost in enumerate(costs.steps if rank and items.can_learn else (), 1):
        sums = release_step(training, LogisticProblem.of(factors, offsets), scale, cost, f"step {number}")
        factors = _updated_factors(about_factors, sums, weights, first_dispersion / dispersion)
        offsets, dispersion = calibrated(rates, np.linalg.norm(factors, axis=1), activity)
        after_step(number, settings.steps, model)
    return model(), items


def _before_training(
    ratings: Population, settings: Settings, mechanism: Mechanism
) -> tuple[Activity, Training, int, Costs]:
    """Activity of the users, what is known of the items, the rank, and what the releases of the run may cost."""
    activity_cost, *weight_costs, rest = mechanism.budget.split(*settings.shares.before_training())
    training = release_item_statistics(ratings, settings.weight_exponent, mechanism, weight_costs)
    activity = _release_activity(training, activity_cost)
    rank = settings.rank
    if rank is None:
        rank = rank_for_implicit(training.items.weights, training.items.weight_noise, mechanism.budget)
    if rank == 0:  # then all that is left goes to popularity
        training = release_weights(training, rest)
    return activity, training, rank, settings.shares.training(rest, rank, settings.steps)


def _release_activity(training: Training, cost: int) -> Activity:
    n_groups = Activity.n_groups(training.users.n_items)
    query = Query("number of items per user", n_groups, 1.0)
    released = training.release(activity_contribution, n_groups, query, cost)[:, 0]
    return Activity.of(released, training.mechanism.releases[-1].sigma)


def _updated_factors(evidence: Evidence, sums: StepSums, weights: Doubles, relative_dispersion: Doubles) -> Doubles:
    """Item factors after a step, in a basis in which users' vectors have unit variance; the evidence takes it in."""
    moments, pooled = sums.moments[:, :-1], sums.pooled
    moments = moments - weights[:, None] * (moments.sum(axis=0) / weights.sum())
    # A user's vector was fitted to the item itself, which pulls it by its covariance times the item's factors.
    response = pooled.vectors + pooled.covariance
    evidence.add(moments * relative_dispersion[:, None], response, sums.noise)
    evidence.change_basis(pooled.whitening())
    return evidence.posterior(evidence.prior_covariance(_TYPICAL_VARIANCE)).mean
