"""What users offer to gradient descent on the item factors."""

import numpy as np

from dpals.kernels.rows import row_norms
from dpals.private.centering import pattern_of
from dpals.private.clipping import clip_users
from dpals.private.user_step import UserProblem
from dpals.ratings import Ratings
from dpals.release.contribution import Offer


def offer_of_gradients(ratings: Ratings, problem: UserProblem, rank: int, bound: float) -> Offer:
    """Residual times (vector, 1) for each of a user's items: the user's gradient of half the squared error.

    Vectors are the exact solutions of the users' own problems. The whole gradient of a user, over all items, is
    scaled down where its norm is above the bound.
    """
    solved = problem.solve(ratings)
    residuals = problem.residuals(ratings, solved).astype(np.float64)
    vectors = np.column_stack([solved[:, :rank], np.ones(ratings.n_users)]).astype(np.float64)
    clip_users(ratings.indptr, residuals, bound * (1 - 1e-9) / row_norms(vectors))  # just below, for the door's grid
    return Offer(pattern_of(ratings), residuals, vectors)
