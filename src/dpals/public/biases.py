"""Item biases from released sums."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpals.kernels.bias_posterior import posterior_means
from dpals.public.item_weights import WeightEstimates

FloatArray = NDArray[np.float64]

_LEAST_WEIGHT = 0.01  # of an item, about one rating by somebody who has 10,000
_EXPECTED_ITEMS = 200.0  # what the variance of item biases that is expected before looking counts as
_LEAST_VARIANCE = 0.03  # of item biases, as a share of what is expected
_ROUNDS = 4  # in which line and variance are fitted


def shrunken_ratio(
    moments: FloatArray, weights: FloatArray, noise: float, prior: float, weight_noise: float = 0.0
) -> FloatArray:
    """Posterior mean of b from moments = weights * b + noise, where b has the prior standard deviation.

    Weights that are noisy themselves shrink it further: four times their noise variance did best on simulated ratings
    at epsilon from 0.01 to 5. Items about which little is known come out near 0.
    """
    weights = np.maximum(weights, 0.0)
    ridge = (noise / prior) ** 2 + 4 * weight_noise**2
    result: FloatArray = weights * moments / (weights**2 + ridge)
    return result


@dataclass(eq=False)
class BiasEvidence:
    """What releases say about item biases b_j: sums that are r A_j (b_j - c_j) + noise, where c_j was taken off before.

    The response r and the noise s are those of a release; the weight A_j of an item is uncertain.

    Parameters
    ----------
    precision
        The sum over the releases of (r / s)^2.
    sums, taken, taken_squares, products
        Sums over the releases, item by item: of r y / s^2, where y is what was released; of c and c^2 times (r / s)^2;
        and of r y c / s^2.
    """

    precision: float
    sums: FloatArray
    taken: FloatArray
    taken_squares: FloatArray
    products: FloatArray

    @classmethod
    def none(cls, n_items: int) -> "BiasEvidence":
        return cls(0.0, *np.zeros((4, n_items)))

    def add(self, released: FloatArray, taken: FloatArray, response: float, noise: float) -> None:
        """Add a release."""
        precision = (response / noise) ** 2
        self.precision += precision
        self.sums += response / noise**2 * released
        self.taken += precision * taken
        self.taken_squares += precision * taken**2
        self.products += response / noise**2 * released * taken

    def around(self, trend: FloatArray) -> FloatArray:
        """The sums for b_j and c_j less the trend: of y, c, c^2 and y c, one column each."""
        columns = [
            self.sums,
            self.taken - self.precision * trend,
            self.taken_squares + trend * (self.precision * trend - 2 * self.taken),
            self.products - trend * self.sums,
        ]
        return np.column_stack(columns)


class BiasEstimates(NamedTuple):
    """Item biases, their variance around a trend, and how many numbers were in effect fitted for them."""

    biases: FloatArray
    variance: float
    n_parameters: float


def bias_estimates(
    known: BiasEvidence, weights: WeightEstimates, expected: float, before: float, sampling: FloatArray
) -> BiasEstimates:
    """Item biases, shrunk toward a straight line in the logarithm of the items' weights.

    Items that many people rate are rated higher, and little else is known about rarely rated items. How much biases
    vary around the line comes from the evidence less its noise, where the variance that is expected counts as
    `_EXPECTED_ITEMS` well-known items, and starts from the variance found before. `sampling` is the variance that the
    bias of an item of weight 1 has because its users are few; it falls with the weight.

    The biases are those with the least expected squared error of ratings, by Bayes' rule. Errors count as often as the
    item is rated, so that each possible weight of an item counts in proportion to its size.
    """
    weight, share = weights.size_biased_rms, weights.reliability
    precision = weight**2 * known.precision
    heard = precision > 0
    observed = weight * (known.sums + weights.size_biased_mean * known.taken)
    measured = np.divide(observed, precision, out=np.zeros_like(precision), where=heard)
    noise = np.divide(1.0, precision, out=np.full_like(precision, np.inf), where=heard)
    noise += sampling / np.maximum(weight, 1e-9)
    level, slope = share, share * np.log(np.maximum(weights.mean, _LEAST_WEIGHT))
    # Measurements per unit of the root mean square of the weights vary as much as the biases.
    scale = np.divide(weight, weights.root_mean_square, out=np.zeros_like(precision), where=heard) ** 2
    errors, variance = np.multiply(noise, scale, out=np.full_like(noise, np.inf), where=heard), before
    for _ in range(_ROUNDS):
        trust = 1 / (noise + variance)
        # The line starts at 0, with the weight of one well-known item.
        system = np.array([[trust @ level**2, trust @ (level * slope)], [0.0, trust @ slope**2]])
        system[1, 0] = system[0, 1]
        line = np.linalg.solve(system + np.eye(2) / expected, [(trust * measured) @ level, (trust * measured) @ slope])
        squares = (measured - line[0] * level - line[1] * slope) ** 2 * scale
        shares = (variance / (errors + variance)) ** 2  # how much an item says about the variance
        excess = shares @ squares - shares[heard] @ errors[heard]
        found = float((_EXPECTED_ITEMS * expected + excess) / (_EXPECTED_ITEMS + shares.sum()))
        # Half of the way, so that it does not swing from side to side.
        variance = float(np.sqrt(variance * max(found, _LEAST_VARIANCE * expected)))
    trend = line[0] + line[1] * np.log(np.maximum(weights.mean, _LEAST_WEIGHT))
    around = posterior_means(weights.values, known.precision, known.around(trend), sampling, variance)
    return BiasEstimates(trend + around, variance, float(np.sum(variance / (noise + variance))))
