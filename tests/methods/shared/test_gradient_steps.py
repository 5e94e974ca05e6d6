"""DPSGD and SGLD against gradient steps written out user by user."""

import numpy as np
import pytest

import dpals
from dpals.evaluation.metrics import rmse
from dpals.evaluation.splits import pairs, split_entries
from dpals.public.initial_factors import random_factors

N_ITEMS, RANK, CLIP = 12, 2, 3.5


@pytest.fixture
def ratings():
    rng = np.random.default_rng(3)
    users, items = np.nonzero(rng.random((60, N_ITEMS)) < 0.5)
    return dpals.Ratings.from_arrays(
        users, items, rng.choice([1.0, 2.0, 4.0, 5.0], len(users)), rating_range=(1, 5), catalogue=range(N_ITEMS)
    )


def gradient(ratings, items, mean, user_ridge, bias_ridge):
    """Sum over the users of their clipped gradients, and how many of them were clipped."""
    total, clipped = np.zeros((N_ITEMS, RANK + 1)), 0
    for i in range(ratings.n_users):
        rated = slice(ratings.indptr[i], ratings.indptr[i + 1])
        own = ratings.indices[rated]
        features = np.column_stack([items[own, :RANK], np.ones(len(own))])
        target = ratings.values[rated] - mean - items[own, RANK]
        system = features.T @ features + np.diag([user_ridge] * RANK + [bias_ridge])
        solved = np.linalg.solve(system, features.T @ target)
        mine = np.outer(target - features @ solved, np.append(solved[:RANK], 1.0))
        clipped += np.linalg.norm(mine) > CLIP
        total[own] += mine * min(1.0, CLIP / np.linalg.norm(mine))
    return total, clipped


def test_two_steps_of_sgd_with_momentum_and_averaging(ratings):
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


def test_sgld_moves_as_far_as_its_noise_allows(ratings):
    """What the mechanism adds to a step has the variance that Langevin dynamics asks for."""
    settings = {"rank": RANK, "steps": 1, "gradient_clip": CLIP, "noise_scale": 0.5, "taste_scale": 0.4, "seed": 4}
    start = np.column_stack([0.1 * random_factors(N_ITEMS, RANK, 4), np.zeros(N_ITEMS)])
    moved, lengths = [], []
    for seed in range(400):
        method = dpals.SGLD(3.0, **settings, temperature=0.1, mean_share=0.4, insecure_seed=seed).fit(ratings)
        variance = (0.5 * 2) ** 2
        down, _ = gradient(ratings, start, method.model_.global_mean, variance, 5.0)
        length = 4 * 0.1 * (variance / method.privacy.releases[-1].sigma) ** 2
        expected = start + length / 2 * (down / variance - start / 0.4**2)
        lengths.append(length)
        moved.append(np.column_stack([method.item_factors_, method.model_.item_biases]) - expected)
    assert np.abs(np.mean(moved)) < 4 * np.std(moved) / np.sqrt(np.size(moved))
    assert np.var(moved) == pytest.approx(0.1 * np.mean(lengths), rel=0.05)


def test_both_learn_from_ratings_and_better_with_more_budget():
    train, _, test = split_entries(dpals.simulate.movielens_like(5_000, 300, 40, seed=3))
    user_mean = rmse(dpals.UserMean().fit(train).predict(train, *pairs(test)), test.values)
    for name in ("DPSGD", "SGLD"):
        scores = [
            rmse(getattr(dpals, name)(e, insecure_seed=1).fit(train).predict(train, *pairs(test)), test.values)
            for e in (1.0, 20.0)
        ]
        assert scores[1] < scores[0] - 0.01, name
        assert scores[1] < user_mean - 0.05, name
