"""Canaries reach what is claimed and no more, and plainly broken mechanisms and formulas are noticed."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import dpals
from dpals.audit import search_canary
from dpals.audit.canary import audit_canary
from dpals.audit.canary_scores import crowd_of, parts_of, scores
from dpals.audit.simulated_data import odd_users
from dpals.audit.recorded_run import record_run
from dpals.release import accounting, selection
from dpals.release import contribution as contribution_module
from dpals.release import mechanism as mechanism_module
from dpals.release.contribution import Contribution, Grid, Pattern, Query, quantize_and_clip
from dpals.release.noise import InsecureSeededStream, rounded_gaussian
from dpals.release.selection import tries_of
from dpals.release.sums import add_exactly, empty_sums

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


def search(**changes):
    settings = {"epsilon": 1.0, "tries": 3.0, **changes}
    return dpals.PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, **settings)


@pytest.fixture
def certain(monkeypatch):
    """One sound search in ten thousand fails by chance, which is too often for tests."""
    monkeypatch.setattr(search_canary, "CONFIDENCE", 1 - 1e-7)


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


@pytest.mark.parametrize("name", ["counts and sums", "vectors", "a large matrix"])
def test_scores_are_normal_as_the_line_between_them_assumes(name):
    method, ratings = SUBJECTS[name]
    scored = scores(parts_of(record_run(method, ratings)), 20_000)
    assert scored["all"].reach == pytest.approx(accounting.mu(1.0, 1e-5), rel=0.001)
    for canaries in scored.values():
        assert stats.kstest(canaries.absent, "norm").pvalue > 1e-7
        assert stats.kstest(canaries.present - canaries.reach, "norm").pvalue > 1e-7


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(
    "query",
    [
        Query("counts", 40, 1.0),
        Query("one sum", 1, 2.5),
        Query("vectors", 40, 3.0, "vector", 9, 0.7),
        Query("weighted vectors", 3, 3.0, "vector", 5, 0.7, (1, 3, 7, 1, 20)),
        Query("matrices", 40, 3.0, "symmetric", 9, 2.0),
        Query("one matrix", 1, 0.3, "symmetric", 3),
    ],
    ids=lambda query: query.purpose,
)
def test_what_canaries_add_is_known_and_at_the_bound(query, wide):
    """Against the sums of the real code, without noise."""
    mechanism = mechanism_module.Mechanism(accounting.Budget(1.0, 1e-5))
    nobody = Contribution(Pattern(np.zeros(1), np.zeros(0), query.n_items), np.zeros(0))
    if query.form != "scalar":
        nobody = replace(nobody, vectors=np.zeros((0, query.dimension)))
    mechanism.release(query, nobody, mechanism.budget.cost)
    record = mechanism.releases[0]

    class Recorded:
        pass

    release = Recorded()
    release.query, release.record = query, record
    crowd = crowd_of(release, 256, wide)
    asked = replace(query, n_items=crowd.rows)
    grid = Grid.of(asked, record.bound.bit_length() - 1)
    sums = empty_sums(asked)
    add_exactly(sums, quantize_and_clip(crowd.contribution, asked, grid), asked)
    projections = crowd.projections(sums.astype(float))
    here = projections > 0
    assert here.sum() == 128
    assert (projections[~here] == 0).all(), "who is absent adds nothing to anyone's numbers"
    norms = np.sqrt(crowd.squares)
    assert (norms <= record.bound * (1 + 1e-7)).all()
    assert (norms > 0.995 * record.bound).mean() > 0.95
    assert projections[here] / norms[here] == pytest.approx(norms[here], rel=0.01)
    assert (projections[here] == crowd.squares[here]).mean() > 0.1, "many are there to the last step"


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
    monkeypatch.setattr(contribution_module, "_enforce", lambda *_: None)
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


@pytest.mark.usefixtures("certain")
@pytest.mark.parametrize("distribution", selection.DISTRIBUTIONS)
def test_sound_searches_pass(distribution):
    level = audit_canary(search(distribution=distribution), EXPLICIT, runs=10_000)
    assert level.verdict == "passed", level.checks
    assert level.facts["mu_claimed"] < accounting.mu(1.0, 1e-5), "of one try"
    assert level.facts["epsilon_at_least"] < level.facts["epsilon_claimed"] <= 1


@pytest.mark.usefixtures("certain")
def test_few_searches_are_inconclusive():
    check = by_question(audit_canary(search(), EXPLICIT, runs=400), "secret number")
    assert check.verdict == "inconclusive"
    assert "runs would do" in check.detail


@pytest.mark.usefixtures("certain")
def test_a_search_that_makes_a_fixed_number_of_tries_is_noticed(monkeypatch):
    monkeypatch.setattr(selection, "_number", lambda tries, _stream: round(tries.mean))
    level = audit_canary(search(tries=20.0), EXPLICIT, runs=10_000)
    assert by_question(level, "secret number").verdict == "failed"


def without_growth(mu, delta, tries):
    return min(accounting.epsilon(mu, delta / tries.mean), selection._by_renyi(mu, delta, tries))


def without_mean(mu, delta, tries):
    return min(accounting.epsilon(mu, delta) + tries.growth(mu), selection._by_renyi(mu, delta, tries))


@pytest.mark.parametrize("broken", [without_growth, without_mean])
def test_terms_missing_from_the_promise_of_a_search_are_noticed(monkeypatch, broken):
    assert search_canary._check_other_losses().verdict == "passed"
    monkeypatch.setattr(selection, "epsilon", broken)
    assert search_canary._check_other_losses().verdict == "failed"


@pytest.mark.parametrize("tries", [tries_of("geometric", 4.0), tries_of("logarithmic", 3.0), tries_of("poisson", 2.0)])
def test_the_generating_function_is_that_of_the_chances(tries):
    import mpmath

    chances = []
    for number, chance in tries.probabilities(mpmath.mp):
        chances.append((number, float(chance)))
        if number > 200:
            break
    for beyond in (0.0, 0.2, 0.9, 1.0):
        due = sum(chance * (1 - beyond) ** number for number, chance in chances)
        assert search_canary.generating_function(tries, np.array([beyond]))[0] == pytest.approx(due, abs=1e-9)


def test_what_a_search_with_hardly_a_second_try_loses_is_what_one_try_loses():
    mu, epsilon = 0.5, 1.0
    delta = search_canary.lost(mu, epsilon, tries_of("geometric", 1.00001))
    assert delta == pytest.approx(accounting.delta(mu, epsilon), rel=1e-3)


@pytest.mark.parametrize("distribution", ["geometric", "logarithmic", "poisson"])
@pytest.mark.parametrize(("epsilon", "delta"), [(20.0, 1e-6), (30.0, 1e-5), (12.0, 1e-9), (400.0, 1e-9)])
def test_large_epsilons_of_sound_searches_are_covered(distribution, epsilon, delta):
    tries = tries_of(distribution, 3.0)
    mu = selection.mu(epsilon, delta, tries)
    assert 0.1 * delta < search_canary.lost(mu, epsilon, tries) <= delta


def test_an_epsilon_that_promises_nothing_is_not_worked_out():
    statement = record_run(search(epsilon=900.0), EXPLICIT).model.privacy
    tries = tries_of(statement.selection.distribution, statement.selection.tries)
    assert search_canary._check_own_loss(statement, tries).verdict == "inconclusive"


class Deaf(mechanism_module.Mechanism):
    """Leaves everyone out."""

    def release(self, query, _, cost):
        return super().release(query, (), cost)


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
