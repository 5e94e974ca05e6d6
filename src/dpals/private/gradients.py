"""What users contribute to gradient descent on the item factors."""

import numpy as np

from dpals.data.ratings import Ratings
from dpals.kernels.rows import row_norms
from dpals.private.clipping import clip_users
from dpals.private.means import pattern_of
from dpals.private.user_vectors import LeastSquaresProblem
from dpals.release.contribution import Contribution


def gradient_contribution(ratings: Ratings, problem: LeastSquaresProblem, rank: int, bound: float) -> Contribution:
    """Residual times (vector, 1) for each of a user's items: the user's gradient of half the squared error.

    Vectors are the exact solutions of the users' own problems. The whole gradient of a user, over all items, is
    scaled down where its norm is above the bound.
    """
    solved = problem.solve(ratings)
    residuals = problem.residuals(ratings, solved).astype(np.float64)
    vectors = np.column_stack([solved[:, :rank], np.ones(ratings.n_users)]).astype(np.float64)
    clip_users(
        ratings.indptr, residuals, bound * (1 - 1e-9) / row_norms(vectors)
    )  # just below, for the mechanism's grid
    return Contribution(pattern_of(ratings), residuals, vectors)
