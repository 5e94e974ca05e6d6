"""A user's vector by Frank-Wolfe: the published steps of the training, repeated on the user's own ratings."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpals.data.ratings import Ratings
from dpals.kernels.threads import in_threads
from dpals.private.means import user_offsets

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FrankWolfeSteps:
    """What users must know of each step of Frank-Wolfe besides its direction.

    Step t multiplies a user's fit by `keeps[t]` and adds `gains[t]` times the user's residuals along the direction,
    times the direction. Before that, residuals are scaled down to the norm `clip`.
    """

    gains: Doubles
    keeps: Doubles
    clip: float

    def __post_init__(self) -> None:
        if self.gains.shape != self.keeps.shape or self.gains.ndim != 1:
            raise ValueError(f"a step has one gain and one keep, but there are {self.gains.shape}, {self.keeps.shape}")
        if not (np.isfinite(self.gains).all() and np.isfinite(self.keeps).all() and self.clip > 0):
            raise ValueError("gains and keeps must be finite, and the clip positive")

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, for JSON; `from_dict` reads them back."""
        return {"gains": self.gains.tolist(), "keeps": self.keeps.tolist(), "clip": self.clip}

    @classmethod
    def from_dict(cls, numbers: dict[str, Any]) -> "FrankWolfeSteps":
        return cls(np.array(numbers["gains"], float), np.array(numbers["keeps"], float), float(numbers["clip"]))


@dataclass(frozen=True, eq=False)
class FrankWolfeProblem:
    """The steps of Frank-Wolfe for each user, from that user's ratings and public directions.

    Parameters
    ----------
    features
        The directions, one column per step; then, where there are user biases, a column of ones.
    offsets
        What is subtracted from a rating of item j before the first step.
    considered
        Items that take part.
    steps
        What is published of each step besides its direction.
    bias_ridge
        How many ratings' worth of evidence a user's bias starts with: it is the mean of the ratings less the offsets,
        shrunk. None for no biases.
    """

    features: Floats
    offsets: Floats
    considered: NDArray[np.bool_]
    steps: FrankWolfeSteps
    bias_ridge: float | None

    def solve(self, ratings: Ratings, threads: int | None = None) -> Floats:
        """One vector per user: coefficients of the directions, then the bias. Zero for users without ratings."""
        solved, _ = self.solve_with_residuals(ratings, threads)
        return solved.astype(np.float32)

    def solve_with_residuals(self, ratings: Ratings, threads: int | None = None) -> tuple[Doubles, Doubles]:
        """Vectors, and the residuals after the last step, scaled down to the clip, rating by rating."""
        n_steps = len(self.steps.gains)
        solved = np.zeros((ratings.n_users, self.features.shape[1]))
        offsets, biases = self.offsets.astype(np.float64), np.zeros(len(solved))
        if self.bias_ridge is not None:
            biases = solved[:, -1] = user_offsets(ratings, offsets, self.bias_ridge)
        residuals = np.asarray(ratings.values, np.float64) - offsets[ratings.indices]
        # One row per step, so that a user's items are read in turn.
        directions = np.ascontiguousarray(self.features[:, :n_steps].T, np.float64)
        steps = directions, self.considered, self.steps.gains, self.steps.keeps, self.steps.clip

        def work(start: int, stop: int) -> None:
            _take_steps(ratings.indptr, ratings.indices, residuals, biases, *steps, start, stop, solved)

        in_threads(work, ratings.indptr, threads)
        return solved, residuals


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _take_steps(indptr, indices, residuals, biases, directions, considered, gains, keeps, clip, start, stop, solved):  # type: ignore[no-untyped-def]
    """Turn residuals of the offsets into those of the whole model, clipped, row by row."""
    for i in range(start, stop):
        items = indices[indptr[i] : indptr[i + 1]]
        left = residuals[indptr[i] : indptr[i + 1]]
        for e in range(len(items)):
            left[e] = left[e] - biases[i] if considered[items[e]] else 0.0
        fitted = np.zeros(len(items))
        for t in range(len(gains)):
            direction = directions[t]
            square, product = 0.0, 0.0
            for e in range(len(items)):
                rest = left[e] - fitted[e]
                square += rest * rest
                product += rest * direction[items[e]]
            step = gains[t] * product * (clip / np.sqrt(square) if square > clip * clip else 1.0)
            for k in range(t):
                solved[i, k] *= keeps[t]
            solved[i, t] = step
            for e in range(len(items)):
                fitted[e] = keeps[t] * fitted[e] + step * direction[items[e]]
        square = 0.0
        for e in range(len(items)):
            left[e] -= fitted[e]
            square += left[e] * left[e]
        if square > clip * clip:
            for e in range(len(items)):
                left[e] *= clip / np.sqrt(square)
