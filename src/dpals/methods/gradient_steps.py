"""What DPSGD and SGLD share: noisy gradients of the item factors and biases, and the model in training."""

import numpy as np
from numpy.typing import NDArray

from dpals.model import FactorModel
from dpals.private.gradients import offer_of_gradients
from dpals.private.user_step import UserProblem
from dpals.public.starting_points import random_factors
from dpals.ratings import Ratings
from dpals.release.contribution import Query
from dpals.release.mechanism import Door

Doubles = NDArray[np.float64]


def first_items(n_items: int, rank: int, scale: float, seed: int) -> Doubles:
    """One row per item: random factors, then a bias of 0."""
    return np.column_stack([scale * random_factors(n_items, rank, seed), np.zeros(n_items)])


def release_gradients(door: Door, ratings: Ratings, model: FactorModel, clip: float, cost: int, step: int) -> Doubles:
    """Sums over the users of residual times (vector, 1), for each item: the way down for its factors and bias."""
    problem = model.user_problem()
    assert isinstance(problem, UserProblem)
    query = Query(f"gradients, step {step}", ratings.n_items, clip, "vector", model.rank + 1)
    return door.release(query, offer_of_gradients(ratings, problem, model.rank, clip), cost)


def model_of(ratings: Ratings, items: Doubles, mean: float, user_ridge: float, user_bias_ridge: float) -> FactorModel:
    """The model whose factors and biases are the rows of `items`."""
    return FactorModel(
        items=ratings.items,
        item_factors=items[:, :-1].astype(np.float32),
        item_biases=items[:, -1].astype(np.float32),
        global_mean=mean,
        user_ridge=user_ridge,
        user_bias_ridge=user_bias_ridge,
        rating_range=ratings.rating_range,
    )
