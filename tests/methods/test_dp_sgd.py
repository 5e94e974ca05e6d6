"""DPSGD against gradient steps written out user by user."""

import numpy as np
from tests.methods.shared.gradients import CLIP, N_ITEMS, RANK, few_ratings, gradient

import dpals
from dpals.public.initial_factors import random_factors


def test_two_steps_of_sgd_with_momentum_and_averaging():
    ratings = few_ratings()
    method = dpals.DPSGD(
        1e4, rank=RANK, steps=2, learning_rate=2.0, gradient_clip=CLIP, momentum=0.5, average=1.0, ridge=0.1,
        user_ridge=0.7, user_bias_ridge=2.0, start_scale=0.5, seed=4, insecure_seed=1,
    ).fit(ratings)  # fmt: skip
    items = np.column_stack([0.5 * random_factors(N_ITEMS, RANK, 4), np.zeros(N_ITEMS)])
    move, seen = np.zeros_like(items), []
    for _ in range(2):
        down, clipped = gradient(ratings, items, method.model_.global_mean, 0.7, 2.0)
        assert 0 < clipped < ratings.n_users
        move = 0.5 * move + 2.0 * (down / ratings.n_users - 0.1 * items)
        items = items + move
        seen.append(items)
    mean = np.mean(seen, axis=0)
    np.testing.assert_allclose(method.item_factors_, mean[:, :RANK], atol=5e-3)
    np.testing.assert_allclose(method.model_.item_biases, mean[:, RANK], atol=5e-3)
