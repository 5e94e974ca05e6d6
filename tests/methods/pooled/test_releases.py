"""The releases of PooledDPALS, with next to no noise, against sums over dense matrices."""

import numpy as np
import pytest

import dpals
from dpals.methods.pooled.budget import StepCosts
from dpals.methods.pooled.releases import (
    StepScale,
    release_cooccurrence,
    release_item_statistics,
    release_step,
    release_weights,
)
from dpals.private.user_vectors import LeastSquaresProblem
from dpals.release.mechanism import Mechanism

N_USERS, N_ITEMS, RANK, EXPONENT = 400, 30, 2, 0.4


@pytest.fixture(scope="module")
def ratings():
    """Users of even and of odd numbers mostly rate items of their own kind, the first of them more often."""
    rng = np.random.default_rng(0)
    same = np.arange(N_USERS)[:, None] % 2 == np.arange(N_ITEMS) % 2
    chances = np.where(same, 0.6, 0.15) * np.linspace(1, 0.4, N_ITEMS)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < chances)
    values = rng.choice([1.0, 2.0, 4.0, 5.0], len(users))
    return dpals.Ratings.from_arrays(users, items, values, rating_range=(1, 5), catalogue=range(N_ITEMS))


@pytest.fixture
def mechanism():
    return Mechanism(dpals.Budget(1e6, 1e-5), insecure_seed=1)


def cost(mechanism):
    return mechanism.budget.cost // 100


@pytest.fixture
def training(ratings, mechanism):
    return release_item_statistics(ratings, EXPONENT, mechanism, [cost(mechanism)] * 3)


def dense_weights(ratings):
    """w_ij of every user and item, and the popularity that they come from."""
    seen = ratings.to_csr().toarray() > 0
    popularity = (seen / np.sqrt(np.maximum(seen.sum(axis=1), 1))[:, None]).sum(axis=0)
    weights = seen * popularity**-EXPONENT
    return weights / np.maximum(np.linalg.norm(weights, axis=1), 1e-300)[:, None], popularity


def test_item_statistics_are_sums_over_the_users(ratings, training):
    weights, popularity = dense_weights(ratings)
    items = training.items
    np.testing.assert_allclose(items.popularity, popularity, rtol=1e-3)
    np.testing.assert_allclose(items.rating_weights, popularity**-EXPONENT, rtol=1e-3)
    np.testing.assert_allclose(items.weights, weights.sum(axis=0), rtol=1e-3)
    assert items.total_user_weight == pytest.approx(np.minimum(weights.sum(axis=1) / 20, 1).sum(), rel=1e-3)
    assert items.can_learn
    assert np.array_equal(items.usable_weights, items.weights)


def test_several_releases_of_the_weights_average_out(training, mechanism):
    once = training.items.weight_noise
    assert once == mechanism.releases[-1].sigma
    again = release_weights(training, 3 * cost(mechanism)).items
    assert again.weight_noise == pytest.approx(once / 2, rel=1e-3), "four times the cost, half the noise"
    assert mechanism.releases[-1].purpose == "item weights"


def test_weights_that_may_be_noise_are_not_used(ratings):
    noisy = Mechanism(dpals.Budget(1e-3, 1e-5), insecure_seed=1)
    items = release_item_statistics(ratings, EXPONENT, noisy, [noisy.budget.cost // 3] * 3).items
    assert not items.can_learn
    assert not items.usable_weights.any()
    assert items.total_user_weight > 0
    assert items.popularity.min() > 0


def test_cooccurrence_finds_which_items_are_rated_by_the_same_people(training, mechanism):
    rounds = (StepCosts(cost(mechanism), cost(mechanism)),) * 4
    features, scales = release_cooccurrence(training, RANK, seed=3, costs=rounds)
    assert features.shape == (N_ITEMS, 3)
    assert np.array_equal(scales, np.sort(scales)[::-1])
    kinds = np.where(np.arange(N_ITEMS) % 2, 1.0, -1.0)
    assert abs(np.corrcoef(features[:, 0], kinds)[0, 1]) > 0.95
    assert scales[0] > 1.5 * scales[1]


def test_a_step_releases_residual_times_vector_and_what_the_vectors_have_in_common(ratings, training, mechanism):
    rng = np.random.default_rng(5)
    factors, biases = rng.normal(size=(N_ITEMS, RANK)), rng.normal(size=N_ITEMS) / 3
    problem = LeastSquaresProblem.of(factors, biases, 3.0, 0.5, bias_ridge=2.0)
    scale = StepScale(constant=1.6, residual=10.0)  # so large that nobody is clipped
    sums = release_step(training, problem, scale, StepCosts(*[cost(mechanism)] * 3), "test")

    weights, _ = dense_weights(ratings)
    moments, gram, covariance = np.zeros((N_ITEMS, RANK + 1)), np.zeros((RANK, RANK)), np.zeros((RANK, RANK))
    table, ridges = ratings.to_csr().toarray(), np.diag([0.5] * RANK + [2.0])
    user_weights = np.minimum(weights.sum(axis=1) / 20, 1)
    for own, row, user_weight in zip(weights, table, user_weights, strict=True):
        items = np.flatnonzero(row)
        features = np.column_stack([factors[items], np.ones(len(items))])
        inverse = np.linalg.inv(features.T @ features + ridges)
        targets = row[items] - 3.0 - biases[items]
        solved = inverse @ features.T @ targets
        moments[items] += np.outer(own[items] * (targets - features @ solved), [*solved[:RANK], 1.6])
        # The sums that all items share are bounded on their own.
        bounds = scale.bounds(RANK)
        length = solved[:RANK] @ solved[:RANK] + 1.6**2
        gram += min(user_weight, bounds.gram / length) * np.outer(solved[:RANK], solved[:RANK])
        own_covariance = 0.5 * inverse[:RANK, :RANK]
        size = np.linalg.norm(own_covariance[np.triu_indices(RANK)])
        covariance += min(user_weight, bounds.covariance / size) * own_covariance
    total = user_weights.sum()
    np.testing.assert_allclose(sums.moments, moments, atol=0.02 * np.abs(moments).max())
    np.testing.assert_allclose(sums.pooled.vectors, gram / total, rtol=0.02, atol=0.01)
    np.testing.assert_allclose(sums.pooled.covariance, covariance / total, rtol=0.02, atol=0.01)
    assert sums.noise == mechanism.releases[-1].sigma


def test_the_residual_bound_holds_for_every_user(training, mechanism):
    """With a bound so small that everyone is clipped, the sums are at most the number of users times the bound."""
    problem = LeastSquaresProblem.of(np.ones((N_ITEMS, RANK)), np.zeros(N_ITEMS), 3.0, 0.5, bias_ridge=2.0)
    scale = StepScale(constant=1.6, residual=1e-3)
    sums = release_step(training, problem, scale, StepCosts(*[cost(mechanism)] * 3), "test")
    assert np.linalg.norm(sums.moments) <= N_USERS * scale.bounds(RANK).moments * 1.001
    assert sums.pooled.scale < 0.1, "the constant shows how far users were scaled down"
