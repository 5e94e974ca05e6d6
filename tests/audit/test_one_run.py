"""Attacks on what one training publishes."""

from dataclasses import replace

import numpy as np
import pytest

import dpals
from dpals.audit.membership_attack import Promise, canary_ratings, membership_scores, to_ratings, count_correct_guesses, roc
from dpals.audit.one_run import audit_one_run
from dpals.errors import InputError
from dpals.release.mechanism import Mechanism
from dpals.statement.record import Statement

FACTS = {"epsilon_claimed", "epsilon_at_least", "canaries", "guesses", "correct", "auc_members", "auc_reference"}
FACTS |= {"recognised_at_1_percent", "limit_at_1_percent"}


class SilentMechanism(Mechanism):
    """A mechanism that pays for noise and adds none."""

    def _draw(self, query, grid, record, contributions, receipt=""):
        sums = self.exact_sums(query, grid, contributions)
        self._pay(record, receipt)
        return sums


class LeakyMeans(dpals.ItemMean):
    """Publishes exact means of items beside the mechanism, and says nothing of it."""

    def _fit(self, ratings, mechanism):
        model = super()._fit(ratings, mechanism)
        count = np.bincount(ratings.indices, minlength=ratings.n_items)
        total = np.bincount(ratings.indices, ratings.values - model.global_mean, minlength=ratings.n_items)
        return replace(model, item_biases=total / np.maximum(count, 1))


class SilentSGD(dpals.DPSGD):
    mechanism_class = SilentMechanism


@pytest.mark.parametrize(
    ("method", "implicit"), [(dpals.ItemMean(), False), (dpals.DPSVD(), False), (dpals.Popularity(), True)]
)
def test_sound_methods_pass(method, implicit):
    level = audit_one_run(method, implicit, canaries=1000)
    assert (level.number, level.name, level.verdict) == (4, "one run", "passed")
    assert level.facts.keys() >= FACTS
    assert level.facts["epsilon_claimed"] == pytest.approx(1.0)
    assert level.facts["epsilon_at_least"] < 1.0
    assert level.facts["correct"] < level.facts["correct_without_privacy"]
    assert [curve.kind for curve in level.curves] == ["limit", "attack", "reference"]
    for curve in level.curves:
        assert len(curve.false_alarms) == len(curve.recognised)
        assert np.all(np.diff(curve.false_alarms) >= 0)
        assert np.all(np.diff(curve.recognised) >= 0)
    assert not hasattr(method, "model_")


@pytest.mark.parametrize(("method", "implicit"), [(SilentSGD(), False), (LeakyMeans(), False)])
def test_methods_that_give_people_away_fail(method, implicit):
    level = audit_one_run(method, implicit, canaries=500)
    canaries, people = level.checks
    assert level.verdict == canaries.verdict == "failed"
    assert level.facts["epsilon_at_least"] > level.facts["epsilon_claimed"]
    assert "refute" in canaries.detail
    if isinstance(method, SilentSGD):
        assert people.verdict == "failed"
        assert level.facts["auc_members"] > 0.7


def test_a_search_is_held_to_its_own_promise():
    search = dpals.PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, 1.0, tries=2)
    level = audit_one_run(search, canaries=300)
    assert level.verdict != "failed"
    assert level.facts["limit_at_1_percent"] == pytest.approx(0.01 * np.e + 1e-5, rel=1e-3)


def test_claims_beyond_reach_are_inconclusive():
    canaries, people = audit_one_run(dpals.ItemMean(epsilon=6.0), canaries=200).checks
    assert canaries.verdict == "inconclusive"
    assert "25,600 canaries or users could" in canaries.detail
    assert people.verdict == "inconclusive"
    canaries, people = audit_one_run(dpals.ItemMean(epsilon=30.0), canaries=200).checks
    assert canaries.verdict == people.verdict == "inconclusive"
    assert "nor could" in canaries.detail


def test_an_attack_that_fails_without_privacy_proves_nothing():
    level = audit_one_run(dpals.GlobalMean(), canaries=300)
    assert level.verdict == "inconclusive"
    assert "no such success without privacy" in level.checks[0].detail


def test_nothing_released_is_nothing_to_attack():
    level = audit_one_run(dpals.UserMean(), canaries=100)
    assert level.verdict == "passed"
    assert level.facts["epsilon_claimed"] == level.facts["epsilon_at_least"] == 0
    assert level.facts["correct"] == level.facts["correct_without_privacy"]


def test_what_cannot_be_audited_is_refused():
    with pytest.raises(InputError, match="not private"):
        audit_one_run(dpals.ALS())
    with pytest.raises(InputError, match="100 canaries"):
        audit_one_run(dpals.ItemMean(), canaries=5)


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
