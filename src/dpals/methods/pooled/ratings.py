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
    Costs,
    Settings,
    StepCosts,
    rank_for_ratings,
    signal_of_ratings,
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
from dpals.private.scales import (
    MOST_DEVIATION,
    MOST_SPREAD,
    Centre,
    Distances,
    UserShares,
    centre_contribution,
    distance_contribution,
    spread_contribution,
)
from dpals.private.user_vectors import LeastSquaresProblem
from dpals.public.biases import shrunken_ratio
from dpals.public.evidence import Evidence, Sampling
from dpals.public.pooled import add_moments, bias_estimates
from dpals.public.scales import Scales, Spread, typical_distance
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
        settled = number >= SETTLING * settings.steps
        if settings.rank is None and settled and learner.comparison.speaks_against_factors:
            learner.start_factors(features[:, :0])
        if number == settings.steps:
            learner.recentre(centre_cost)
        after_step(number, settings.steps, learner.model)
    return learner.model(), start.training.items


@dataclass
class Comparison:
    """What users' own ratings say about the factors: how much they gain over biases alone, over several steps."""

    gain: float = 0.0
    precision: float = 0.0

    def add(self, gain: float, noise: float) -> None:
        self.gain += gain / noise**2
        self.precision += 1 / noise**2

    def fade(self, keep: float) -> None:
        self.gain *= keep
        self.precision *= keep

    @property
    def speaks_against_factors(self) -> bool:
        """Whether the mean gain is negative, by twice its standard deviation or more."""
        return self.gain < -2 * math.sqrt(self.precision)


class Start(NamedTuple):
    """What is known before training: about items, users and how many ratings they have, the mean and the scales."""

    training: Training
    n_users: float
    history: float
    mean: float
    scales: Scales


class Learner:
    """Biases and factors of the items while they are learned, and what is known about them so far."""

    def __init__(self, start: Start, expected: Expected, clip: float) -> None:
        self.training, self.mean, self.scales, self.history = start.training, start.mean, start.scales, start.history
        self.expected, self.clip = expected, clip
        items = self.training.items
        self.weights = items.estimates.root_mean_square
        # Weights are uncertain: the best linear estimate has the mean square where moments are multiplied by the mean.
        self.reliability = items.estimates.mean / np.maximum(self.weights, 1e-300)
        # Each user's squared weights add up to 1, and a rating weighs in proportion to what is public about its item.
        total = float(self.weights @ items.rating_weights)
        self.rating_weights = items.rating_weights * (start.n_users / total if total > 0 else 1.0)
        self.n_ratings = max(float(np.sum(self.weights / self.rating_weights)), 1.0)
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
        self.comparison.fade(keep)

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
        result: Doubles = variance * self.rating_weights / np.maximum(self.weights, 1e-9)
        return result

    def _update_biases(self, sums: StepSums) -> None:
        """Item biases after a step, from the sums of residuals times the constant."""
        response = sums.pooled.scale * _CONSTANT
        observed = self.reliability * sums.moments[:, -1] + self.weights * response * self.biases
        self.about_biases.add(observed[:, None], np.array([[response]]), sums.noise)
        self.biases, self.n_bias_parameters = bias_estimates(
            self.about_biases, self.training.items.popularity, self.bias_variance, self._sampling
        )

    def _update_factors(self, sums: StepSums, features: Doubles) -> None:
        """Item factors and their prior after a step, in a basis in which users' vectors have unit variance."""
        pooled, moments = sums.pooled, self.reliability[:, None] * sums.moments[:, :-1]
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
        public = UserShares(Centre(self.mean + self.biases, furthest), self.scales.user_bias_ridge)
        query = Query("distance from the model", 1, np.sqrt(2), "vector", 2)
        total, users = self.training.release(centre_contribution, public, query, cost)[0]
        noise = self.training.mechanism.releases[-1].sigma
        self.mean += furthest * float(shrunken_ratio(np.array([total]), np.array([users]), noise, 1.0)[0])


def _before_training(ratings: Population, settings: Settings, mechanism: Mechanism) -> tuple[Start, int, Costs, int]:
    """What is known before training, the rank, and what the releases of the run and the last one may cost."""
    shares = settings.shares.before_training(*SCALE_SHARES, CENTRE_SHARE)
    mean_cost, *weight_costs, distance_cost, spread_cost, centre_cost, rest = mechanism.budget.split(*shares)
    mean, n_users = release_mean_and_number(mechanism, ratings, mean_cost)
    training = release_item_statistics(ratings, settings.weight_exponent, mechanism, weight_costs)
    scales = _release_scales(training, mean, distance_cost, spread_cost)
    items = training.items
    history = (LARGEST_SUM * items.total_user_weight / n_users) ** 2
    signal = signal_of_ratings(items.weights, items.weight_noise, mechanism.budget, history)
    rank = min(rank_for_ratings(signal), ratings.n_items) if settings.rank is None else settings.rank
    if rank == 0:
        more = int(_MORE_WEIGHT * rest)
        training, rest = release_weights(training, more), rest - more
    costs = settings.shares.training(rest, rank, settings.steps, signal)
    return Start(training, n_users, history, mean, scales), rank, costs, centre_cost


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
    spread = Spread(scale[0] * squares, freedom, scale[1] * deviations, number, releases[-1].sigma)
    return Scales.of(spread, unit)
