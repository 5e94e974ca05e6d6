"""What users contribute to gradient descent, against derivatives and definitions written out user by user."""

import numpy as np
import pytest

import dpals
from dpals.private.gradients import GradientStep, gradient_contribution
from dpals.private.user_vectors import LeastSquaresProblem

N_ITEMS, RANK, RIDGE, BIAS_RIDGE, MEAN = 12, 3, 0.6, 2.0, 3.0


@pytest.fixture
def ratings():
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((25, N_ITEMS)) < 0.6)
    values = rng.choice([1.0, 2.0, 4.5, 5.0], len(users))
    return dpals.Ratings.from_arrays(users, items, values, rating_range=(1, 5), catalogue=range(N_ITEMS))


@pytest.fixture
def sides():
    rng = np.random.default_rng(1)
    return rng.normal(size=(N_ITEMS, RANK)), rng.normal(size=N_ITEMS) / 3


def contribution(ratings, sides, bound):
    problem = LeastSquaresProblem.of(*sides, MEAN, RIDGE, bias_ridge=BIAS_RIDGE)
    return gradient_contribution(ratings, GradientStep(problem, bound))


def loss(ratings, user, factors, biases):
    """Half the squared error of one user, and the ridges, at the user's best vector."""
    own = slice(ratings.indptr[user], ratings.indptr[user + 1])
    items = ratings.indices[own]
    features = np.column_stack([factors[items], np.ones(len(items))])
    targets, ridges = ratings.values[own] - MEAN - biases[items], np.diag([RIDGE] * RANK + [BIAS_RIDGE])
    solved = np.linalg.solve(features.T @ features + ridges, features.T @ targets)
    return (np.sum((targets - features @ solved) ** 2) + solved @ ridges @ solved) / 2


def test_without_a_clip_it_is_the_derivative_of_the_users_loss(ratings, sides):
    """The user's vector is at its optimum, so moving an item changes the loss by the residual times (vector, 1)."""
    found, step, (factors, biases) = contribution(ratings, sides, 1e9), 1e-5, sides
    for user in (0, 7):
        for entry in range(ratings.indptr[user], ratings.indptr[user] + 3):
            item, gradient = ratings.indices[entry], found.coefficients[entry] * found.vectors[user]
            for coordinate in range(RANK + 1):
                change_factors, change_biases = np.zeros_like(factors), np.zeros_like(biases)
                change = change_biases[item : item + 1] if coordinate == RANK else change_factors[item]
                change[0 if coordinate == RANK else coordinate] = step
                up = loss(ratings, user, factors + change_factors, biases + change_biases)
                down = loss(ratings, user, factors - change_factors, biases - change_biases)
                assert -(up - down) / (2 * step) == pytest.approx(gradient[coordinate], abs=1e-4)


def test_a_users_whole_gradient_is_scaled_down_to_the_bound(ratings, sides):
    free, clipped = contribution(ratings, sides, 1e9), contribution(ratings, sides, 2.0)
    reached = 0
    for user in range(ratings.n_users):
        own = slice(ratings.indptr[user], ratings.indptr[user + 1])
        norm = np.linalg.norm(np.outer(free.coefficients[own], free.vectors[user]))
        bounded = np.linalg.norm(np.outer(clipped.coefficients[own], clipped.vectors[user]))
        assert bounded <= 2.0
        assert bounded == pytest.approx(min(norm, 2.0), rel=1e-8)
        reached += norm > 2.0
    assert 0 < reached < ratings.n_users


def test_a_user_contributes_the_same_bits_whoever_else_is_there(ratings, sides):
    together, alone = contribution(ratings, sides, 2.0), contribution(ratings.take_users(slice(4, 5)), sides, 2.0)
    assert np.array_equal(together.coefficients[ratings.indptr[4] : ratings.indptr[5]], alone.coefficients)
    assert np.array_equal(together.vectors[4], alone.vectors[0])
