"""ALS in stages."""

import numpy as np
import pytest

import dpals
from dpals.evaluation.metrics import rmse
from dpals.evaluation.splits import pairs, split_entries


def spread_out(n_users=2_000, n_items=300, seed=0):
    """Few entries of a matrix of rank 3, whose singular values are 1, 1/5 and 1/25, and others to test with."""
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.normal(size=(n, 3))).Q for n in (n_users, n_items))
    matrix = np.sqrt(n_users * n_items) * (left * [1, 0.2, 0.04]) @ right.T
    parts = []
    for share in (0.05, 0.02):
        users, items = np.nonzero(rng.random(matrix.shape) < share)
        parts.append(
            dpals.Ratings.from_arrays(
                users, items, matrix[users, items], rating_range=(-30, 30), catalogue=range(n_items)
            )
        )
    return parts


def test_weak_directions_are_found_with_fewer_solves_than_from_a_random_start():
    train, test = spread_out()

    def error(method):
        return rmse(method.fit(train).predict(train, *pairs(test)), test.values)

    settings = {"rank": 3, "ridge": 1e-4, "user_exponent": 0.0, "item_exponent": 0.0, "biases": False}
    staged = error(dpals.StagewiseALS(steps=2, stage_size=1, **settings))
    plain = error(dpals.ALS(steps=6, **settings))
    assert staged < 0.3 * plain
    assert staged < 0.02


def test_each_stage_adds_directions_up_to_the_rank():
    train, _, _ = split_entries(dpals.simulate.movielens_like(2_000, 100, 25, seed=1))
    assert dpals.StagewiseALS(rank=5, steps=1, stage_size=2).fit(train).item_factors_.shape == (100, 5)


def test_on_ratings_it_ends_where_als_ends():
    train, _, test = split_entries(dpals.simulate.movielens_like(5_000, 300, 40, seed=3))
    scores = [
        rmse(method.fit(train).predict(train, *pairs(test)), test.values)
        for method in (dpals.ALS(rank=8, steps=15), dpals.StagewiseALS(rank=8, steps=8))
    ]
    assert scores[1] == pytest.approx(scores[0], abs=0.005)


def test_a_rank_beyond_what_can_be_found_is_refused():
    ratings = dpals.Ratings.from_arrays([1, 1, 2], ["a", "b", "a"], [2.0, 4.0, 3.0], rating_range=(1, 5))
    with pytest.raises(dpals.InputError, match="more than the number of items"):
        dpals.StagewiseALS(rank=3).fit(ratings)


def test_ratings_that_are_all_the_same_have_no_directions():
    ratings = dpals.Ratings.from_arrays([1, 1, 2, 3], ["a", "b", "a", "b"], [4.0] * 4, rating_range=(1, 5))
    np.testing.assert_allclose(dpals.StagewiseALS(rank=2).fit(ratings).predict(ratings, [1, 3], ["a", "a"]), 4.0)
