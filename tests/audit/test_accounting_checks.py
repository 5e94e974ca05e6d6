"""Releases, ledger and statement, told apart where they disagree."""

from dataclasses import replace

import pytest
from scipy.stats import norm

import dpals
from dpals.audit.accounting_checks import accounting_errors, composition_errors, untrue_conversions
from dpals.audit.simulated_data import odd_users
from dpals.audit.recorded_run import record_run
from dpals.release import accounting
from dpals.statement.record import Statement

RATINGS = odd_users(12, 40, implicit=False).ratings()
SEARCH = dpals.PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, 2.0, tries=3)


def run(method=None):
    return record_run(method or dpals.ItemMean(2.0, 1e-5), RATINGS)


def stated(run, **changes):
    run.estimator.model_ = replace(run.model, privacy=replace(run.model.privacy, **changes))
    return run


@pytest.mark.parametrize("method", [dpals.ItemMean(2.0, 1e-5), dpals.UserMean(2.0, 1e-5), dpals.DPSGD(2.0), SEARCH])
def test_sound_books_agree(method):
    assert list(accounting_errors(run(method), 2.0, 1e-5)) == []


def complaints(run, asked=2.0, delta=1e-5):
    return "; ".join(accounting_errors(run, asked, delta))


def test_a_release_that_is_not_in_the_statement():
    some = run()
    assert "3 releases were made and 2 are in the statement" in complaints(
        stated(some, releases=some.model.privacy.releases[:2])
    )


def test_a_release_that_is_not_in_the_ledger():
    some = run()
    some.releases.append(some.releases[-1])
    assert "4 releases were made and 3 were paid for" in complaints(some)


def test_noise_smaller_than_was_paid_for():
    some = run()
    record = some.releases[1].record
    some.releases[1] = replace(some.releases[1], record=replace(record, variance=record.variance // 2))
    found = complaints(some)
    assert "the ledger adds up to less" in found
    assert "the releases add up to" in found


def test_a_statement_that_promises_too_much():
    some = run()
    epsilon = some.model.privacy.epsilon
    assert "is not epsilon" in complaints(stated(run(), epsilon=epsilon * (1 - 1e-6)))
    assert "add up to" in complaints(stated(run(), mu=some.model.privacy.mu / 2))
    assert "epsilon 2.0, more than was asked for, 1.5" in complaints(run(), asked=1.5)
    assert "delta 1e-05, more than was asked for, 1e-06" in complaints(run(), delta=1e-6)
    assert "there is no statement" in complaints(type("Run", (), {"model": replace(some.model, privacy=None)}))


def test_a_seeded_run_is_no_private_one():
    assert "not private" in complaints(record_run(dpals.ItemMean(2.0), RATINGS, insecure_seed=1))


def test_a_try_that_costs_more_than_the_search_says():
    search = record_run(SEARCH, RATINGS)
    while not search.releases:  # a search may make no try
        search = record_run(SEARCH, RATINGS)
    selection = search.model.privacy.selection
    assert "a try costs mu" in complaints(stated(search, selection=replace(selection, mu=selection.mu * 0.99)))


def test_tries_that_cost_more_than_the_search_promises():
    search = record_run(SEARCH, RATINGS)
    selection = search.model.privacy.selection
    found = complaints(stated(search, selection=replace(selection, mu=selection.mu * 1.01)))
    assert "make epsilon 2.02" in found


def test_numbers_that_are_printed_rounded_down(monkeypatch):
    some = stated(run(), epsilon=1.23456789, mu=0.4)
    assert "prints" not in complaints(some)
    monkeypatch.setattr(Statement, "__str__", lambda _: "epsilon = 1.2345, delta = 1e-05, mu = 0.4")
    found = complaints(some)
    assert "prints epsilon as 1.2345, and it is 1.23456789" in found
    assert "prints delta" not in found
    monkeypatch.setattr(Statement, "__str__", lambda _: "about 1")
    assert "prints mu as None" in complaints(some)


@pytest.mark.parametrize("method", [dpals.ItemMean(2.0, 1e-5), dpals.UserMean(2.0, 1e-5)])
def test_runs_in_one_ledger_add_up(method):
    assert list(composition_errors(method, RATINGS)) == []


@pytest.mark.parametrize(
    ("forget", "found"),
    [
        ({"dataset": "another"}, "is not recorded under that name"),
        ({"dataset_mu": 0.3}, "less than all runs on the data add up to"),
        ({"dataset_epsilon": 2.0}, "a smaller epsilon than that of all runs"),
        ({"dataset_mu": 9.0}, "a run without a ledger says that it knows all others"),
        ({"dataset_seeded": False}, "does not say whether runs on the data were seeded"),
    ],
)
def test_a_statement_that_forgets_other_runs(monkeypatch, forget, found):
    honest = Statement.of
    monkeypatch.setattr(Statement, "of", lambda *some, **named: replace(honest(*some, **named), **forget))
    assert found in "; ".join(composition_errors(dpals.ItemMean(2.0, 1e-5), RATINGS))


def test_conversions_on_the_wrong_side_are_noticed(monkeypatch):
    assert list(untrue_conversions()) == []
    exact = accounting.delta
    monkeypatch.setattr(accounting, "delta", lambda mu, epsilon: exact(mu, epsilon) * (1 - 1e-9))
    assert "delta(1.0, 1.0) is below the true value" in list(untrue_conversions())
    monkeypatch.setattr(accounting, "attack_power", lambda mu, rate: norm.cdf(norm.ppf(rate) + 0.999 * mu))
    monkeypatch.setattr(accounting, "compose", max)
    found = list(untrue_conversions())
    assert "attack_power(1.0, 0.01) is below the true value" in found
    assert "compose([3, 4, 12]) is below 13" in found


def test_the_true_delta_is_that_of_the_textbook():
    from dpals.audit.accounting_checks import exact_delta

    textbook = norm.cdf(0.5 - 1.0) - 2.718281828459045 * norm.cdf(-0.5 - 1.0)
    assert float(exact_delta(1.0, 1.0)) == pytest.approx(textbook, rel=1e-12)
