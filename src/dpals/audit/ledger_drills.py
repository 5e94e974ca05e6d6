"""The ledger and resumed runs under the worst luck: crashes, lost numbers, copied checkpoints, changed files."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from dpals.audit.drills import is_refused
from dpals.checkpoint import Checkpoint
from dpals.files import draft
from dpals.release.accounting import Budget, PrivacyBudgetExceeded
from dpals.release.contribution import Offer, Pattern, Query
from dpals.release.ledger import Ledger, LedgerDamaged
from dpals.release.mechanism import Door, Release

_BUDGET = Budget(epsilon=1.0, delta=1e-5)
_DATASET = "drill"


def ledger_breaches() -> Iterator[str]:
    """Ways in which more is published than is paid for, or a spend is forgotten."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        if not is_refused(PrivacyBudgetExceeded, lambda: _spend_twice(folder / "small.db")):
            yield "the ledger lets a data set's budget be spent twice"
        if not is_refused(LedgerDamaged, lambda: _open_changed(folder / "changed.db")):
            yield "a ledger in which a cost was changed is trusted"
        with Ledger(folder / "ledger.db")._transaction() as (connection, _):
            if connection.execute("PRAGMA synchronous").fetchone() != (3,):
                yield "a spend may be lost when the power fails"
        if _draft_stays(folder / "checkpoint"):
            yield "numbers that were never published stay in the checkpoint after a crash"
    ledger = Ledger()
    _release(ledger)
    if ledger.published(f"{_Memory.run}/1") is None:
        yield "numbers leave the door before the ledger knows them"
    if not is_refused(RuntimeError, lambda: _release(ledger)):
        yield "numbers that were published and lost are drawn again for free"
    if not is_refused(RuntimeError, lambda: _publish_twice(Ledger())):
        yield "two tables are published under one spend"


class _Memory:
    """Keeps released tables, as a checkpoint does."""

    run = "drill"

    def __init__(self) -> None:
        self.tables: dict[int, NDArray[np.int64]] = {}

    def recall(self, number: int, record: Release) -> NDArray[np.int64] | None:  # noqa: ARG002
        return self.tables.get(number)

    def keep(self, number: int, record: Release, table: NDArray[np.int64]) -> None:  # noqa: ARG002
        self.tables[number] = table.copy()

    def drop(self, number: int) -> None:
        self.tables.pop(number, None)


def _release(ledger: Ledger) -> None:
    """A release of a run whose checkpoint is empty, as after a loss."""
    offer = Offer(Pattern.one_item(2), np.ones(2))
    Door(_BUDGET, ledger, _DATASET, keeper=_Memory()).release(Query("drill", 1, 1.0), offer, _BUDGET.cost)


def _spend_twice(path: Path) -> None:
    ledger = Ledger(path)
    ledger.declare(_DATASET, _BUDGET.epsilon, _BUDGET.delta)
    for purpose in ("first", "second"):
        Ledger(path).spend(_DATASET, purpose, _BUDGET.cost)


def _open_changed(path: Path) -> None:
    """Change a cost, with everything else as it was, and open the ledger again."""
    Ledger(path).spend(_DATASET, "drill", 1000)
    connection = sqlite3.connect(path, isolation_level=None)
    schema = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid"
    triggers = connection.execute(schema).fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("UPDATE entries SET content = replace(content, '1000', '1')")
    for _, sql in triggers:
        connection.execute(sql)
    connection.close()
    Ledger(path)


def _publish_twice(ledger: Ledger) -> None:
    ledger.spend(_DATASET, "drill", 1000, receipt="drill/1")
    for digest in ("one table", "another table"):
        ledger.publish(_DATASET, "drill/1", digest)


def _draft_stays(folder: Path) -> bool:
    """Whether numbers that a killed process left behind are still there when the checkpoint is opened again."""
    folder.mkdir()
    with draft(folder / "release-0001.safetensors") as place:
        place.write_bytes(b"numbers")
    place.write_bytes(b"numbers")
    with Checkpoint(folder, {"method": "drill"}):
        return place.exists()
