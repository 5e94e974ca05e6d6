"""The user half of a step: each user's vector from the user's own ratings and public item factors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpals.kernels.half_step import solve_rows
from dpals.ratings import Ratings

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class UserProblem:
    """The least-squares problem that gives a user's vector, except for the user's ratings.

    For user i with n_i ratings: minimise sum_j (M_ij - offset_j - x . f_j)^2 + x . base x + ridge * n_i^exponent |x|^2.
    Everything here is public: nothing is computed from more than one user without the door.

    Parameters
    ----------
    features
        f_j, one row per item.
    offsets
        What is subtracted from a rating of item j before the fit.
    ridge, exponent
        lambda / Z and nu of the paper.
    base
        Symmetric matrix added for every user: lambda_0 times the sum of f_j f_j^T, ridges of biases.
    ridged
        Number of leading coordinates that `ridge` applies to.
    """

    features: Floats
    offsets: Floats
    ridge: float
    exponent: float
    base: Floats
    ridged: int

    def targets(self, ratings: Ratings) -> Floats:
        """What is fitted, rating by rating: the rating, or 1 for implicit feedback, less the item's offset."""
        values = np.ones(ratings.n_ratings, np.float32) if ratings.values is None else ratings.values
        targets: Floats = values - self.offsets[ratings.indices]
        return targets

    def solve(self, ratings: Ratings, threads: int | None = None, inverses: Floats | None = None) -> Floats:
        """One vector per user; zero for users without ratings. `inverses` is as in `solve_rows`."""
        counts = np.diff(ratings.indptr)
        ridges = (self.ridge * np.maximum(counts, 1) ** self.exponent).astype(np.float32)
        return solve_rows(
            ratings.indptr,
            ratings.indices,
            self.targets(ratings),
            self.features,
            ridges,
            self.base,
            ridged=self.ridged,
            inverses=inverses,
            threads=threads,
        )
