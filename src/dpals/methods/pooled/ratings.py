"""PooledDPALS for ratings: their scales and biases first, then factors, from the residuals of users' own fits."""

import math
from dataclasses import dataclass
from typing import NamedTuple

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
    StepCosts,
    rank_for_ratings,
    signal_of_ratings,
    use_of_factors,
)
from dpals.methods.pooled.releases import (
    LARGEST_SUM,
    ItemStatistics,
    StepScale,
    StepSums,
    Training,
    release_cooccurrence,
    release_item_statistics,
    release_step,
    release_weights,
)
from dpals.methods.shared.means import half_range, release_mean_and_number
from dpals.model.factor_model import FactorModel
from dpals.private.pooled import Groups, covariance_share, squared_weight_contribution
from dpals.private.scales import (
    MOST_DEVIATION,
    MOST_SPREAD,
    Centre,
    Distances,
    centre_contribution,
    distance_contribution,
    spread_contribution,
)
from dpals.private.user_vectors import LeastSquaresProblem
from dpals.public.biases import shrunken_ratio
from dpals.public.evidence import Evidence, Sampling
from dpals.public.item_weights import groups_of_equal_weight, squares_per_weight
from dpals.public.pooled import add_moments, bias_estimates
from dpals.public.scales import Response, Scales, Spread, typical_distance
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]

FADING = 0.5
"""What the evidence about factors is multiplied by before each early step, while users' vectors still change a lot."""
SETTLING = 0.4
"""Share of the steps that are early in this sense."""
DAMPING = 0.3
"""Where a step lies between Newton's method (0, unstable) and expectation maximisation (1, slow)."""
_RIDGE = 0.75  # of users' vectors, whose coordinates have unit variance, in units of the noise variance
_START = 0.1  # root mean square of the first factors, in units of the noise
_CONSTANT = 1.6  # the coordinate beside a user's vector that learns biases
_PRIOR_WEIGHT = 1000.0  # what is expected of tastes counts as this many items
_FURTHEST = 3.0  # of a user's mean from the centre, in standard deviations
_OFF_CENTRE = 0.1  # how far the mean is expected to be off before recentring, in units of the same
_GROUPS = 12  # of items, for squared weights
_BINS = 24  # for distances from the mean
_MORE_WEIGHT = 0.15  # share of the rest that goes to item weights if there is nothing but biases to learn


class Expected(NamedTuple):
    """Standard deviations, before looking, of what tastes explain and of item biases, in units of the noise."""

    taste: float
    bias: float


def fit_ratings(
    ratings: Population, settings: Settings, expected: Expected, mechanism: Mechanism, after_step: AfterStep
) -> tuple[FactorModel, ItemStatistics]:
    """Factors v_j and biases b_j, for which user i rates item j about mean + b_j + bias of i + u_i . v_j.

    Each step releases for every item the sum of the users' residuals times their vectors, and updates factors and
    biases by everything released so far. Unless the rank is given, factors that predict users' ratings worse than
    biases alone are dropped. The second result is what is known of the items: if nothing could be learned, the model
    stays at users' means.
    """
    start, rank, costs, centre_cost = _before_training(ratings, settings, mechanism)
    features, _ = release_cooccurrence(start.training, rank, settings.seed, costs.cooccurrence)
    learner = Learner(start, expected, settings.clip)
    learner.step(costs.biases, "bias step")
    learner.start_factors(features[:, :rank])
    for number, cost in enumerate(costs.steps, 1):
        if number <= SETTLING * settings.steps:
            learner.fade(FADING)
        learner.step(cost, f"step {number}", features)
        if number == settings.steps:
            if settings.rank is None and learner.comparison.speaks_against_factors:
                learner.start_factors(features[:, :0])
            learner.recentre(centre_cost)
        after_step(number, settings.steps, learner.model)
    return learner.model(), start.training.items


@dataclass
class Comparison:
    """What users' own ratings say about the factors: how much they gain over biases alone, in the last few steps."""

    gain: float = 0.0
    precision: float = 0.0

    def add(self, gain: float, noise: float) -> None:
        """Add what a step says; the factors of earlier steps were worse, so that they count for less."""
        self.gain = FADING * self.gain + gain / noise**2
        self.precision = FADING * self.precision + 1 / noise**2

    @property
    def speaks_against_factors(self) -> bool:
        """Whether the mean gain is negative, by 1.5 standard deviations or more."""
        return self.gain < -1.5 * math.sqrt(self.precision)


