"""PooledDPALS for ratings: biases first, then factors, from the residuals of users' own fits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import Population
from dpals.methods.base.options import AfterStep
from dpals.methods.pooled.budget import Costs, Settings, rank_for_ratings
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
from dpals.methods.shared.means import half_range, release_mean
from dpals.model.factor_model import FactorModel
from dpals.private.user_vectors import LeastSquaresProblem
from dpals.public.evidence import Evidence
from dpals.public.pooled import add_moments, bias_estimates
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]

FADING = 0.5
"""What the evidence about factors is multiplied by before each early step, while users' vectors still change a lot."""
SETTLING = 0.4
"""Share of the steps that are early in this sense."""
DAMPING = 0.3
"""Where a step lies between Newton's method (0, unstable) and expectation maximisation (1, slow)."""
_START = 0.045  # root mean square of the first factors, as a share of half the rating range
_CONSTANT = 1.6  # the coordinate beside a user's vector that learns biases
_MORE_WEIGHT = 0.15  # share of the rest that goes to item weights if there is nothing but biases to learn


@dataclass(frozen=True)
class RatingScales:
    """What is expected of ratings before training.

    Parameters
    ----------
    noise, taste, bias
        Standard deviations, in units of half the rating range: of a rating around its prediction, of what tastes
        explain, and of item biases.
    user_bias_ridge
        How many ratings' worth of evidence a user's own bias starts with.
    """

    noise: float
    taste: float
    bias: float
    user_bias_ridge: float


def fit_ratings(
    ratings: Population, settings: Settings, scales: RatingScales, mechanism: Mechanism, after_step: AfterStep
) -> tuple[FactorModel, Doubles]:
    """Factors v_j and biases b_j, for which user i rates item j about mean + b_j + bias of i + u_i . v_j.

    Each step releases for every item the sum of the users' residuals times their vectors, and updates factors and
    biases by everything released so far. The second result is the weights of the items: all 0 if nothing could be
    learned, and then the model stays at users' means.
    """
    mean, training, rank, costs = _before_training(ratings, settings, mechanism)
    items, weights = training.items, training.items.usable_weights
    features, _ = release_cooccurrence(training, rank, settings.seed, costs.cooccurrence)
    unit = half_range(ratings)
    scale = StepScale(_CONSTANT, residual=settings.clip * scales.noise * unit)
    user_ridge, bias_variance = (scales.noise * unit) ** 2, (scales.bias * unit) ** 2

    def problem(factors: Doubles, biases: Doubles) -> LeastSquaresProblem:
        return LeastSquaresProblem.of(factors, biases, mean, user_ridge, bias_ridge=scales.user_bias_ridge)

    def model() -> FactorModel:
        return FactorModel(
            items=ratings.items,
            item_factors=factors.astype(np.float32),
            item_biases=biases.astype(np.float32),
            global_mean=mean,
            user_ridge=user_ridge,
            user_bias_ridge=scales.user_bias_ridge,
            rating_range=ratings.rating_range,
        )

    biases, about_biases = np.zeros(ratings.n_items), Evidence.none(weights, 1)
    without_factors = problem(np.zeros((ratings.n_items, 0)), biases)
    sums = release_step(training, without_factors, scale, costs.biases, "bias step")
    biases = _updated_biases(biases, about_biases, sums, items, bias_variance)

    factors, about_factors = _START * unit * features[:, :rank], Evidence.none(weights, rank)
    prior = np.eye(rank) * (scales.taste * unit) ** 2 / max(rank, 1)
    for number, cost in enumerate(costs.steps, 1):
        if number <= SETTLING * settings.steps:
            about_factors.fade(FADING)
        sums = release_step(training, problem(factors, biases), scale, cost, f"step {number}")
        biases = _updated_biases(biases, about_biases, sums, items, bias_variance)
        if rank:
            factors, prior = _updated_factors(factors, about_factors, sums, prior, features)
        after_step(number, settings.steps, model)
    return model(), weights


def _before_training(
    ratings: Population, settings: Settings, mechanism: Mechanism
) -> tuple[float, Training, int, Costs]:
    """The global mean, what is known of the items, the rank, and what the releases of the run may cost."""
    mean_cost, *weight_costs, rest = mechanism.budget.split(*settings.shares.before_training())
    mean = release_mean(mechanism, ratings, mean_cost)
    training = release_item_statistics(ratings, settings.weight_exponent, mechanism, weight_costs)
    rank = settings.rank
    if rank is None:
        rank = rank_for_ratings(training.items.weights, training.items.weight_noise, mechanism.budget)
    if rank == 0:
        more = int(_MORE_WEIGHT * rest)
        training, rest = release_weights(training, more), rest - more
    return mean, training, rank, settings.shares.training(rest, rank, settings.steps)


def _updated_biases(
    biases: Doubles, evidence: Evidence, sums: StepSums, items: ItemStatistics, variance: float
) -> Doubles:
    """Item biases after a step, from the sums of residuals times the constant; the evidence takes them in."""
    response = sums.pooled.scale * _CONSTANT
    observed = sums.moments[:, -1] + evidence.weights * response * biases
    evidence.add(observed[:, None], np.array([[response]]), sums.noise)
    return bias_estimates(evidence, items.popularity, variance, items.weight_noise)


def _updated_factors(
    factors: Doubles, evidence: Evidence, sums: StepSums, prior: Doubles, features: Doubles
) -> tuple[Doubles, Doubles]:
    """Item factors and their prior after a step, in a basis in which users' vectors have unit variance."""
    add_moments(evidence, sums.moments[:, :-1], factors, sums.pooled, sums.noise, DAMPING)
    basis = sums.pooled.whitening()
    factors = evidence.posterior(prior, features) @ basis
    evidence.change_basis(basis)
    return factors, basis @ prior @ basis
