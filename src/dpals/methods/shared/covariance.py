"""A noisy matrix of items by items, for small catalogues."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dpals.data.ratings import Ratings
from dpals.private.clipping import clip_users
from dpals.public.item_step import unpacked
from dpals.release.contribution import Contribution, Pattern, Query
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]

LARGEST_COVARIANCE = 2_000
_BLOCK_USERS = 4_096


def release_covariance(
    mechanism: Mechanism, purpose: str, ratings: Ratings, values: Doubles, longest: float, cost: int
) -> Doubles:
    """sum_i a_i a_i^T + symmetric noise, where a_i holds the values in place of user i's ratings.

    This is Analyze Gauss (Dwork et al. 2014): rows are scaled down to a norm of at most `longest`, so no user adds a
    matrix of norm above longest^2.
    """
    n_items, scaled = ratings.n_items, values.copy()
    clip_users(ratings.indptr, scaled, longest)
    matrix = csr_matrix((scaled, ratings.indices, ratings.indptr), shape=(ratings.n_users, n_items))

    def blocks() -> Iterator[Contribution]:
        for start in range(0, ratings.n_users, _BLOCK_USERS):
            rows = matrix[start : start + _BLOCK_USERS].toarray()
            yield Contribution(Pattern.one_item(len(rows), start), np.ones(len(rows)), rows)

    query = Query(purpose, 1, longest**2, "symmetric", n_items)
    matrix_of_items: Doubles = unpacked(mechanism.release(query, blocks(), cost), n_items)[0]
    return matrix_of_items
