"""What is learned in the steps: whether factors pay, and what the items of a history say about the user."""

import numpy as np
import pytest

import dpals
from dpals.evaluation.metrics import rmse
from dpals.evaluation.splits import pairs, split_entries
from dpals.methods.pooled.learner import Comparison


def test_a_gain_within_its_noise_is_no_reason_to_drop_anything():
    comparison = Comparison()
    assert not comparison.speaks_against_factors
    comparison.add(-2.5, noise=2.0)
    assert not comparison.speaks_against_factors
    comparison.add(-4.0, noise=2.0)
    assert comparison.speaks_against_factors
    comparison.add(20.0, noise=2.0)
    assert not comparison.speaks_against_factors


@pytest.fixture(scope="module")
def parts():
    """Two kinds of items: people who like a kind rate mostly items of it, and few of them."""
    rng = np.random.default_rng(0)
    taste, kind = rng.normal(size=6000), np.where(np.arange(80) % 2, 1.0, -1.0)
    users, items = np.nonzero(rng.random((6000, 80)) < 0.2 / (1 + np.exp(-1.5 * taste[:, None] * kind)))
    values = np.clip(3 + 0.6 * taste[users] * kind[items] + rng.normal(0, 1, len(users)), 0, 6)
    return split_entries(dpals.Ratings.from_arrays(users, items, values, rating_range=(0, 6)), seed=1)


def test_which_items_people_rate_says_what_they_like(parts, monkeypatch):
    train, _, test = parts

    def error():
        model = dpals.PooledDPALS(5.0, rank=2, insecure_seed=1).fit(train)
        return rmse(model.predict(train, *pairs(test)), test.values), model.model_

    known, model = error()
    monkeypatch.setattr("dpals.methods.pooled.learner.Learner.start_histories", lambda *_: None)
    unknown, plain = error()
    assert plain.history_factors is None
    assert model.history_factors.shape == (80, 3)
    assert known < 0.992 * unknown


def test_a_history_without_ratings_that_stand_out_still_tells_tastes(parts):
    """Somebody who gave items of one kind the average rating is expected to like others of that kind."""
    train, _, _ = parts
    model = dpals.PooledDPALS(20.0, rank=2, insecure_seed=1).fit(train)
    ids = train.items.tolist()
    average = model.model_.global_mean + model.model_.item_biases
    rows = [at for at, item in enumerate(ids) if item % 2][:10]
    history = dpals.Ratings.from_arrays(
        np.zeros(10, int), train.items[rows], np.clip(average[rows], 0, 6), rating_range=(0, 6), catalogue=train.items
    )
    others = [item for item in ids if item not in train.items[rows].tolist()]
    above = model.predict(history, np.zeros(len(others), int), others) - average[[ids.index(item) for item in others]]
    odd = np.array(others) % 2 == 1
    assert above[odd].mean() > above[~odd].mean() + 0.2
