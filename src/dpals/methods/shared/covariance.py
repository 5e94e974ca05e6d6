"""A noisy matrix of items by items, for small catalogues."""

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import Population
from dpals.private.covariance import RowsOf, covariance_contribution
from dpals.public.item_step import unpacked
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]

LARGEST_COVARIANCE = 2_000


def release_covariance(
    mechanism: Mechanism, purpose: str, ratings: Population, rows: RowsOf, n_items: int, cost: int
) -> Doubles:
    """sum_i a_i a_i^T + symmetric noise, where a_i are the rows of the users on `n_items` items.

    This is Analyze Gauss (Dwork et al. 2014): rows are scaled down to their largest norm, so no user adds a matrix of
    norm above its square.
    """
    query = Query(purpose, 1, rows.longest**2, "symmetric", n_items)
    released = mechanism.release_together(ratings, covariance_contribution, rows, [(query, cost)])[0]
    matrix_of_items: Doubles = unpacked(released, n_items)[0]
    return matrix_of_items
