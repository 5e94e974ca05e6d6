"""The scales of ratings, from released sums: typical distances, and the variances within and between users."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

_EXPECTED_BIN = 3  # distances of a quarter of the range, or a little more
_EXPECTED_WEIGHT = 5.0  # users who would say so, in standard deviations of the noise
_EXPECTED_SPREAD = 0.5  # noise variance, in squares of the unit, before looking
_EXPECTED_RIDGE = 4.0  # noise variance over that of users' means, before looking
_RIDGE_SPREAD = 0.7  # standard deviation of its logarithm
_RIDGES = np.geomspace(0.05, 50.0, 200)
_LOOK_WEIGHT = 3.0  # what is expected before looking counts as this many users, in standard deviations of the noise
_DRIFT = 0.15  # change of the noise variance that one step may bring, relative
_RESPONSE_DRIFT = 0.05  # change of the response that one step may bring
_LEAST_RESPONSE = 0.3
_LEAST_VARIANCE = 1e-6  # of the first noise variance
_LEAST_RIDGE = 1e-3  # the same for ridges: equations in single precision need some


def typical_distance(counts: Doubles, noise: float, largest: float) -> float:
    """The lower end of the bin with the median distance, from released numbers of users per bin.

    Bins are those of `distance_contribution`. Where noise hides the numbers, it is a quarter of the largest distance.

    Examples
    --------
    >>> typical_distance(np.array([10.0, 200.0, 0.0, 100.0, 0.0, 0.0]), noise=1.0, largest=8.0)
    4.0
    """
    expected = np.maximum(counts, 0.0)
    expected[_EXPECTED_BIN] += _EXPECTED_WEIGHT * noise
    total = np.cumsum(expected)
    middle = int(np.searchsorted(total, total[-1] / 2))
    return float(largest * 2.0 ** (-(middle + 1) / 2))


class Spread(NamedTuple):
    """Sums over the users of what `spread_contribution` says, in squares of the rating scale; and their noise.

    `deviation_error` is the noise of the third, `noise` that of the second and the fourth.
    """

    squares: float
    freedom: float
    squared_deviations: float
    users: float
    noise: float
    deviation_error: float


class Fit(NamedTuple):
    """Sums over the users of what `fit_contribution` says, in squares of the rating scale; and their noise.

    `error` is the noise of the sum of squares, `noise` that of gain and freedom.
    """

    gain: float
    squares: float
    freedom: float
    response: float
    noise: float
    error: float

    @property
    def variance(self) -> tuple[float, float]:
        """The variance around the fit, and its standard deviation."""
        freedom = max(self.freedom, self.noise)
        variance = max(self.squares, 0.0) / freedom
        return variance, float(np.hypot(self.error, min(variance, self.error / self.noise) * self.noise) / freedom)


@dataclass(frozen=True)
class Scales:
    """What is known about the size of ratings.

    Parameters
    ----------
    noise_variance
        Of ratings around their predictions. It falls as the model learns.
    error
        Its standard deviation.
    user_variance
        Of users' biases.
    first
        The noise variance before training.
    """

    noise_variance: float
    error: float
    user_variance: float
    first: float

    @classmethod
    def of(cls, spread: Spread, unit: float) -> "Scales":
        """From the first look at the users' ratings; the less it says, the more counts what is expected anyway."""
        weight = _LOOK_WEIGHT * spread.noise
        freedom = max(spread.freedom, 0.0) + weight
        variance = (max(spread.squares, 0.0) + weight * _EXPECTED_SPREAD * unit**2) / freedom
        between = spread.squared_deviations - variance * max(spread.users - spread.freedom, 0.0)
        misfit = (between - variance * max(spread.users, 0.0) / _RIDGES) / spread.deviation_error
        chances = np.log(_RIDGES / _EXPECTED_RIDGE) ** 2 / _RIDGE_SPREAD**2 + misfit**2
        chances = np.exp((chances.min() - chances) / 2)
        ridge = float(np.exp(np.log(_RIDGES) @ chances / chances.sum()))
        return cls(variance, unit**2 * spread.noise / freedom, variance / ridge, variance)

    def updated(self, fit: Fit, parameters: float) -> "Scales":
        """After a step, as a Kalman filter has it. `parameters` is the share of the ratings that the items used up."""
        measured, error = (number / (1 - parameters) for number in fit.variance)
        drift = _DRIFT * self.noise_variance
        variance, left = _filtered(self.noise_variance, self.error, drift, measured, error)
        return replace(self, noise_variance=max(variance, _LEAST_VARIANCE * self.first), error=left)

    @property
    def noise(self) -> float:
        """Standard deviation of ratings around their predictions."""
        return float(np.sqrt(self.noise_variance))

    @property
    def ridge_variance(self) -> float:
        """The noise variance that ridges are in proportion to."""
        return max(self.noise_variance, _LEAST_RIDGE * self.first)

    @property
    def user_bias_ridge(self) -> float:
        """How many ratings' worth of evidence a user's bias starts with."""
        return self.ridge_variance / self.user_variance

    def uncertainty_after(self, n_ratings: float) -> float:
        """Variance of a user's bias given this many of the user's ratings."""
        return self.user_variance / (1 + n_ratings / self.user_bias_ridge)


@dataclass(frozen=True)
class Response:
    """How far a user's weighted residuals fall where item biases rise, as a share of what they would without the user.

    A user's own fit takes up some of it, and a clip hides more: most of all for users with few ratings.

    Parameters
    ----------
    value
        The share.
    error
        Its standard deviation.
    """

    value: float = 0.8
    error: float = 0.2

    def updated(self, measured: float, error: float) -> "Response":
        """After a step, as a Kalman filter has it."""
        value, left = _filtered(self.value, self.error, _RESPONSE_DRIFT, measured, error)
        return Response(float(np.clip(value, _LEAST_RESPONSE, 1.0)), left)


def _filtered(value: float, sd: float, drift: float, measured: float, error: float) -> tuple[float, float]:
    """A number that may have drifted, with its standard deviation, after a measurement that has an error."""
    predicted = float(np.hypot(sd, drift))
    gain = predicted**2 / (predicted**2 + error**2)
    return value + gain * (measured - value), predicted * float(np.sqrt(1 - gain))
