"""Predictions that do not depend on how ratings are written down: scale, names, order, a range that is too wide."""

import numpy as np
import pytest

import dpals
from dpals.evaluation.splits import pairs, split_entries

N_USERS, N_ITEMS = 3000, 120


@pytest.fixture(scope="module")
def columns():
    """Users, items and ratings from 1 to 5, with biases and a taste."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < rng.uniform(0.1, 0.5, N_ITEMS))
    tastes = rng.normal(0, 0.7, (2, N_USERS)), rng.normal(0, 0.7, (2, N_ITEMS))
    values = 3.3 + rng.normal(0, 0.4, N_USERS)[users] + rng.normal(0, 0.5, N_ITEMS)[items]
    values += np.einsum("ke,ke->e", tastes[0][:, users], tastes[1][:, items]) + rng.normal(0, 0.6, len(users))
    return users, items, np.clip(np.round(values), 1, 5)


def ratings_of(columns, scale=1.0, shift=0.0, rating_range=(1.0, 5.0)):
    users, items, values = columns
    scaled = tuple(scale * end + shift for end in rating_range)
    return dpals.Ratings.from_arrays(
        users, items, scale * values + shift, rating_range=scaled, catalogue=range(N_ITEMS)
    )


def predictions(ratings, method=dpals.PooledDPALS, epsilon=3.0, seed=1, **arguments):
    train, _, test = split_entries(ratings, seed=4)
    return method(epsilon, insecure_seed=seed, **arguments).fit(train).predict(train, *pairs(test)), test.values


@pytest.mark.parametrize("method", [dpals.PooledDPALS, dpals.PrivateBiases, dpals.DPSVD])
@pytest.mark.parametrize("scale", [4.0, 0.125])
def test_powers_of_two_change_nothing_to_the_last_bit(columns, scale, method):
    plain, _ = predictions(ratings_of(columns), method)
    scaled, _ = predictions(ratings_of(columns, scale), method)
    assert np.array_equal(scaled, scale * plain)


@pytest.mark.parametrize("method", [dpals.DPSGD, dpals.SGLD])
def test_gradients_scale_with_the_ratings_up_to_the_grid_of_integers(columns, method):
    plain, _ = predictions(ratings_of(columns), method)
    scaled, _ = predictions(ratings_of(columns, 8.0), method)
    np.testing.assert_allclose(scaled, 8 * plain, rtol=1e-3)


def rmse(predicted, truth):
    return float(np.sqrt(np.mean((predicted - truth) ** 2)))


def errors(ratings, scale=1.0):
    return [rmse(*predictions(ratings, seed=seed)) / scale for seed in range(4)]


def test_another_scale_with_another_zero_gives_the_same_up_to_noise(columns):
    plain, other = errors(ratings_of(columns)), errors(ratings_of(columns, 7.0, 3.0), scale=7.0)
    assert np.mean(other) == pytest.approx(np.mean(plain), rel=0.005)


def test_a_range_ten_times_too_wide_costs_little(columns):
    plain, wide = errors(ratings_of(columns)), errors(ratings_of(columns, rating_range=(-17.0, 23.0)))
    assert np.mean(wide) < 1.01 * np.mean(plain)


def test_order_and_names_of_users_change_nothing_and_those_of_items_only_the_noise(columns):
    rng = np.random.default_rng(1)
    ratings, order = ratings_of(columns), rng.permutation(len(columns[0]))
    renamed = rng.permutation(N_USERS)[columns[0]]
    first, second = (
        dpals.PooledDPALS(3.0, insecure_seed=1).fit(ratings_of(given))
        for given in (columns, (renamed[order], columns[1][order], columns[2][order]))
    )
    assert np.array_equal(first.item_factors_, second.item_factors_)
    assert np.array_equal(first.model_.item_biases, second.model_.item_biases)
    moved = ratings_of((columns[0], rng.permutation(N_ITEMS)[columns[1]], columns[2]))
    assert np.mean(errors(moved)) == pytest.approx(np.mean(errors(ratings)), rel=0.01)
