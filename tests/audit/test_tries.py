"""The tries of a search: drawn as stated they pass, drawn in other ways they do not."""

import itertools

import pytest

import dpals
from dpals.audit import surprise, tries
from dpals.audit.data import odd_people
from dpals.audit.tries import check_tries
from dpals.methods import private_search
from dpals.release import selection

RATED = odd_people(40, 40, implicit=False).ratings()


def search(**arguments):
    return dpals.PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, 1.0, **{"tries": 3, **arguments})


@pytest.fixture(autouse=True)
def no_bad_luck(monkeypatch):
    """Tries are secure, so these tests could fail by chance: far less often than audits may."""
    monkeypatch.setattr(surprise, "RISK", 1e-8)


TURNS = itertools.count()
NUMBER = selection._number


@pytest.mark.parametrize("distribution", ["geometric", "logarithmic", "poisson"])
def test_tries_that_are_drawn_as_stated_pass(distribution):
    assert [check.verdict for check in check_tries(search(distribution=distribution), RATED)] == ["passed"] * 4


@pytest.mark.parametrize(
    ("name", "replacement", "noticed_by"),
    [
        ("_number", lambda tries, _: round(tries.mean), "number of tries"),
        ("_number", lambda tries, source: min(NUMBER(tries, source), 50), "longer searches"),
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
