"""Trace-norm completion against soft-impute on dense matrices, and against what makes it optimal."""

import numpy as np

import dpals
from dpals.evaluation.metrics import rmse
from dpals.evaluation.splits import pairs

PENALTY = 15.0


def task(n_users=600, n_items=300):
    return dpals.simulate.paper_synthetic(n_users, n_items=n_items, rank=3, seed=1)


def test_it_is_soft_impute_on_the_whole_matrix():
    train = task(200, 250).train
    method = dpals.TraceNorm(rank=60, steps=150, penalty=PENALTY, biases=False).fit(train)
    known, mask = np.zeros((200, 250)), np.zeros((200, 250), bool)
    known[train.rows, train.indices] = train.values - method.model_.global_mean
    mask[train.rows, train.indices] = True
    guess = np.zeros(known.shape)
    for _ in range(500):
        left, values, right = np.linalg.svd(np.where(mask, known, guess), full_matrices=False)
        guess = (left * np.maximum(values - PENALTY, 0)) @ right
    # The optimum: what is left of the ratings has the penalty times U V^T on the solution's own space.
    residual = np.where(mask, known - guess, 0)
    rank = int((values > PENALTY + 1e-6).sum())
    np.testing.assert_allclose(left[:, :rank].T @ residual @ right[:rank].T, PENALTY * np.eye(rank), atol=0.05)
    found = method.model_.user_vectors(train) @ method.item_factors_.T
    np.testing.assert_allclose(found, guess, atol=0.02)


def test_it_completes_a_matrix_of_low_rank():
    whole = task()
    method = dpals.TraceNorm(rank=8, steps=200, penalty=0.5, biases=False).fit(whole.train)
    assert rmse(method.predict(whole.train, *pairs(whole.test)), whole.test.values) < 0.02


def test_biases_are_means_shrunk():
    ratings = dpals.Ratings.from_arrays([1, 1, 2, 2], ["a", "b", "a", "b"], [2.0, 4.0, 3.0, 5.0], rating_range=(1, 5))
    method = dpals.TraceNorm(rank=1, steps=2, shrinkage=2.0, penalty=100.0).fit(ratings)
    assert method.model_.global_mean == 3.5
    np.testing.assert_allclose(method.model_.item_biases, [-0.5, 0.5])
    assert not method.item_factors_.any()
