"""The ledger under the worst luck and the worst readers: budgets nearly spent, two at once, files that were changed."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from dpals.audit.drills import is_refused
from dpals.ledger import ledger as ledgers
from dpals.ledger.hash_chain import GENESIS, LedgerDamaged, link
from dpals.ledger.ledger import Ledger
from dpals.release.accounting import Budget, PrivacyBudgetExceeded

_BUDGET = Budget(epsilon=1.0, delta=1e-5)
_MOST = 3 * _BUDGET.cost // 5  # of a budget: twice this is too much
_TURNS = 3
_NAME = "Drill «Ångström»"


def ledger_breaches() -> Iterator[str]:
    """Ways in which a spend is forgotten, or allowed where it is too much."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        if not is_refused(PrivacyBudgetExceeded, lambda: _spend_twice(folder / "small.db")):
            yield "the ledger lets a data set's budget be exceeded"
        if not is_refused(PrivacyBudgetExceeded, lambda: _spend_after_lowering(folder / "lowered.db")):
            yield "a budget that was lowered still stands"
        paths = [folder / f"turn {turn}.db" for turn in range(_TURNS)]
        if not _locks(folder / "shared.db") or any(_overspent_meanwhile(*pair) for pair in enumerate(paths)):
            yield "two processes may spend the same budget at once"
        for what, drill in _RUNS.items():
            if not drill():
                yield what
        if _head_of_a_spend(folder / "once.db") == _head_of_a_spend(folder / "again.db"):
            yield "a ledger that was cut back and written on within a second has the head of before"
        for number, (what, change) in enumerate(_CHANGES.items()):
            if not is_refused(LedgerDamaged, lambda: _open_changed(folder / f"{number}.db", change)):  # noqa: B023
                yield f"a ledger {what} is trusted"
        with Ledger(folder / "ledger.db")._transaction() as (connection, _):
            if connection.execute("PRAGMA synchronous").fetchone() != (3,):
                yield "a spend may be lost when the power fails"


def _spend_twice(path: Path) -> None:
    Ledger(path).declare(_NAME, _BUDGET.epsilon, _BUDGET.delta)
    for purpose in ("first", "second"):
        Ledger(path).spend(_NAME, purpose, _MOST)


def _spend_after_lowering(path: Path) -> None:
    ledger = Ledger(path)
    for epsilon in (_BUDGET.epsilon, _BUDGET.epsilon / 10):
        ledger.declare(_NAME, epsilon, _BUDGET.delta)
    ledger.spend(_NAME, "drill", _MOST)


def _second_run_is_refused() -> bool:
    ledger = Ledger()
    ledger.declare(_NAME, _BUDGET.epsilon, _BUDGET.delta)
    ledger.reserve(_NAME, "first", _BUDGET, "first")
    return is_refused(PrivacyBudgetExceeded, lambda: ledger.reserve(_NAME, "second", _BUDGET, "second"))


def _broken_off_run_counts() -> bool:
    """As a whole, until it is ended, and what it spent for good."""
    ledger = Ledger()
    ledger.reserve(_NAME, "drill", _BUDGET, "run")
    ledger.spend(_NAME, "drill", 1000, run="run")
    before = ledger.spent(_NAME)
    ledger.end("run")
    return (before, ledger.spent(_NAME)) == (_BUDGET.cost, 1000)


def _adaptive_run_counts() -> bool:
    ledger = Ledger()
    ledger.reserve(_NAME, "drill", _BUDGET, "run", adaptive=True)
    ledger.spend(_NAME, "drill", 1000, run="run")
    ledger.end("run")
    return ledger.spent(_NAME) >= _BUDGET.cost


def _search_counts() -> bool:
    ledger = Ledger()
    ledger.declare(_NAME, _BUDGET.epsilon, _BUDGET.delta)
    ledger.enter_search(_NAME, "drill", 0.6 * _BUDGET.epsilon, 0.5 * _BUDGET.delta)
    epsilon, delta = ledger.total(_NAME).at(_BUDGET.delta)
    return (
        epsilon >= 0.6 * _BUDGET.epsilon
        and delta >= 0.5 * _BUDGET.delta
        and is_refused(PrivacyBudgetExceeded, lambda: ledger.spend(_NAME, "drill", _MOST))
        and is_refused(PrivacyBudgetExceeded, lambda: ledger.enter_search(_NAME, "drill", 0.5, 0.1 * _BUDGET.delta))
    )


