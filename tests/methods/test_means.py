"""The simple baselines against sums written out."""

import numpy as np
import pytest

import dpals


@pytest.fixture(scope="module")
def ratings():
    return dpals.simulate.movielens_like(5_000, 100, 20, seed=3)


def test_the_global_mean_is_that_of_the_users_means(ratings):
    means = [ratings.values[ratings.indptr[i] : ratings.indptr[i + 1]].mean() for i in range(ratings.n_users)]
    model = dpals.GlobalMean(50.0, insecure_seed=1).fit(ratings)
    assert model.model_.global_mean == pytest.approx(np.mean(means), abs=2e-3)
    predicted = model.predict(ratings, ratings.users[:3], ratings.items[:3])
    assert (predicted == predicted[0]).all()


def test_the_user_mean_is_the_users_own_and_shrinks_as_asked(ratings):
    own = ratings.values[ratings.indptr[4] : ratings.indptr[5]].astype(float)
    for shrinkage in (0.0, 7.0):
        model = dpals.UserMean(shrinkage=shrinkage).fit(ratings)
        expected = 2.75 + (own - 2.75).sum() / (len(own) + shrinkage)
        assert model.predict(ratings, [ratings.users[4]], [ratings.items[0]])[0] == pytest.approx(expected, rel=1e-5)
    silent = ratings.keep(ratings.rows != 4)
    assert model.predict(silent, [ratings.users[4]], [ratings.items[0]])[0] == 2.75
    assert not model.privacy.releases
    assert model.privacy.is_private


def test_item_means_are_those_of_ratings_weighted_alike_for_each_user(ratings):
    weights = 1 / np.sqrt(np.diff(ratings.indptr))[ratings.rows]
    sums = np.bincount(ratings.indices, weights * ratings.values, ratings.n_items)
    means = sums / np.bincount(ratings.indices, weights, ratings.n_items)
    model = dpals.ItemMean(500.0, residual_bound=2.0, insecure_seed=1).fit(ratings)
    np.testing.assert_allclose(model.model_.global_mean + model.model_.item_biases, means, atol=0.05)
