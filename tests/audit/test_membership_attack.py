"""The membership attack: how users are scored and guessed, and how a promise is read."""

import numpy as np
import pytest

import dpals
from dpals.audit.membership_attack import (
    Promise,
    canary_ratings,
    count_correct_guesses,
    membership_scores,
    roc,
    to_ratings,
)
from dpals.statement.record import Statement


def test_canaries_are_alike_but_for_what_they_rate():
    items = np.array([3, 5, 6, 8, 9])
    canaries = canary_ratings(40, items, n_items=12, each=4, seed=1).toarray()
    assert canaries.shape == (40, 12)
    assert set(np.flatnonzero(canaries.any(axis=0))) == set(items)
    assert np.all(np.sum(canaries == 0.5, axis=1) == 2)
    assert np.all(np.sum(canaries == 5.0, axis=1) == 2)


@pytest.mark.parametrize("implicit", [False, True])
def test_the_fit_is_that_of_predictions(implicit):
    people = to_ratings(dpals.simulate.movielens_like(30, 40, 20, seed=2).to_csr(), implicit)
    factors = np.random.default_rng(1).normal(0, 0.1, (40, 2))
    scale = None if implicit else (0.5, 5.0)
    model = dpals.FactorModel(people.items, factors, np.linspace(-0.5, 0.5, 40), 3.0, 1.0, rating_range=scale)
    fits = membership_scores(model, people)
    for user in (0, 7, 29):
        own = people.indices[people.indptr[user] : people.indptr[user + 1]]
        predicted = model.predict(people, np.full(40, user), people.items)
        if implicit:
            expected = np.mean(predicted[own]) - np.mean(predicted)
        else:
            values = people.values[people.indptr[user] : people.indptr[user + 1]]
            expected = -np.mean((predicted[own] - values) ** 2)
        assert fits[user] == pytest.approx(expected, abs=1e-5)


def test_guesses_and_curves_count_each_person_once():
    rng = np.random.default_rng(3)
    scores, is_in = rng.normal(size=50), rng.random(50) < 0.5
    order = sorted(range(50), key=lambda person: scores[person])
    right = sum(is_in[person] for person in order[-7:]) + sum(not is_in[person] for person in order[:7])
    assert count_correct_guesses(scores, is_in, each=7) == right
    members, others = roc(scores, is_in)
    threshold = scores[order[-10]]
    assert members[10] == np.sum(is_in & (scores >= threshold))
    assert others[10] == np.sum(~is_in & (scores >= threshold))


def test_a_promise_is_read_at_any_delta():
    ratings = dpals.simulate.movielens_like(200, 50, 20, seed=1)
    search = dpals.PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, 1.0, tries=2)
    for method in (dpals.ItemMean(epsilon=2.0), search):
        statement: Statement = method.fit(ratings).privacy
        promise = Promise(statement)
        assert promise.epsilon_at(statement.delta) == pytest.approx(statement.epsilon, rel=1e-4)
        assert promise.epsilon_at(1e-8) > statement.epsilon
        assert promise.at_own_delta(promise.epsilon_at(1e-8), 1e-8) == pytest.approx(statement.epsilon, rel=1e-4)
        assert promise.at_own_delta(0.0, 1e-8) == 0
        assert promise.limit(0.01) == pytest.approx(statement.attack_power)
