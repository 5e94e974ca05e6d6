"""ALS on users in blocks: the same model as in memory but for rounding, and the same bits for any blocks."""

import numpy as np
import pytest
from tests.methods.every_method import data
from tests.methods.test_blocks import InBlocks

import dpals
from dpals.engines.local import LocalEngine
from dpals.errors import InputError
from dpals.methods.als_in_blocks import count, item_equations
from dpals.private.user_vectors import LeastSquaresProblem

SETTINGS = {"rank": 4, "steps": 4, "ridge": 3.0}
BIASED = [(False, None), (False, False), (True, None), (True, True)]


@pytest.mark.parametrize(("implicit", "biases"), BIASED)
def test_the_model_is_that_of_memory_but_for_rounding(implicit, biases):
    ratings = data(implicit)
    estimator = dpals.ALS(**SETTINGS, biases=biases)
    users, items = np.repeat(ratings.users, ratings.n_items), np.tile(ratings.items, ratings.n_users)
    expected = estimator.fit(ratings).predict(ratings, users, items)
    found = estimator.fit(InBlocks(ratings, public=3)).predict(ratings, users, items)
    np.testing.assert_allclose(found, expected, atol=2e-3 * np.ptp(expected))


@pytest.mark.parametrize(("implicit", "biases"), BIASED)
def test_any_blocks_and_threads_give_the_same_bits(implicit, biases):
    def bits(n_blocks, threads):
        options = dpals.Options(threads=threads)
        model = dpals.ALS(**SETTINGS, biases=biases).fit(InBlocks(data(implicit), public=n_blocks), options=options)
        return model.item_factors_.tobytes(), model.model_.item_biases.tobytes(), model.model_.global_mean

    assert bits(1, 1) == bits(7, 2) == bits(64, 4)


def test_counts():
    ratings = data()
    counts = count(InBlocks(ratings, public=5), LocalEngine())
    of_users = np.diff(ratings.indptr)
    assert counts.of_items.tolist() == np.bincount(ratings.indices, minlength=ratings.n_items).tolist()
    assert counts.most == of_users.max()
    assert counts.mean == pytest.approx(ratings.values.mean(dtype=np.float64), abs=1e-8)
    assert counts.user_powers(0.7) == pytest.approx(np.mean(np.maximum(of_users, 1) ** 0.7))


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 1e3])
def test_equations_are_those_of_the_users_vectors(ridge):
    """Also where the ridge is so small that vectors, and their bound, are long."""
    ratings, rng = data(), np.random.default_rng(3)
    factors, biases = rng.standard_normal((ratings.n_items, 3)), rng.standard_normal(ratings.n_items)
    counts = count(ratings, LocalEngine())
    problem = LeastSquaresProblem.of(factors, biases, counts.mean, ridge, bias_ridge=0.5, exponent=0.5)
    found = item_equations(InBlocks(ratings, public=3), LocalEngine(), problem, counts)
    solved = problem.solve(ratings).astype(np.float64)
    item, vectors = 7, np.column_stack([solved[:, :3], np.ones(len(solved))])
    rated = ratings.indices == item
    users, targets = ratings.rows[rated], ratings.values[rated] - counts.mean - solved[ratings.rows[rated], 3]
    gram = (vectors[users].T @ vectors[users])[np.triu_indices(4)]
    scale = np.abs(vectors).max() ** 2 * len(users)
    np.testing.assert_allclose(found.grams[item], gram, atol=1e-4 * scale)
    np.testing.assert_allclose(found.moments[item], vectors[users].T @ targets, atol=1e-4 * scale)
    np.testing.assert_allclose(found.all_users, solved[:, :3].T @ solved[:, :3], atol=1e-4 * scale * len(vectors))


def test_without_ratings_there_is_nothing_to_learn():
    nothing = data().keep(np.zeros(data().n_ratings, bool))
    for ratings in (nothing, InBlocks(nothing, public=2)):
        with pytest.raises(InputError, match="no ratings to learn from"):
            dpals.ALS(rank=2).fit(ratings)