class Start(NamedTuple):
    """What is known before training: about items, users and how many ratings they have, the mean and the scales."""

    training: Training
    squares_per_weight: Doubles
    history: float
    mean: float
    scales: Scales


class Learner:
    """Biases and factors of the items while they are learned, and what is known about them so far."""

    def __init__(self, start: Start, expected: Expected, clip: float) -> None:
        self.training, self.mean, self.scales, self.history = start.training, start.mean, start.scales, start.history
        self.expected, self.clip = expected, clip
        self.estimates = self.training.items.estimates
        self.weights = self.estimates.size_biased_rms
        self.squares_per_weight = start.squares_per_weight
        self.n_ratings = max(float(np.sum(self.estimates.mean / self.squares_per_weight)), 1.0)
        self.response = Response()
        self.bias_variance = (expected.bias * self.scales.noise) ** 2
        self.biases, self.n_bias_parameters = np.zeros(len(self.weights)), 0.0
        self.about_biases = Evidence.none(self.weights, 1)
        self.start_factors(np.zeros((len(self.weights), 0)))

    def start_factors(self, features: Doubles) -> None:
        """Factors in proportion to the features, and nothing known about them."""
        rank = features.shape[1]
        self.factors = _START * self.scales.noise * features
        self.prior = np.eye(rank) * (self.expected.taste * self.scales.noise) ** 2 / max(rank, 1)
        self.about_factors, self.n_factor_parameters = Evidence.none(self.weights, rank), 0.0
        self.comparison = Comparison()

    def fade(self, keep: float) -> None:
        """Count for less what is known about the factors."""
        self.about_factors.fade(keep)

    @property
    def user_ridge(self) -> float:
        return _RIDGE * self.scales.ridge_variance

    def model(self) -> FactorModel:
        users = self.training.users
        return FactorModel(
            items=users.items,
            item_factors=self.factors.astype(np.float32),
            item_biases=self.biases.astype(np.float32),
            global_mean=self.mean,
            user_ridge=self.user_ridge,
            user_bias_ridge=self.scales.user_bias_ridge,
            rating_range=users.rating_range,
        )

    def step(self, cost: StepCosts, name: str, features: Doubles | None = None) -> None:
        """One release of right-hand sides, and what follows from it for scales, biases and factors."""
        problem = LeastSquaresProblem.of(
            self.factors, self.biases, self.mean, self.user_ridge, bias_ridge=self.scales.user_bias_ridge
        )
        scale = StepScale(_CONSTANT, residual=self.clip * self.scales.noise)
        penalty = (1 - self._used_up(self.n_factor_parameters)) ** -2
        sums = release_step(self.training, problem, scale, cost, name, self.scales.noise, penalty)
        assert sums.fit is not None
        self.comparison.add(sums.fit.gain, sums.fit.noise)
        self.scales = self.scales.updated(sums.fit, self._used_up(self.n_bias_parameters + self.n_factor_parameters))
        self._update_biases(sums)
        if self.factors.shape[1]:
            assert features is not None
            self._update_factors(sums, features)

    def _used_up(self, parameters: float) -> float:
        """Share of the ratings that this many parameters of the items fit by themselves."""
        return min(parameters / self.n_ratings, 0.7)

    @property
    def _sampling(self) -> Doubles:
        """Variance of an item's mean residual for lack of ratings, by users whose own biases are uncertain."""
        variance = self.scales.noise_variance + self.scales.uncertainty_after(self.history)
        result: Doubles = variance * self.squares_per_weight / np.maximum(self.weights, 1e-9)
        return result

    def _update_biases(self, sums: StepSums) -> None:
        """Item biases after a step, from the sums of residuals times the constant."""
        fit, pooled, total = sums.fit, sums.pooled, self.training.items.total_user_weight
        assert fit is not None
        everybody = pooled.scale * total * covariance_share(self.factors.shape[1])
        self.response = self.response.updated(fit.response / everybody, fit.noise / everybody)
        response = self.response.value * pooled.scale * _CONSTANT
        observed = sums.moments[:, -1] + self.estimates.size_biased_mean * response * self.biases
        self.about_biases.add(observed[:, None], np.array([[response]]), sums.noise)
        self.biases, self.n_bias_parameters = bias_estimates(
            self.about_biases, self.estimates, self.bias_variance, self._sampling
        )

    def _update_factors(self, sums: StepSums, features: Doubles) -> None:
        """Item factors and their prior after a step, in a basis in which users' vectors have unit variance."""
        pooled, moments = sums.pooled, self.estimates.reliability[:, None] * sums.moments[:, :-1]
        add_moments(self.about_factors, moments, self.factors, pooled, sums.noise, DAMPING)
        response = pooled.vectors + DAMPING * pooled.covariance
        sampling = Sampling(self._sampling, np.linalg.inv(response / pooled.scale).astype(np.float64))
        posterior, basis = self.about_factors.posterior(self.prior, features, sampling), pooled.whitening()
        self.factors, self.n_factor_parameters = posterior.mean @ basis, posterior.n_parameters
        self.prior = basis @ posterior.updated_prior(self.prior, _PRIOR_WEIGHT) @ basis
        self.about_factors.change_basis(basis)

    def recentre(self, cost: int) -> None:
        """Bring the mean to where predictions are right on average: clipped residuals find medians of the items."""
        furthest = _FURTHEST * float(np.sqrt(self.scales.noise_variance + self.scales.user_variance))
        public = Centre(self.mean + self.biases, furthest)
        query = Query("distance from the model", 1, np.sqrt(2), "vector", 2)
        total, users = self.training.release(centre_contribution, public, query, cost)[0]
        noise = self.training.mechanism.releases[-1].sigma
        self.mean += furthest * float(shrunken_ratio(np.array([total]), np.array([users]), noise, _OFF_CENTRE)[0])


