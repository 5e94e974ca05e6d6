"""Attacks on what one training run publishes."""

from dataclasses import replace

import numpy as np
import pytest

import dpals
from dpals.audit.one_run import audit_one_run
from dpals.errors import InputError
from dpals.release.mechanism import Mechanism

FACTS = {"epsilon_claimed", "epsilon_at_least", "canaries", "guesses", "correct", "auc_members", "auc_reference"}
FACTS |= {"recognised_at_1_percent", "limit_at_1_percent"}


class SilentMechanism(Mechanism):
    """A mechanism that pays for noise and adds none."""

    def _draw(self, sums, _, record, receipt=""):
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
