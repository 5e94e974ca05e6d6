"""The level that looks at noise: sound noise passes, and every way to spoil it that is planted here is noticed."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import dpals
from dpals.audit import noise, surprise, tries
from dpals.audit.data import odd_people
from dpals.audit.noise import audit_noise
from dpals.audit.noise_samples import due_weights
from dpals.audit.recording import recorded
from dpals.audit.report import Check
from dpals.audit.streams import (
    check_labels,
    check_no_reuse,
    check_paid_first,
    check_processes,
    other_processes,
    watched_streams,
)
from dpals.audit.surprise import count_surprise, enough_for_half_variance, standardised
from dpals.audit.tries import check_tries
from dpals.methods import private_search
from dpals.release import mechanism, selection
from dpals.release.accounting import Budget
from dpals.release.contribution import Query
from dpals.release.mechanism import Door
from dpals.release.randomness import InsecureSeededStream, NoiseStream, rounded_gaussian
from dpals.release.statement import Statement

RATED = odd_people(40, 40, implicit=False).ratings()
LIKED = odd_people(40, 40, implicit=True).ratings()


def search(**arguments):
    return dpals.PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, 1.0, **{"tries": 3, **arguments})


@pytest.fixture(autouse=True)
def no_bad_luck(monkeypatch):
    """Noise is secure, so these tests could fail by chance: far less often than audits may."""
    monkeypatch.setattr(surprise, "RISK", 1e-8)


@pytest.fixture
def no_processes(monkeypatch):
    """Other processes do not depend on the method and take long: they have tests of their own."""
    monkeypatch.setattr(noise, "other_processes", list)
    monkeypatch.setattr(noise, "check_processes", lambda _: Check("other processes", "passed", "not started"))


def failures(level):
    return {check.question for check in level.checks if check.verdict == "failed"}


def fails(level, part):
    return any(part in question for question in failures(level))


@pytest.mark.usefixtures("no_processes")
@pytest.mark.parametrize(
    ("method", "ratings"),
    [
        (dpals.GlobalMean(), RATED),
        (dpals.ItemMean(epsilon=20.0), RATED),
        (dpals.DPSVD(), RATED),
        (dpals.DPFrankWolfe(), RATED),
        (dpals.DPALS(), LIKED),
        (dpals.Popularity(epsilon=0.01), LIKED),
        (search(), RATED),
        (search(tries=1.5, distribution="poisson"), RATED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_sound_methods_pass(method, ratings):
    level = audit_noise(method, ratings, samples=6_000)
    assert (level.number, level.name) == (2, "noise")
    assert level.verdict == "passed", [check for check in level.checks if check.verdict != "passed"]
    assert level.facts["numbers"] >= 6_000
    assert level.facts["variance over stated"] == pytest.approx(1, abs=0.11)


def test_a_method_that_releases_nothing_has_no_noise():
    level = audit_noise(dpals.UserMean(), RATED)
    assert [check.question for check in level.checks] == ["nothing is released, so there is no noise"]
    assert level.verdict == "passed"


@pytest.mark.usefixtures("no_processes")
def test_too_few_numbers_are_inconclusive_and_the_detail_says_how_many_would_do(monkeypatch):
    level = audit_noise(dpals.GlobalMean(), RATED, samples=50)
    assert level.verdict == "inconclusive"
    (check,) = [check for check in level.checks if check.verdict == "inconclusive"]
    enough = enough_for_half_variance(surprise.limit_for(5))
    assert f"{enough:,} of each would" in check.detail
    assert audit_noise(dpals.GlobalMean(), RATED, samples=enough).verdict == "passed"
    halve(monkeypatch)
    assert fails(audit_noise(dpals.GlobalMean(), RATED, samples=enough), "stated variance")


def halve(monkeypatch):
    def too_small(stream, rows, variance, weights):
        return rounded_gaussian(stream, rows, variance // 2, weights)

    monkeypatch.setattr(mechanism, "rounded_gaussian", too_small)


def halve_one_release(monkeypatch):
    def too_small_for_the_mean(stream, rows, variance, weights):
        return rounded_gaussian(stream, rows, variance // (2 if len(weights) == 2 else 1), weights)

    monkeypatch.setattr(mechanism, "rounded_gaussian", too_small_for_the_mean)


def forget_weights(monkeypatch):
    def unweighted(stream, rows, variance, weights):
        return rounded_gaussian(stream, rows, variance, np.where(weights == 2, 4, weights))

    monkeypatch.setattr(mechanism, "rounded_gaussian", unweighted)


def think_that_other_weights_are_due(monkeypatch):
    monkeypatch.setattr(
        Query, "coordinate_weights", property(lambda query: np.full(len(due_weights(query)), 2, np.int64))
    )


def draw_uniformly(monkeypatch):
    def uniform(stream, rows, variance, weights):
        words = stream.words(rows * len(weights)).reshape(rows, -1)
        return np.rint((words / 2.0**64 - 0.5) * np.sqrt(12 * variance / weights)).astype(np.int64)

    monkeypatch.setattr(mechanism, "rounded_gaussian", uniform)


def cut_tails(monkeypatch):
    def cut(stream, rows, variance, weights):
        most = (4 * np.sqrt(variance / weights)).astype(np.int64)
        return np.clip(rounded_gaussian(stream, rows, variance, weights), -most, most)

    monkeypatch.setattr(mechanism, "rounded_gaussian", cut)


def drop_low_bits(monkeypatch):
    monkeypatch.setattr(mechanism, "rounded_gaussian", lambda *arguments: rounded_gaussian(*arguments) & ~3)


def flip_signs(monkeypatch):
    monkeypatch.setattr(mechanism, "rounded_gaussian", lambda *arguments: abs(rounded_gaussian(*arguments)))


def repeat_rows(monkeypatch):
    monkeypatch.setattr(
        mechanism,
        "rounded_gaussian",
        lambda stream, rows, *rest: np.repeat(rounded_gaussian(stream, -(-rows // 2), *rest), 2, axis=0)[:rows],
    )


def add_to_floats(monkeypatch):
    def floats(door, query, grid, record, offers, receipt=""):
        sums = door._exact_sums(query, grid, offers)
        added = rounded_gaussian(door._pay(record, receipt), len(sums), record.variance, query.coordinate_weights)
        return (sums * grid.step + added * grid.step) / grid.step

    monkeypatch.setattr(Door, "_draw", floats)


def use_one_stream(monkeypatch):
    pay = Door._pay

    def known(door, *arguments):
        pay(door, *arguments)
        return InsecureSeededStream(0, release=0)

    monkeypatch.setattr(Door, "_pay", known)


def share_a_stream(monkeypatch):
    pay, shared = Door._pay, []

    def sharing(door, *arguments):
        shared.append(pay(door, *arguments))
        return shared[0]

    monkeypatch.setattr(Door, "_pay", sharing)


def seed_every_door(monkeypatch):
    made = Door.__init__

    def seeded(door, *arguments, **named):
        made(door, *arguments, **named)
        door.insecure_seed = door.insecure_seed or 0

    monkeypatch.setattr(Door, "__init__", seeded)


def draw_before_paying(monkeypatch):
    pay = Door._pay

    def early(door, *arguments):
        NoiseStream().words(1)
        return pay(door, *arguments)

    monkeypatch.setattr(Door, "_pay", early)


def always_state_privacy(monkeypatch):
    honest = Statement.of
    monkeypatch.setattr(
        Statement, "of", lambda *arguments, **named: replace(honest(*arguments, **named), is_private=True)
    )


@pytest.mark.usefixtures("no_processes")
@pytest.mark.parametrize(
    ("plant", "method", "noticed_by"),
    [
        (halve, dpals.GlobalMean(), "stated variance"),
        (halve_one_release, dpals.ItemMean(), "stated variance"),
        (forget_weights, dpals.DPSVD(), "stated variance"),
        (think_that_other_weights_are_due, dpals.ItemMean(), "stated variance"),
        (draw_uniformly, dpals.ItemMean(), "Gaussian"),
        (cut_tails, dpals.GlobalMean(), "tails"),
        (drop_low_bits, dpals.ItemMean(), "last 8 bits"),
        (flip_signs, dpals.ItemMean(), "sign"),
        (repeat_rows, dpals.ItemMean(), "independent"),
        (add_to_floats, dpals.GlobalMean(), "whole steps"),
        (use_one_stream, dpals.GlobalMean(), "used twice"),
        (use_one_stream, dpals.DPFrankWolfe(), "independent"),
        (seed_every_door, dpals.GlobalMean(), "used twice"),
        (draw_before_paying, dpals.GlobalMean(), "pays first"),
        (share_a_stream, dpals.ItemMean(), "pays first"),
        (always_state_privacy, dpals.GlobalMean(), "known seed"),
    ],
)
def test_spoilt_noise_is_noticed(monkeypatch, plant, method, noticed_by):
    plant(monkeypatch)
    assert fails(audit_noise(method, RATED, samples=6_000), noticed_by)


def test_early_words_of_a_search_are_not_taken_for_those_that_draw_its_tries(monkeypatch):
    draw_before_paying(monkeypatch)
    with watched_streams() as watch:
        run = recorded(search(), RATED)
    assert check_paid_first(watch, 1, run.passages[0]).verdict == "failed"


def test_a_search_that_calls_a_known_seed_private_is_noticed():
    secure, seeded = recorded(search(), RATED), recorded(search(), RATED, insecure_seed=1)
    assert check_labels(secure, seeded).verdict == "passed"
    lying = replace(seeded.model.privacy, is_private=True)
    seeded.estimator.model_ = seeded.model.with_privacy(lying)
    assert check_labels(secure, seeded).verdict == "failed"
    assert check_labels(secure, secure).verdict == "failed"


def test_keys_that_the_operating_system_did_not_give_are_noticed():
    with watched_streams() as sound:
        NoiseStream().words(3)
    with watched_streams() as seeded:
        InsecureSeededStream(1, release=1).words(3)
    assert [check_no_reuse(watch).verdict for watch in (sound, seeded)] == ["passed", "failed"]


def test_a_watch_sees_who_paid_and_leaves_nothing_behind():
    before = NoiseStream.words, NoiseStream._start, dpals.Ledger.spend
    with watched_streams() as watch:
        Door(Budget(1.0, 1e-5)).release(Query("counts", 3, 1.0), (), 2**50)
        assert (watch.spends, watch.owed, watch.unpaid, sum(map(len, watch.words))) == (1, 0, 0, 3)
        NoiseStream()
        dpals.Ledger().spend("ratings", "nothing", 1)
    assert (watch.spends, watch.owed, watch.unpaid) == (2, 1, 1)
    assert (NoiseStream.words, NoiseStream._start, dpals.Ledger.spend) == before


BROKEN = """
import dpals.release.randomness as r
r.NoiseStream.__init__ = lambda stream: stream._start(bytes(32))
r.NoiseStream.words = lambda stream, count: r.np.frombuffer(stream._cipher.update(bytes(8 * count)), "<u8")
r.os.getpid = lambda: 1
"""


@pytest.mark.parametrize(
    ("first", "verdict", "found"),
    [
        ("", "passed", "0 of them twice; 4 streams and doors used after a fork, 0 of them still worked"),
        (BROKEN, "failed", "20 of them twice; 4 streams and doors used after a fork, 4 of them still worked"),
        ("raise SystemExit(1)", "inconclusive", "another process failed"),
    ],
)
def test_processes_that_would_repeat_noise_are_noticed(tmp_path, monkeypatch, first, verdict, found):
    """The other processes run a module of this name before they do anything else."""
    (tmp_path / "sitecustomize.py").write_text(first)
    monkeypatch.syspath_prepend(tmp_path)
    check = check_processes(other_processes())
    assert check.verdict == verdict
    assert found in check.detail


TURNS = itertools.count()


@pytest.mark.parametrize("distribution", ["geometric", "logarithmic", "poisson"])
def test_tries_that_are_drawn_as_stated_pass(distribution):
    assert [check.verdict for check in check_tries(search(distribution=distribution), RATED)] == ["passed"] * 3


@pytest.mark.parametrize(
    ("name", "replacement", "noticed_by"),
    [
        ("_number", lambda tries, _: round(tries.mean), "number of tries"),
        ("_number", lambda _, source: 1 + int(source.words(1)[0]) % 5, "number of tries"),
        ("_uniform", lambda n, _: next(TURNS) % n, "any candidate"),
        ("_uniform", lambda n, source: min(int(source.words(1)[0]) % (n + 1), n - 1), "any candidate"),
    ],
)
def test_tries_that_are_not_drawn_as_stated_are_noticed(monkeypatch, name, replacement, noticed_by):
    monkeypatch.setattr(selection, name, replacement)
    failed = [check.question for check in check_tries(search(), RATED) if check.verdict == "failed"]
    assert any(noticed_by in question for question in failed)


def test_a_search_that_draws_other_tries_than_it_states_is_noticed(monkeypatch):
    monkeypatch.setattr(private_search, "tries_of", lambda name, mean: selection.tries_of(name, 1.1 * mean))
    assert check_tries(search(), RATED)[0].verdict == "failed"


def test_too_many_tries_are_inconclusive(monkeypatch):
    monkeypatch.setattr(tries, "_MOST_TRIES", 1000)
    checks = check_tries(search(), RATED)
    assert [check.verdict for check in checks] == ["passed", "inconclusive"]


@pytest.mark.parametrize("sigma", [0.3, 1.0, 50.0, 2.0**33])
def test_scores_are_standard_normal_whatever_sigma_is(sigma):
    normal = stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    rounded = np.rint(normal * sigma).astype(np.int64)[:, None]
    scores = [standardised(rounded, np.array([sigma]), seed).ravel() for seed in (1, 2)]
    assert stats.kstest(scores[0], "norm").statistic < 0.01
    assert np.mean(scores[0] ** 2) == pytest.approx(1, abs=0.02)
    order = np.argsort(np.sin(np.arange(100_000) ** 2))  # unrelated rows of one distribution
    assert abs(np.mean(scores[0] * scores[1][order])) < 0.02


def test_cells_that_are_rarely_expected_are_joined():
    counts, chances = [300, 100, 10, 5, 0], [0.7, 0.25, 0.03, 0.01, 0.01]
    joined = stats.chisquare([300, 115], [0.7 * 415, 0.3 * 415]).pvalue
    assert count_surprise(counts, chances) == pytest.approx(joined)


def test_weights_are_those_of_upper_triangles():
    for dimension in (1, 2, 7):
        triangle = (2 - np.eye(dimension, dtype=int))[np.triu_indices(dimension)]
        assert due_weights(Query("Gram matrix", 1, 1.0, "symmetric", dimension)).tolist() == triangle.tolist()
    assert due_weights(Query("means", 1, 1.0, "vector", 2, weights=(3, 1))).tolist() == [3, 1]


def test_half_the_variance_shows_in_as_many_numbers_as_are_said_to_be_enough():
    limit = 1e-7
    n = enough_for_half_variance(limit)
    least_seen = 2 * math.sqrt(stats.chi2.ppf(limit / 2, n) / n) ** 2
    assert stats.chi2.sf(least_seen * n, n) < 1e-4 < stats.chi2.sf(least_seen * n * (1 - 0.1), n)
