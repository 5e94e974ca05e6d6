"""What PooledDPALS learns about rated items, release by release: biases, factors, and what histories say of users."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpals.methods.pooled.budget import StepCosts
from dpals.methods.pooled.releases import StepScale, StepSums, Training, release_histories, release_step
from dpals.model.factor_model import FactorModel
from dpals.private.histories import Histories, HistoryFit
from dpals.private.pooled import covariance_share
from dpals.private.scales import Centre, FitUnits, centre_contribution
from dpals.private.user_vectors import LeastSquaresProblem
from dpals.public.biases import BiasEvidence, bias_estimates, shrunken_ratio
from dpals.public.evidence import Evidence, Sampling
from dpals.public.histories import HistoryRegression
from dpals.public.pooled import add_moments
from dpals.public.scales import Response, Scales
from dpals.release.contribution import Query

Doubles = NDArray[np.float64]

FADING = 0.5
"""What the evidence about factors is multiplied by before each early step, while users' vectors still change a lot."""
SETTLING = 0.4
"""Share of the steps before which it fades."""
DAMPING = 0.3
"""Where a step lies between Newton's method (0, unstable) and expectation maximisation (1, slow)."""
_RIDGE = 0.75  # of users' vectors, whose coordinates have unit variance, in units of the noise variance
_START = 0.1  # root mean square of the first factors, in units of the noise
_CONSTANT = 1.6  # the coordinate beside a user's vector that learns biases
_PRIOR_WEIGHT = 1000.0  # what is expected of tastes counts as this many items
_FURTHEST = 3.0  # of a user's mean from the centre, in standard deviations
_OFF_CENTRE = 0.1  # how far the mean is expected to be off before recentring, in units of the same


class Expected(NamedTuple):
    """Standard deviations, before looking, of what tastes explain and of item biases, in units of the noise."""

    taste: float
    bias: float


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
        """Whether the mean gain is negative, by 2 standard deviations or more."""
        return self.gain < -2 * math.sqrt(self.precision)


class Start(NamedTuple):
    """What is known before training, about items, users and scales."""

    training: Training
    squares_per_weight: Doubles
    typical_count: float
    """Of the ratings of a user."""
    n_users: float
    mean: float
    scales: Scales


