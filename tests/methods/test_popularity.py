"""Popularity against a sum written out."""

import numpy as np
import pytest

import dpals
from dpals.evaluation.splits import liked


@pytest.fixture(scope="module")
def feedback():
    return liked(dpals.simulate.movielens_like(5_000, 100, 20, seed=3))


def test_popularity_is_the_sum_of_the_users_weights(feedback):
    weights = 1 / np.sqrt(np.diff(feedback.indptr))[feedback.rows]
    sums = np.bincount(feedback.indices, weights, feedback.n_items)
    model = dpals.Popularity(1e3, insecure_seed=1).fit(feedback)
    np.testing.assert_allclose(model.model_.item_biases, sums, atol=0.5)
    best = model.recommend(feedback, k=3, exclude_seen=False)[0]
    assert (best == feedback.items[np.argsort(-sums)[:3]]).all()


def test_popularity_drowned_in_noise_is_never_negative(feedback):
    model = dpals.Popularity(1e-3, insecure_seed=1).fit(feedback)
    assert (model.model_.item_biases >= 0).all()
