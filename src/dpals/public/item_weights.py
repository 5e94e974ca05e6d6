"""What released item weights say about the true ones."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

_SURE = 20.0  # standard deviations of the noise from which on a released weight counts as the true one
_ROUNDS = 200
_CELLS = 8  # released weights are rounded to this part of the noise
_GRID = np.concatenate([[0.0], np.geomspace(0.02, _SURE + 5, 100)])


class WeightEstimates(NamedTuple):
    """Mean and root mean square of each true weight, given the released weights of all items."""

    mean: Doubles
    root_mean_square: Doubles

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether the mean is at least twice the standard deviation."""
        return self.mean**2 > 4 * (self.root_mean_square**2 - self.mean**2)


def weight_estimates(released: Doubles, noise: float) -> WeightEstimates:
    """Where there are many items of little weight, most that look heavy owe it to noise, and are taken for light.

    Weights come from a distribution that is taken to be the most likely one (Kiefer and Wolfowitz, 1956), found by
    expectation maximisation on a grid.

    Examples
    --------
    >>> few, many = (np.append(np.zeros(n), [4.0, 100.0]) for n in (10, 100_000))
    >>> weight_estimates(few, noise=1.0).mean[-2:].round(1).tolist()
    [4.0, 100.0]
    >>> weight_estimates(many, noise=1.0).mean[-2:].round(1).tolist()
    [0.1, 100.0]
    """
    scaled = released / noise
    mean, square = scaled.copy(), scaled**2 + 1
    unsure = scaled < _SURE
    if unsure.any():
        cells, places = np.unique(np.round(scaled[unsure] * _CELLS), return_inverse=True)
        chances = _posterior(cells / _CELLS, np.bincount(places))
        mean[unsure], square[unsure] = (chances @ _GRID)[places], (chances @ _GRID**2)[places]
    return WeightEstimates(mean * noise, np.sqrt(square) * noise)


def _posterior(observed: Doubles, counts: NDArray[np.int64]) -> Doubles:
    """Probabilities of the weights on the grid, given observations of them with unit noise and how many there are."""
    distances = (observed[:, None] - _GRID) ** 2 / 2
    likelihood = np.exp(-np.minimum(distances - distances.min(axis=1, keepdims=True), 700.0))
    shares = np.full(len(_GRID), 1 / len(_GRID))
    for _ in range(_ROUNDS):
        chances = likelihood * shares
        chances /= chances.sum(axis=1, keepdims=True)
        shares = counts @ chances / counts.sum()
    chances = likelihood * shares
    result: Doubles = chances / chances.sum(axis=1, keepdims=True)
    return result