class Learner:
    """Biases and factors of the items while they are learned, and what is known about them so far."""

    def __init__(self, start: Start, expected: Expected, clip: float, features: Doubles) -> None:
        self.start, self.training, self.mean, self.scales = start, start.training, start.mean, start.scales
        self.expected, self.clip, self.features = expected, clip, features
        self.estimates = self.training.items.estimates
        self.weights = self.estimates.size_biased_rms
        self.n_ratings = max(float(np.sum(self.estimates.mean / start.squares_per_weight)), 1.0)
        self.response = Response()
        self.expected_bias_variance = (expected.bias * self.scales.noise) ** 2
        self.biases, self.bias_variance = np.zeros(len(self.weights)), self.expected_bias_variance
        self.n_bias_parameters = 0.0
        self.about_biases = BiasEvidence.none(len(self.weights))
        self.start_factors(np.zeros((len(self.weights), 0)))

    def start_factors(self, directions: Doubles) -> None:
        """Factors in proportion to these, and nothing known about them."""
        rank = directions.shape[1]
        self.factors = _START * self.scales.noise * directions
        self.prior = np.eye(rank) * (self.expected.taste * self.scales.noise) ** 2 / max(rank, 1)
        self.about_factors, self.n_factor_parameters = Evidence.none(self.weights, rank), 0.0
        self.comparison = Comparison()
        self.histories: Histories | None = None

    def start_again(self, directions: Doubles) -> None:
        """The same, and features and histories count no longer."""
        self.start_factors(directions)
        self.features = self.features[:, :0]

    def start_histories(self, cost: int) -> None:
        """Prepare to learn what users' histories, sums of features, say about their vectors."""
        self.histories = release_histories(self.training, self.features, self.start.n_users, cost)
        rank = self.factors.shape[1]
        self.regression = HistoryRegression.none(self.histories.features, self.start.n_users, rank)

    def fade(self, keep: float) -> None:
        """Count for less what is known about the factors."""
        self.about_factors.fade(keep)
        if self.histories is not None:
            self.regression.fade(keep)

    @property
    def user_ridge(self) -> float:
        return _RIDGE * self.scales.ridge_variance

    @property
    def history_factors(self) -> Doubles | None:
        """What each item of a history adds to the vector that is expected of the user, the bias last."""
        return None if self.histories is None else self.regression.factors() * self._units

    @property
    def _units(self) -> Doubles:
        """Standard deviations of the coordinates of users' vectors."""
        return np.append(np.ones(self.factors.shape[1]), np.sqrt(self.scales.user_variance))

    def model(self) -> FactorModel:
        users, history = self.training.users, self.history_factors
        return FactorModel(
            items=users.items,
            item_factors=self.factors.astype(np.float32),
            item_biases=self.biases.astype(np.float32),
            global_mean=self.mean,
            user_ridge=self.user_ridge,
            user_bias_ridge=self.scales.user_bias_ridge,
            rating_range=users.rating_range,
            history_factors=None if history is None else history.astype(np.float32),
        )

    def step(self, cost: StepCosts, name: str) -> None:
        """One release of right-hand sides, and what follows from it for scales, biases and factors."""
        problem = LeastSquaresProblem.of(
            self.factors,
            self.biases,
            self.mean,
            self.user_ridge,
            bias_ridge=self.scales.user_bias_ridge,
            history=self.history_factors,
        )
        scale = StepScale(_CONSTANT, residual=self.clip * self.scales.noise)
        penalty = 1 / (1 - self._used_up(self.n_factor_parameters))
        fit = FitUnits(self.scales.noise, penalty)
        sums = release_step(self.training, problem, scale, cost, name, fit, self._history_fit())
        assert sums.fit is not None
        self.comparison.add(sums.fit.gain, sums.fit.noise)
        self.scales = self.scales.updated(sums.fit, self._used_up(self.n_bias_parameters + self.n_factor_parameters))
        self._update_biases(sums)
        if self.histories is not None:
            self._update_histories(sums)
        if self.factors.shape[1]:
            self._update_factors(sums)

    def _history_fit(self) -> HistoryFit | None:
        if self.histories is None:
            return None
        # Histories have unit second moments, and of a vector about half is known to the user.
        bound = math.sqrt(self.histories.features.shape[1] * len(self._units) / 2)
        return HistoryFit(self.histories, bound, self._units)

    def _used_up(self, parameters: float) -> float:
        """Share of the ratings that this many parameters of the items fit by themselves."""
        return min(parameters / self.n_ratings, 0.7)

    @property
    def _sampling(self) -> Doubles:
        """Variance of the mean residual of an item of weight 1, by few users whose own biases are uncertain."""
        variance = self.scales.noise_variance + self.scales.uncertainty_after(self.start.typical_count)
        result: Doubles = variance * self.start.squares_per_weight
        return result

    def _update_biases(self, sums: StepSums) -> None:
        """Item biases after a step, from the sums of residuals times the constant."""
        fit, pooled, total = sums.fit, sums.pooled, self.training.items.total_user_weight
        assert fit is not None
        everybody = pooled.scale * total * covariance_share(self.factors.shape[1])
        self.response = self.response.updated(fit.response / everybody, fit.noise / everybody)
        response = self.response.value * pooled.scale * _CONSTANT
        self.about_biases.add(sums.moments[:, -1], self.biases, response, sums.noise)
        self.biases, self.bias_variance, self.n_bias_parameters = bias_estimates(
            self.about_biases, self.estimates, self.expected_bias_variance, self.bias_variance, self._sampling
        )

    def _update_histories(self, sums: StepSums) -> None:
        """What histories say after a step, from the sums of histories times vectors."""
        assert sums.histories is not None
        rank, count = self.factors.shape[1], self.start.typical_count
        known = 1 - np.trace(sums.pooled.covariance) / sums.pooled.scale / rank
        bias_known = count / (count + self.scales.user_bias_ridge)
        self.regression.add(sums.histories, sums.history_noise, np.append(np.full(rank, known), bias_known))

    def _update_factors(self, sums: StepSums) -> None:
        """Item factors and their prior after a step, in a basis in which users' vectors have unit variance."""
        pooled, moments = sums.pooled, self.estimates.reliability[:, None] * sums.moments[:, :-1]
        add_moments(self.about_factors, moments, self.factors, pooled, sums.noise, DAMPING)
        response = (pooled.vectors + DAMPING * pooled.covariance) / pooled.scale
        sampling = Sampling(self._sampling / np.maximum(self.weights, 1e-9), np.linalg.inv(response).astype(np.float64))
        posterior, basis = self.about_factors.posterior(self.prior, self.features, sampling), pooled.whitening()
        self.factors, self.n_factor_parameters = posterior.mean @ basis, posterior.n_parameters
        self.prior = basis @ posterior.updated_prior(self.prior, _PRIOR_WEIGHT) @ basis
        self.about_factors.change_basis(basis)
        if self.histories is not None:
            self.regression.change_basis(basis)

    def recentre(self, cost: int) -> None:
        """Bring the mean to where predictions are right on average: clipped residuals find medians of the items."""
        furthest = _FURTHEST * float(np.sqrt(self.scales.noise_variance + self.scales.user_variance))
        public = Centre(self.mean + self.biases, furthest)
        query = Query("distance from the model", 1, np.sqrt(2), "vector", 2)
        total, users = self.training.release(centre_contribution, public, query, cost)[0]
        noise = self.training.mechanism.releases[-1].sigma
        self.mean += furthest * float(shrunken_ratio(np.array([total]), np.array([users]), noise, _OFF_CENTRE)[0])
