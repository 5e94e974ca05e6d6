"""PooledDPALS for ratings: their scales and biases first, then factors, from the residuals of users' own fits."""

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import Population
from dpals.methods.base.options import AfterStep
from dpals.methods.pooled.budget import (
    CENTRE_SHARE,
    SCALE_SHARES,
    SQUARES_SHARE,
    Costs,
    Settings,
    more_for_weights,
    rank_for_ratings,
    signal_of_tastes,
    signal_of_weights,
    spread_over,
)
from dpals.methods.pooled.learner import FADING, SETTLING, Expected, Learner, Start
from dpals.methods.pooled.releases import (
    ItemStatistics,
    Training,
    release_cooccurrence,
    release_item_statistics,
    release_squares,
    release_weights,
)
from dpals.methods.shared.means import release_mean_and_number, release_typical_distance
from dpals.model.factor_model import FactorModel
from dpals.private.scales import (
    MOST_DEVIATION,
    MOST_SPREAD,
    Centre,
    spread_contribution,
)
from dpals.public.initial_factors import random_factors
from dpals.public.scales import Scales, Spread
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]

LONGER = 3
"""How many times as many steps there are if factors start again, at random: it takes longer to find the directions."""


def fit_ratings(
    ratings: Population, settings: Settings, expected: Expected, mechanism: Mechanism, after_step: AfterStep
) -> tuple[FactorModel, ItemStatistics]:
    """Factors v_j and biases b_j, for which user i rates item j about mean + b_j + bias of i + u_i . v_j.

    Each step releases for every item the sum of the users' residuals times their vectors, and updates factors and
    biases by everything released so far. Unless the rank is given, factors may start again, if those in proportion to
    the features of co-occurrence predict users' ratings worse than biases alone. Then they start at random, and there
    are more steps, at the same cost in all. Factors that are no better at the end are dropped. The second
    result is what is known of the items: if nothing could be learned, the model stays at users' means.
    """
    start, rank, costs, centre_cost = _before_training(ratings, settings, mechanism)
    features, _ = release_cooccurrence(start.training, rank, settings.seed, costs.cooccurrence)
    learner = Learner(start, expected, settings.clip, features)
    learner.step(costs.biases, "bias step")
    learner.start_factors(features[:, :rank])
    if rank:
        learner.start_histories(costs.histories)
    number, ahead = 0, list(costs.steps)
    while ahead:
        number += 1
        if number <= SETTLING * settings.steps:
            learner.fade(FADING)
        learner.step(ahead.pop(0), f"step {number}")
        doubtful = settings.rank is None and learner.comparison.speaks_against_factors
        if doubtful and number == 1 and ahead:
            learner.start_again(random_factors(ratings.n_items, rank, settings.seed + 1))
            ahead = spread_over(ahead, LONGER * settings.steps - number)
        if not ahead:
            if doubtful:
                learner.start_factors(features[:, :0])
            learner.recentre(centre_cost)
        after_step(number, number + len(ahead), learner.model)
    return learner.model(), start.training.items


def _before_training(ratings: Population, settings: Settings, mechanism: Mechanism) -> tuple[Start, int, Costs, int]:
    """What is known before training, the rank, and what the releases of the run and the last one may cost."""
    shares = settings.shares.before_training(*SCALE_SHARES, SQUARES_SHARE, CENTRE_SHARE)
    costs_before = mechanism.budget.split(*shares)
    mean_cost, *weight_costs, distance_cost, spread_cost, squares_cost, centre_cost, rest = costs_before
    mean, n_users = release_mean_and_number(mechanism, ratings, mean_cost)
    training = release_item_statistics(ratings, settings.weight_exponent, mechanism, weight_costs)
    scales = _release_scales(training, mean, distance_cost, spread_cost)
    items = training.items
    typical_count, at_least = items.typical_count(n_users), items.typical_count(n_users, less=2.0)
    signal = signal_of_weights(items.weights, items.weight_noise, mechanism.budget)
    tastes = signal_of_tastes(signal, at_least)
    rank = min(rank_for_ratings(tastes), ratings.n_items) if settings.rank is None else settings.rank
    more = int(more_for_weights(items.estimates.share_known) * rest)
    training, rest = release_weights(training, more), rest - more
    costs = settings.shares.training(rest, rank, settings.steps, tastes)
    squares = release_squares(training, n_users, squares_cost)
    return Start(training, squares, typical_count, n_users, mean, scales), rank, costs, centre_cost


def _release_scales(training: Training, mean: float, distance_cost: int, spread_cost: int) -> Scales:
    """The scales of ratings: first what is typical of their distances from the mean, then variances in this unit."""
    unit = release_typical_distance(training.mechanism, training.users, mean, distance_cost)
    public = Centre(np.full(training.users.n_items, mean), unit)
    query = Query("spread of the ratings", 1, 2.0, "vector", 4)
    squares, freedom, deviations, number = training.release(spread_contribution, public, query, spread_cost)[0]
    scale = MOST_SPREAD * unit**2, MOST_DEVIATION * unit**2
    noise = training.mechanism.releases[-1].sigma
    spread = Spread(scale[0] * squares, freedom, scale[1] * deviations, number, noise, scale[1] * noise)
    return Scales.of(spread, unit)