_RUNS: dict[str, Callable[[], bool]] = {
    "two runs may begin where there is room for one": _second_run_is_refused,
    "what a run that was broken off may have spent is not counted": _broken_off_run_counts,
    "costs that depend on releases are counted in part": _adaptive_run_counts,
    "searches are not counted against a budget": _search_counts,
}


def _head_of_a_spend(path: Path) -> str:
    with patch("dpals.ledger.entries.now", return_value="2026-01-01T00:00:00+00:00"):
        Ledger(path).spend(_NAME, "drill", 1000)
    return Ledger(path).verify()


def _locks(path: Path) -> bool:
    """Whether nobody else can write between a look at what is left and the spend."""
    locked = []
    real_check = ledgers._check_allowance

    def check(*arguments: object) -> None:
        connection = sqlite3.connect(path, isolation_level=None, timeout=0)
        try:
            locked.append(is_refused(sqlite3.OperationalError, lambda: connection.execute("BEGIN IMMEDIATE")))
        finally:
            connection.close()
        real_check(*arguments)  # type: ignore[arg-type]

    with patch.object(ledgers, "_check_allowance", check):
        Ledger(path).spend(_NAME, "drill", 1000)
    return locked == [True]


def _overspent_meanwhile(turn: int, path: Path) -> bool:
    """Whether two spends exceed the budget if one comes right before a certain transaction of the other."""
    ledger, other = Ledger(path), Ledger(path)
    ledger.declare(_NAME, _BUDGET.epsilon, _BUDGET.delta)
    real_transaction, turns = Ledger._transaction, count()

    def interrupted(some: Ledger) -> Any:
        if some is ledger and next(turns) == turn:
            other.spend(_NAME, "meanwhile", _MOST)
        return real_transaction(some)

    with patch.object(Ledger, "_transaction", interrupted), suppress(PrivacyBudgetExceeded):
        ledger.spend(_NAME, "drill", _MOST)
    return other.spent(_NAME) > _BUDGET.cost


def _open_changed(path: Path, change: Callable[[sqlite3.Connection], object]) -> None:
    """Change a ledger with two spends behind the back of the library, and open it again."""
    for purpose in ("first", "second"):
        Ledger(path).spend(_NAME, purpose, 1000)
    connection = sqlite3.connect(path, isolation_level=None)
    change(connection)
    connection.close()
    Ledger(path)


def _without_triggers(work: Callable[[sqlite3.Connection], None]) -> Callable[[sqlite3.Connection], None]:
    """What keeps the ledger append-only is taken away for a moment, and put back."""

    def change(connection: sqlite3.Connection) -> None:
        dropped = _drop_triggers(connection)
        work(connection)
        for sql in dropped:
            connection.execute(sql)

    return change


def _cheaper(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE entries SET content = replace(content, '1000', '1') WHERE number = 1")


def _cheaper_with_head(connection: sqlite3.Connection) -> None:
    """The last link of the chain is left as it was, and the head goes with the new content."""
    _cheaper(connection)
    last = GENESIS
    for number, content in connection.execute("SELECT number, content FROM entries ORDER BY number").fetchall():
        last = link(last, number, content)
    connection.execute("UPDATE head SET hash = ?", (last,))


def _shorter(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM entries WHERE number = 1")


def _drop_triggers(connection: sqlite3.Connection) -> list[str]:
    """Take away what keeps the ledger append-only; the statements that put it back."""
    schema = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid"
    triggers = connection.execute(schema).fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    return [sql for _, sql in triggers]


_CHANGES: dict[str, Callable[[sqlite3.Connection], object]] = {
    "in which a cost was changed": _without_triggers(_cheaper),
    "in which a cost and the head were changed": _without_triggers(_cheaper_with_head),
    "without its last entry": _without_triggers(_shorter),
    "without what keeps it append-only": _drop_triggers,
}
