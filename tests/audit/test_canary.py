"""Canaries reach what is claimed and no more, and plainly broken mechanisms and formulas are noticed."""

import copy
import math

import numpy as np
import pytest
from scipy import stats

import dpals
from dpals.audit.canary import audit_canary
from dpals.audit.simulated_data import odd_users
from dpals.release import accounting
from dpals.release import contribution as contribution_module
from dpals.release import mechanism as mechanism_module
from dpals.release.contribution import Contribution, Pattern, Query
from dpals.release.noise import InsecureSeededStream, rounded_gaussian

EXPLICIT, IMPLICIT = (odd_users(40, 40, implicit=implicit).ratings() for implicit in (False, True))
SUBJECTS = {
    "counts": (dpals.Popularity(epsilon=1.0), IMPLICIT),
    "counts and sums": (dpals.ItemMean(epsilon=1.0), EXPLICIT),
    "vectors": (dpals.DPSGD(epsilon=1.0), EXPLICIT),
    "a large matrix": (dpals.DPSVD(epsilon=1.0), EXPLICIT),
    "many releases, adaptive": (dpals.PrivateBiases(epsilon=1.0), EXPLICIT),
    "small matrices": (dpals.DPALS(epsilon=1.0), EXPLICIT),
}
QUICK, QUICKER = 1500, 1000


def quicker_audit(name):
    """With a large epsilon few runs do: mu is about 0.9, and the bound 0.07 below it with a deviation of 0.013."""
    method, ratings = SUBJECTS[name]
    return audit_canary(copy.copy(method).set_params(epsilon=4.0), ratings, runs=QUICKER).verdict


def by_question(level, words):
    (check,) = [check for check in level.checks if words in check.question]
    return check


@pytest.mark.parametrize("name", SUBJECTS)
def test_sound_methods_pass_and_canaries_come_close(name):
    method, ratings = SUBJECTS[name]
    level = audit_canary(method, ratings, runs=QUICK)
    assert (level.number, level.name, level.verdict) == (3, "canary", "passed")
    facts = level.facts
    assert facts["mu_claimed"] == pytest.approx(accounting.mu(1.0, method.delta), rel=1e-6)
    # sqrt(n) times the distance of the bound is 9.4 on average, with a standard deviation of 1.8.
    assert 0 < (facts["mu_claimed"] - facts["mu_at_least"]) * math.sqrt(facts["canaries"]) < 20
    assert facts["share"] == facts["mu_at_least"] / facts["mu_claimed"]
    assert 0.1 < facts["epsilon_at_least"] < facts["epsilon_claimed"] <= 1.0
    assert (facts["pairs"], facts["canaries"] // 1000) == (QUICK, 30)


def test_a_whole_audit_comes_within_five_percent_of_the_claim():
    facts = audit_canary(dpals.GlobalMean(epsilon=1.0), EXPLICIT, runs=100_000).facts
    assert 0.95 < facts["share"] < 1
    assert facts["canaries"] >= 2_000_000


def test_curves_are_those_of_the_gaussian_mechanism():
    seen, allowed = audit_canary(dpals.GlobalMean(epsilon=4.0), EXPLICIT, runs=QUICK).curves
    mu = accounting.mu(4.0, 1e-5)
    assert (seen.kind, allowed.kind) == ("attack", "limit")
    assert allowed.false_alarms == seen.false_alarms
    due = stats.norm.cdf(stats.norm.ppf(seen.false_alarms) + mu)
    assert allowed.recognised == pytest.approx(due, abs=1e-9)
    assert seen.recognised == pytest.approx(due, abs=0.03)


def test_few_runs_are_inconclusive_and_it_is_said_how_many_would_do():
    check = audit_canary(dpals.GlobalMean(epsilon=1.0), EXPLICIT, runs=20).checks[0]
    assert check.verdict == "inconclusive"
    assert "pairs would do" in check.detail
    enough = int(check.detail.split(";")[-1].split()[0].replace(",", ""))
    assert audit_canary(dpals.GlobalMean(epsilon=1.0), EXPLICIT, runs=enough).verdict == "passed"


@pytest.mark.parametrize("name", ["counts", "counts and sums", "a large matrix"])
def test_the_same_audit_passes_where_nothing_is_broken(name):
    assert quicker_audit(name) == "passed"


def test_half_the_variance_is_noticed(monkeypatch):
    monkeypatch.setattr(
        mechanism_module,
        "rounded_gaussian",
        lambda source, rows, variance, weights: rounded_gaussian(source, rows, variance // 2, weights),
    )
    for name in ("counts", "a large matrix", "small matrices"):
        assert quicker_audit(name) == "failed", name


def test_bounds_that_are_not_enforced_are_noticed(monkeypatch):
    monkeypatch.setattr(contribution_module, "_clip_users", lambda *_: None)
    for name in ("counts", "vectors", "a large matrix"):
        assert quicker_audit(name) == "failed", name


def test_too_little_noise_off_the_diagonal_is_noticed(monkeypatch):
    def weights(query):
        rows, columns = np.triu_indices(query.dimension)
        if query.form == "symmetric":
            return np.where(rows == columns, 1, 4).astype(np.int64)
        return np.array(query.weights or [1] * query.dimension, np.int64)

    monkeypatch.setattr(Query, "coordinate_weights", property(weights))
    assert quicker_audit("a large matrix") == "failed"


def test_bounds_recorded_too_small_are_noticed(monkeypatch):
    class Modest(mechanism_module.Release):
        def __init__(self, purpose, shape, form, bound, *rest):
            super().__init__(purpose, shape, form, bound // 4, *rest)

    monkeypatch.setattr(mechanism_module, "Release", Modest)
    assert quicker_audit("counts and sums") == "failed"


def test_who_releases_nothing_gives_nobody_away():
    level = audit_canary(dpals.UserMean(), EXPLICIT, runs=QUICK)
    assert level.verdict == "passed"
    assert level.facts["epsilon_claimed"] == level.facts["mu_claimed"] == 0


class Deaf(mechanism_module.Mechanism):
    """Leaves everyone out."""

    def exact_sums(self, work, _):
        return work.empty()


class Repeating(mechanism_module.Mechanism):
    """Adds the same noise again and again: two releases together give everyone away."""

    def _pay(self, record, receipt):
        super()._pay(record, receipt)
        return InsecureSeededStream(5, release=1)


@pytest.mark.parametrize("mechanism", [Deaf, Repeating])
def test_canaries_that_are_not_where_they_should_be_are_no_pass(mechanism):
    class Method(dpals.DPSGD):
        mechanism_class = mechanism

    check = by_question(audit_canary(Method(epsilon=4.0), EXPLICIT, runs=QUICKER), "scored as the stated noise says")
    assert check.verdict == "failed"


def test_coordinates_of_great_weight_do_not_make_canaries_of_zeros():
    class Heavy(dpals.GlobalMean):
        def _fit(self, ratings, mechanism):
            query = Query("weighted", 1, 1.0, "vector", 3, weights=(2**30, 2**29, 2**30))
            contribution = Contribution(
                Pattern.one_item(ratings.n_users), np.ones(ratings.n_users), np.ones((ratings.n_users, 3))
            )
            mechanism.release(query, contribution, mechanism.budget.cost)
            return dpals.UserMean()._fit(ratings, mechanism)

    level = audit_canary(Heavy(epsilon=4.0), EXPLICIT, runs=QUICKER)
    assert 0.8 < level.facts["share"] < 1
    assert level.verdict == "passed"
