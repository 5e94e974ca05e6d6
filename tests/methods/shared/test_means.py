"""Released means and biases against sums written out, at a budget without end, and where noise is all there is."""

import numpy as np
import pytest

import dpals
from dpals.methods.shared.means import (
    half_range,
    release_item_biases,
    release_mean,
    release_mean_and_number,
    release_popularity,
)
from dpals.release.accounting import Budget
from dpals.release.mechanism import Mechanism


@pytest.fixture(scope="module")
def ratings():
    return dpals.simulate.movielens_like(3_000, 50, 20, seed=3)


def mechanism_of(epsilon):
    return Mechanism(Budget(epsilon, 1e-5), insecure_seed=1)


def test_half_the_range_is_that_of_the_range_and_not_of_the_values():
    ratings = dpals.Ratings.from_arrays([1], [1], [3.0], rating_range=(0.5, 5))
    assert half_range(ratings) == 2.25


def test_the_mean_is_that_of_the_users_means_and_comes_with_their_number(ratings):
    means = [ratings.values[ratings.indptr[i] : ratings.indptr[i + 1]].mean() for i in range(ratings.n_users)]
    mechanism = mechanism_of(1e4)
    mean, number = release_mean_and_number(mechanism, ratings, mechanism.budget.cost)
    assert mean == pytest.approx(np.mean(means), abs=1e-3)
    assert number == pytest.approx(ratings.n_users, rel=1e-3)
    assert len(mechanism.releases) == 1


def test_where_noise_is_all_there_is_the_mean_stays_in_the_range_and_the_number_is_not_tiny():
    ratings = dpals.Ratings.from_arrays([1], [1], [5.0], rating_range=(1, 5))
    for seed in range(20):
        mechanism = Mechanism(Budget(1e-2, 1e-5), insecure_seed=seed)
        mean, number = release_mean_and_number(mechanism, ratings, mechanism.budget.cost)
        assert 1 <= mean <= 5
        assert number >= mechanism.releases[-1].sigma / 2
        again = Mechanism(Budget(1e-2, 1e-5), insecure_seed=seed)
        assert release_mean(again, ratings, again.budget.cost) == mean


def test_popularity_is_the_sum_of_the_users_weights(ratings):
    weights = 1 / np.sqrt(np.diff(ratings.indptr))[ratings.rows]
    mechanism = mechanism_of(1e4)
    released = release_popularity(mechanism, ratings, mechanism.budget.cost)
    np.testing.assert_allclose(released, np.bincount(ratings.indices, weights, ratings.n_items), atol=0.5)


def test_item_biases_are_weighted_means_of_residuals_and_no_user_counts_more_than_allowed(ratings):
    weights = 1 / np.sqrt(np.diff(ratings.indptr))[ratings.rows]
    residuals = ratings.values - 3.0
    squares = np.bincount(ratings.rows, residuals**2) / np.diff(ratings.indptr)
    for bound in (10.0, 0.7):
        mechanism = mechanism_of(1e4)
        costs = mechanism.budget.split(1, 1)
        biases, released = release_item_biases(mechanism, ratings, 3.0, costs, bound, 2.0)
        scaled = residuals * np.minimum(1.0, bound / np.sqrt(squares))[ratings.rows]
        sums = np.bincount(ratings.indices, weights * scaled, ratings.n_items)
        np.testing.assert_allclose(biases, sums / np.bincount(ratings.indices, weights, ratings.n_items), atol=0.02)
        assert released.shape == biases.shape
