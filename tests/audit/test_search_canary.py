"""Canaries of a search: the best of many tries is chosen as it should be, and broken choices are noticed."""

import pytest

import dpals
from dpals.audit import search_canary
from dpals.audit.canary import audit_canary
from dpals.audit.simulated_data import odd_users
from dpals.release import accounting, selection

RATINGS = odd_users(40, 40, implicit=False).ratings()


@pytest.fixture
def certain(monkeypatch):
    """One sound search in ten thousand fails by chance, which is too often for tests."""
    monkeypatch.setattr(search_canary, "CONFIDENCE", 1 - 1e-7)


def search(**changes):
    settings = {"epsilon": 1.0, "tries": 3.0, **changes}
    return dpals.PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, **settings)


def by_question(level, words):
    (check,) = [check for check in level.checks if words in check.question]
    return check


@pytest.mark.usefixtures("certain")
@pytest.mark.parametrize("distribution", selection.DISTRIBUTIONS)
def test_sound_searches_pass(distribution):
    level = audit_canary(search(distribution=distribution), RATINGS, runs=10_000)
    assert level.verdict == "passed", level.checks
    assert level.facts["mu_claimed"] < accounting.mu(1.0, 1e-5), "of one try"
    assert level.facts["epsilon_at_least"] < level.facts["epsilon_claimed"] <= 1


@pytest.mark.usefixtures("certain")
def test_few_searches_are_inconclusive():
    check = by_question(audit_canary(search(), RATINGS, runs=400), "secret number")
    assert check.verdict == "inconclusive"
    assert "runs would do" in check.detail


@pytest.mark.usefixtures("certain")
def test_a_search_that_makes_a_fixed_number_of_tries_is_noticed(monkeypatch):
    monkeypatch.setattr(selection, "_number", lambda tries, _stream: round(tries.mean))
    level = audit_canary(search(tries=20.0), RATINGS, runs=10_000)
    assert by_question(level, "secret number").verdict == "failed"