def _before_training(ratings: Population, settings: Settings, mechanism: Mechanism) -> tuple[Start, int, Costs, int]:
    """What is known before training, the rank, and what the releases of the run and the last one may cost."""
    shares = settings.shares.before_training(*SCALE_SHARES, SQUARES_SHARE, CENTRE_SHARE)
    costs_before = mechanism.budget.split(*shares)
    mean_cost, *weight_costs, distance_cost, spread_cost, squares_cost, centre_cost, rest = costs_before
    mean, n_users = release_mean_and_number(mechanism, ratings, mean_cost)
    training = release_item_statistics(ratings, settings.weight_exponent, mechanism, weight_costs)
    scales = _release_scales(training, mean, distance_cost, spread_cost)
    items = training.items
    history = (LARGEST_SUM * items.total_user_weight / n_users) ** 2
    signal = signal_of_ratings(items.weights, items.weight_noise, mechanism.budget, history)
    rank = min(rank_for_ratings(signal), ratings.n_items) if settings.rank is None else settings.rank
    more = int(_MORE_WEIGHT * (1 - use_of_factors(signal) * (rank > 0)) * rest)
    training, rest = release_weights(training, more), rest - more
    costs = settings.shares.training(rest, rank, settings.steps, signal)
    return (
        Start(training, _release_squares(training, n_users, squares_cost), history, mean, scales),
        rank,
        costs,
        centre_cost,
    )


def _release_squares(training: Training, n_users: float, cost: int) -> Doubles:
    """For each item the sum of squared weights over that of weights: 1 if its users have no others, less otherwise."""
    weights = training.items.estimates.mean
    groups = groups_of_equal_weight(weights, _GROUPS)
    query = Query("squared weights of groups of items", 1, 1.0, "vector", _GROUPS)
    squares = training.release(squared_weight_contribution, Groups(training.weights, groups, _GROUPS), query, cost)[0]
    return squares_per_weight(squares, training.mechanism.releases[-1].sigma, weights, groups, n_users)


def _release_scales(training: Training, mean: float, distance_cost: int, spread_cost: int) -> Scales:
    """The scales of ratings: first what is typical of their distances from the mean, then variances in this unit."""
    users, releases = training.users, training.mechanism.releases
    largest = 2 * half_range(users)
    query = Query("distances from the mean", _BINS, 1.0)
    counts = training.release(distance_contribution, Distances(mean, largest, _BINS), query, distance_cost)[:, 0]
    unit = typical_distance(counts, releases[-1].sigma, largest)
    public = Centre(np.full(users.n_items, mean), unit)
    query = Query("spread of the ratings", 1, 2.0, "vector", 4)
    squares, freedom, deviations, number = training.release(spread_contribution, public, query, spread_cost)[0]
    scale = MOST_SPREAD * unit**2, MOST_DEVIATION * unit**2
    noise = releases[-1].sigma
    spread = Spread(scale[0] * squares, freedom, scale[1] * deviations, number, noise, scale[1] * noise)
    return Scales.of(spread, unit)
