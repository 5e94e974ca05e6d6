"""The level that looks at noise: sound noise passes, and every way to spoil it that is planted here is noticed."""

from dataclasses import replace

import numpy as np
import pytest

import dpals
from dpals.audit import p_values
from dpals.audit.noise import audit_noise
from dpals.audit.noise_samples import weights_by_definition
from dpals.audit.p_values import samples_for_half_variance
from dpals.audit.simulated_data import odd_users
from dpals.release import mechanism as mechanism_module
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism
from dpals.release.noise import InsecureSeededStream, rounded_gaussian
from dpals.statement.record import Statement

RATED = odd_users(40, 40, implicit=False).ratings()
LIKED = odd_users(40, 40, implicit=True).ratings()


def search(**arguments):
    return dpals.PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, 1.0, **{"tries": 3, **arguments})


@pytest.fixture(autouse=True)
def no_bad_luck(monkeypatch):
    """Noise is secure, so these tests could fail by chance: far less often than audits may."""
    monkeypatch.setattr(p_values, "RISK", 1e-8)


def failures(level):
    return {check.question for check in level.checks if check.verdict == "failed"}


def fails(level, part):
    return any(part in question for question in failures(level))


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
    assert level.facts["variance_over_stated"] == pytest.approx(1, abs=0.11)


def test_a_method_that_releases_nothing_has_no_noise():
    level = audit_noise(dpals.UserMean(), RATED)
    assert [check.question for check in level.checks] == ["nothing is released, so there is no noise"]
    assert level.verdict == "passed"


def test_too_few_numbers_are_inconclusive_and_the_detail_says_how_many_would_do(monkeypatch):
    level = audit_noise(dpals.GlobalMean(), RATED, samples=50)
    assert level.verdict == "inconclusive"
    (check,) = [check for check in level.checks if check.verdict == "inconclusive"]
    enough = samples_for_half_variance(p_values.limit_for(5))
    assert f"{enough:,} of each would" in check.detail
    assert audit_noise(dpals.GlobalMean(), RATED, samples=enough).verdict == "passed"
    halve(monkeypatch)
    assert fails(audit_noise(dpals.GlobalMean(), RATED, samples=2 * enough), "stated variance")


def halve(monkeypatch):
    def too_small(stream, rows, variance, weights):
        return rounded_gaussian(stream, rows, variance // 2, weights)

    monkeypatch.setattr(mechanism_module, "rounded_gaussian", too_small)


def halve_one_release(monkeypatch):
    def too_small_for_the_mean(stream, rows, variance, weights):
        return rounded_gaussian(stream, rows, variance // (2 if len(weights) == 2 else 1), weights)

    monkeypatch.setattr(mechanism_module, "rounded_gaussian", too_small_for_the_mean)


def forget_weights(monkeypatch):
    def unweighted(stream, rows, variance, weights):
        return rounded_gaussian(stream, rows, variance, np.where(weights == 2, 4, weights))

    monkeypatch.setattr(mechanism_module, "rounded_gaussian", unweighted)


def think_that_other_weights_are_due(monkeypatch):
    monkeypatch.setattr(
        Query, "coordinate_weights", property(lambda query: np.full(len(weights_by_definition(query)), 2, np.int64))
    )


def draw_uniformly(monkeypatch):
    def uniform(stream, rows, variance, weights):
        words = stream.words(rows * len(weights)).reshape(rows, -1)
        return np.rint((words / 2.0**64 - 0.5) * np.sqrt(12 * variance / weights)).astype(np.int64)

    monkeypatch.setattr(mechanism_module, "rounded_gaussian", uniform)


def cut_tails(monkeypatch):
    def cut(stream, rows, variance, weights):
        most = (4 * np.sqrt(variance / weights)).astype(np.int64)
        return np.clip(rounded_gaussian(stream, rows, variance, weights), -most, most)

    monkeypatch.setattr(mechanism_module, "rounded_gaussian", cut)


def drop_low_bits(monkeypatch):
    monkeypatch.setattr(mechanism_module, "rounded_gaussian", lambda *arguments: rounded_gaussian(*arguments) & ~3)


def flip_signs(monkeypatch):
    monkeypatch.setattr(mechanism_module, "rounded_gaussian", lambda *arguments: abs(rounded_gaussian(*arguments)))


def repeat_rows(monkeypatch):
    monkeypatch.setattr(
        mechanism_module,
        "rounded_gaussian",
        lambda stream, rows, *rest: np.repeat(rounded_gaussian(stream, -(-rows // 2), *rest), 2, axis=0)[:rows],
    )


def add_to_floats(monkeypatch):
    def floats(mechanism, sums, query, record, receipt=""):
        added = rounded_gaussian(mechanism._pay(record, receipt), len(sums), record.variance, query.coordinate_weights)
        return (sums * record.step + added * record.step) / record.step

    monkeypatch.setattr(Mechanism, "_draw", floats)


def use_one_stream(monkeypatch):
    pay = Mechanism._pay

    def known(mechanism, *arguments):
        pay(mechanism, *arguments)
        return InsecureSeededStream(0, release=0)

    monkeypatch.setattr(Mechanism, "_pay", known)


def seed_every_mechanism(monkeypatch):
    made = Mechanism.__init__

    def seeded(mechanism, *arguments, **named):
        made(mechanism, *arguments, **named)
        mechanism.insecure_seed = mechanism.insecure_seed or 0

    monkeypatch.setattr(Mechanism, "__init__", seeded)


def always_state_privacy(monkeypatch):
    honest = Statement.of
    monkeypatch.setattr(
        Statement, "of", lambda *arguments, **named: replace(honest(*arguments, **named), is_private=True)
    )


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
        (seed_every_mechanism, dpals.GlobalMean(), "used twice"),
        (always_state_privacy, dpals.GlobalMean(), "known seed"),
    ],
)
def test_spoilt_noise_is_noticed(monkeypatch, plant, method, noticed_by):
    plant(monkeypatch)
    assert fails(audit_noise(method, RATED, samples=6_000), noticed_by)


class HalfSure(Mechanism):
    """Half of the noise that it records."""

    def _draw(self, sums, query, record, receipt=""):
        stream = self._pay(record, receipt)
        return sums + rounded_gaussian(stream, len(sums), record.variance // 4, query.coordinate_weights)


def test_the_mechanism_that_is_looked_at_is_that_of_the_method():
    class Method(dpals.GlobalMean):
        mechanism_class = HalfSure

    assert fails(audit_noise(Method(), RATED, samples=6_000), "stated variance")
