"""The ledger under the worst luck and the worst readers: budgets nearly spent, two at once, files that were changed."""

import sqlite3
from contextlib import closing, suppress
from itertools import count

import pytest

from dpals.ledger import ledger as ledger_module
from dpals.ledger.hash_chain import GENESIS, LedgerDamaged, link
from dpals.ledger.ledger import Ledger
from dpals.release.accounting import Budget, PrivacyBudgetExceeded

BUDGET = Budget(epsilon=1.0, delta=1e-5)
MOST = 3 * BUDGET.cost // 5  # of a budget: twice this is too much
NAME = "Ratings «Ångström»"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def declared(path):
    ledger = Ledger(path)
    ledger.declare(NAME, BUDGET.epsilon, BUDGET.delta)
    return ledger


def test_the_budget_of_a_data_set_is_not_exceeded(declared, path):
    declared.spend(NAME, "first", MOST)
    with pytest.raises(PrivacyBudgetExceeded):
        Ledger(path).spend(NAME, "second", MOST)


def test_a_budget_that_was_lowered_no_longer_stands(declared):
    declared.declare(NAME, BUDGET.epsilon / 10, BUDGET.delta)
    with pytest.raises(PrivacyBudgetExceeded):
        declared.spend(NAME, "too much", MOST)


def test_two_runs_do_not_begin_where_the_budget_is_enough_for_one(declared):
    declared.reserve(NAME, "first", BUDGET, "first")
    with pytest.raises(PrivacyBudgetExceeded):
        declared.reserve(NAME, "second", BUDGET, "second")


def test_an_interrupted_run_counts_as_a_whole_until_it_is_ended():
    ledger = Ledger()
    ledger.reserve(NAME, "training", BUDGET, "run")
    ledger.spend(NAME, "counts", 1000, run="run")
    assert ledger.spent(NAME) == BUDGET.cost
    ledger.end("run")
    assert ledger.spent(NAME) == 1000


def test_costs_that_depend_on_releases_count_as_a_whole():
    ledger = Ledger()
    ledger.reserve(NAME, "training", BUDGET, "run", adaptive=True)
    ledger.spend(NAME, "counts", 1000, run="run")
    ledger.end("run")
    assert ledger.spent(NAME) >= BUDGET.cost


def test_searches_count_against_the_budget(declared):
    declared.enter_search(NAME, "search", 0.6 * BUDGET.epsilon, 0.5 * BUDGET.delta)
    epsilon, delta = declared.total(NAME).at(BUDGET.delta)
    assert epsilon >= 0.6 * BUDGET.epsilon
    assert delta >= 0.5 * BUDGET.delta
    with pytest.raises(PrivacyBudgetExceeded):
        declared.spend(NAME, "too much", MOST)
    with pytest.raises(PrivacyBudgetExceeded):
        declared.enter_search(NAME, "another", 0.5, 0.1 * BUDGET.delta)


def test_nobody_else_can_write_between_a_look_at_the_balance_and_the_spend(path, monkeypatch):
    locked, check_allowance = [], ledger_module._check_allowance

    def check(*arguments):
        with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                locked.append(True)
        check_allowance(*arguments)

    monkeypatch.setattr(ledger_module, "_check_allowance", check)
    Ledger(path).spend(NAME, "counts", 1000)
    assert locked == [True]


@pytest.mark.parametrize("turn", range(3))
def test_a_spend_right_before_any_transaction_of_another_is_counted(declared, path, monkeypatch, turn):
    other, transaction, turns = Ledger(path), Ledger._transaction, count()

    def interrupted(ledger):
        if ledger is declared and next(turns) == turn:
            other.spend(NAME, "meanwhile", MOST)
        return transaction(ledger)

    monkeypatch.setattr(Ledger, "_transaction", interrupted)
    with suppress(PrivacyBudgetExceeded):
        declared.spend(NAME, "counts", MOST)
    assert other.spent(NAME) <= BUDGET.cost


def test_a_ledger_that_is_cut_back_and_written_on_within_a_second_has_another_head(tmp_path, monkeypatch):
    monkeypatch.setattr("dpals.ledger.entries.now", lambda: "2026-01-01T00:00:00+00:00")
    heads = set()
    for name in ("once.db", "again.db"):
        Ledger(tmp_path / name).spend(NAME, "counts", 1000)
        heads.add(Ledger(tmp_path / name).verify())
    assert len(heads) == 2


def test_a_spend_is_on_disk_before_it_is_reported(path):
    with Ledger(path)._transaction() as (connection, _):
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)


def drop_triggers(connection):
    """Take away what keeps the ledger append-only; the statements that put it back."""
    schema = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid"
    triggers = connection.execute(schema).fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    return [sql for _, sql in triggers]


def lower_a_cost(connection):
    connection.execute("UPDATE entries SET content = replace(content, '1000', '1') WHERE number = 1")


def lower_a_cost_and_mend_the_head(connection):
    """The last link of the chain stays as it was, and the head goes with the new content."""
    lower_a_cost(connection)
    last = GENESIS
    for number, content in connection.execute("SELECT number, content FROM entries ORDER BY number").fetchall():
        last = link(last, number, content)
    connection.execute("UPDATE head SET hash = ?", (last,))


def remove_the_last_entry(connection):
    connection.execute("DELETE FROM entries WHERE number = 1")


@pytest.mark.parametrize("change", [lower_a_cost, lower_a_cost_and_mend_the_head, remove_the_last_entry, None])
def test_a_ledger_that_was_changed_behind_our_back_is_not_trusted(path, change):
    """None: nothing but the loss of the triggers that keep it append-only."""
    for purpose in ("first", "second"):
        Ledger(path).spend(NAME, purpose, 1000)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        dropped = drop_triggers(connection)
        if change is not None:
            change(connection)
            for sql in dropped:
                connection.execute(sql)
    with pytest.raises(LedgerDamaged):
        Ledger(path)
