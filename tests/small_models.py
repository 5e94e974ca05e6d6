"""Small models and histories, made of random numbers."""

import numpy as np
from scipy.sparse import coo_array

import dpals
from dpals.model.factor_model import FactorModel
from dpals.release.contribution import Contribution, Pattern, Query
from dpals.release.mechanism import Mechanism
from dpals.statement.record import Statement

N_USERS, N_ITEMS, RANK = 25, 14, 3
RANGE = (0.5, 5.0)


def table_of_ratings(seed, share=0.4):
    """Ratings in half stars, nan where there are none; user 0 has none at all."""
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((N_USERS, N_ITEMS)) < share, rng.integers(1, 11, (N_USERS, N_ITEMS)) / 2, np.nan)
    table[0] = np.nan
    return table


def history_of(table, items=None, implicit=False):
    """The users are all there, those without ratings as well."""
    users, columns = np.nonzero(~np.isnan(table))
    matrix = coo_array((table[users, columns], (users, columns)), shape=table.shape)
    ids = np.arange(100, 100 + table.shape[1]) if items is None else items
    user_ids = [f"user {at}" for at in range(len(table))]
    if implicit:
        return dpals.Ratings.from_csr(matrix, users=user_ids, items=ids, implicit=True)
    return dpals.Ratings.from_csr(matrix, users=user_ids, items=ids, rating_range=RANGE)


def model_of(seed, **changes):
    rng = np.random.default_rng(seed)
    settings = {
        "items": np.arange(100, 100 + N_ITEMS),
        "item_factors": rng.normal(0, 0.6, (N_ITEMS, RANK)).astype(np.float32),
        "item_biases": rng.normal(0, 0.3, N_ITEMS).astype(np.float32),
        "global_mean": 3.4,
        "user_ridge": 0.7,
        "rating_range": RANGE,
    }
    return FactorModel(**{**settings, **changes})


def statement():
    mechanism = Mechanism(dpals.Budget(1.0, 1e-5))
    contribution = Contribution(Pattern.one_item(4), np.ones(4))
    mechanism.release(Query("a count", 1, 1.0), contribution, mechanism.budget.split(1)[0])
    return Statement.of(mechanism, ("Ünïcode assumption",))
