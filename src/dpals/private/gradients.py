"""What users contribute to gradient descent on the item factors."""

from typing import NamedTuple

import numpy as np

from dpals.data.ratings import Ratings
from dpals.kernels.rows import row_norms
from dpals.private.clipping import clip_users
from dpals.private.means import pattern_of
from dpals.private.user_vectors import LeastSquaresProblem
from dpals.release.contribution import Contribution


class GradientStep(NamedTuple):
    """What users must know in one step: their own problem, and the largest norm of a user's whole gradient."""

    problem: LeastSquaresProblem
    bound: float


def gradient_contribution(ratings: Ratings, public: GradientStep) -> Contribution:
    """Residual times (vector, 1) for each of a user's items: the user's gradient of half the squared error.

    Vectors are the exact solutions of the users' own problems. A user's whole gradient, over all items, is scaled down
    if its norm exceeds the bound.
    """
    problem = public.problem
    solved = problem.solve(ratings)
    residuals = problem.residuals(ratings, solved).astype(np.float64)
    vectors = np.column_stack([solved[:, : problem.rank], np.ones(ratings.n_users)]).astype(np.float64)
    largest = public.bound * (1 - 1e-9)  # so that rounding on the mechanism's grid does not scale a user down once more
    clip_users(ratings.indptr, residuals, largest / row_norms(vectors))
    return Contribution(pattern_of(ratings), residuals, vectors)
