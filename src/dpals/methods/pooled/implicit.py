"""PooledDPALS for implicit feedback: what users chose, and what kind of people choose an item."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpals.data.ratings import Ratings
from dpals.methods.base.options import AfterStep
from dpals.methods.pooled.budget import choice_rank, first_shares, rises_above, split_rest
from dpals.methods.pooled.releases import release_catalogue, release_features, release_step, release_weights
from dpals.model.factor_model import FactorModel
from dpals.private.pooled import Participants
from dpals.private.user_vectors import LogisticProblem
from dpals.public.evidence import Evidence
from dpals.public.implicit import Activity, calibrated
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]

_LEAST = 0.3  # weight of an item that may be noise alone, in standard deviations of the noise
_TYPICAL_VARIANCE = 0.1  # of a coordinate of the factors
_CONSTANT = 0.7  # the coordinate beside a user's vector, which shows how far users were scaled down


@dataclass(frozen=True)
class ChoiceSettings:
    """The arguments of PooledDPALS that matter for implicit feedback."""

    rank: int | None
    steps: int
    growth: float
    weight_exponent: float
    clip: float
    activity_share: float
    weight_share: float
    company_share: float
    gram_share: float
    seed: int


def train_choices(
    ratings: Ratings, settings: ChoiceSettings, mechanism: Mechanism, after_step: AfterStep
) -> tuple[FactorModel, Doubles]:
    """Factors v_j and offsets o_j, for which user i has item j with log odds o_j + x_i . v_j.

    Vectors x_i are normal over the users, and then the people who have an item have the mean v_j, but for very
    popular items. So each step releases the sum of the users' vectors, as well as they are known, for each item.
    The second result are the released weights of the items: 0 for all where nothing could be learned.
    """
    shares = first_shares(settings.activity_share, settings.weight_share)
    activity_cost, *weight_costs, rest = mechanism.budget.split(*shares)
    known, people = release_catalogue(ratings, settings.weight_exponent, mechanism, weight_costs)
    activity = _release_activity(people, mechanism, activity_cost)
    rank = settings.rank
    if rank is None:
        rank = min(choice_rank(known.weights, known.weight_noise, mechanism.budget), ratings.n_items)
    if rank == 0:  # then all that is left goes to popularity
        known = release_weights(people, known, mechanism, rest)
    can_learn = rises_above(known.weights, known.weight_noise)
    weights = np.maximum(known.weights, 0.0) * can_learn
    costs = split_rest(rest, rank, settings.steps, settings.growth, settings.company_share, 0.0, settings.gram_share)

    popularity = np.maximum(known.weights, _LEAST * known.weight_noise) / known.item_weights
    rates = activity.rates(popularity if can_learn else np.ones(ratings.n_items))
    size = -(-3 * rank // 2)
    features, scales = release_features(people, weights, size, settings.seed, mechanism, costs.company)
    # Directions have length 1, vectors variance 1 in every coordinate.
    factors = (features * scales * np.sqrt(size))[:, :rank]
    offsets, room = calibrated(rates, np.linalg.norm(factors, axis=1), activity)
    first_room, evidence = room, Evidence.none(weights * room, rank)
    for number, cost in enumerate(costs.steps if rank and can_learn else (), 1):
        problem = _model(ratings, factors, offsets).user_problem()
        assert isinstance(problem, LogisticProblem)
        name = f"step {number}"
        sums = release_step(people, problem, rank, _CONSTANT, settings.clip, known.breadth, mechanism, cost, name)
        moments, pooled = sums.moments[:, :rank], sums.pooled
        moments = moments - weights[:, None] * (moments.sum(axis=0) / weights.sum())
        # A user's vector has seen the item itself, which pulls it by its uncertainty times the factors.
        response = pooled.vectors + pooled.covariance
        evidence.add(moments * (first_room / room)[:, None], response, sums.noise)
        evidence.turn(pooled.whitening())
        factors = evidence.posterior(evidence.spread(_TYPICAL_VARIANCE))
        offsets, room = calibrated(rates, np.linalg.norm(factors, axis=1), activity)
        after_step(number, settings.steps, _model(ratings, factors, offsets))
    return _model(ratings, factors, offsets), weights


def _release_activity(people: Participants, mechanism: Mechanism, cost: int) -> Activity:
    n_groups = Activity.n_groups(people.ratings.n_items)
    query = Query("how many items users have", n_groups, 1.0)
    released = mechanism.release(query, people.activity_contribution(n_groups), cost)[:, 0]
    return Activity.of(released, mechanism.releases[-1].sigma)


def _model(ratings: Ratings, factors: Doubles, offsets: Doubles) -> FactorModel:
    return FactorModel(
        items=ratings.items,
        item_factors=factors.astype(np.float32),
        item_biases=offsets.astype(np.float32),
        global_mean=0.0,
        user_ridge=1.0,
        log_odds=True,
    )
