"""Releases, ledger and statement, told apart where they disagree."""

from dataclasses import replace

import pytest

import dpals
from dpals.audit.accounting_checks import accounting_errors, adaptive_cost_errors, composition_errors
from dpals.audit.recorded_run import record_run
from dpals.audit.simulated_data import odd_users
from dpals.release.contribution import Query
from dpals.statement.record import Statement

RATINGS = odd_users(12, 40, implicit=False).ratings()
SEARCH = dpals.PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, 2.0, tries=3)


def run(method=None):
    return record_run(method or dpals.ItemMean(2.0, 1e-5), RATINGS)


def stated(run, **changes):
    run.estimator.model_ = replace(run.model, privacy=replace(run.model.privacy, **changes))
    return run


@pytest.mark.parametrize("method", [dpals.ItemMean(2.0, 1e-5), dpals.UserMean(2.0, 1e-5), dpals.DPSGD(2.0), SEARCH])
def test_sound_accounts_agree(method):
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


class SpendsWhatItLikes(dpals.GlobalMean):
    """The cost of its second release tells something about the first."""

    def _fit(self, ratings, mechanism):
        first = mechanism.release(Query("first", 1, 1.0), (), mechanism.budget.cost // 4)
        mechanism.release(Query("second", 1, 1.0), (), mechanism.budget.cost // (2 + round(1e6 * first[0, 0]) % 7))
        return dpals.UserMean()._fit(ratings, mechanism)


def test_costs_that_depend_on_releases_must_be_promised_as_a_whole():
    def runs(method):
        return [record_run(method, RATINGS, insecure_seed=seed) for seed in range(6)]

    assert list(adaptive_cost_errors(*runs(dpals.ItemMean(2.0)))) == []
    found = "; ".join(adaptive_cost_errors(*runs(SpendsWhatItLikes(2.0))))
    assert "costs differ between runs, and the statement of one says mu" in found

    class PromisesTheWhole(SpendsWhatItLikes):
        adaptive_costs = True

    assert list(adaptive_cost_errors(*runs(PromisesTheWhole(2.0)))) == []
