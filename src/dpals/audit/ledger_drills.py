"""The ledger and resumed runs under the worst luck: crashes, lost numbers, copied checkpoints, changed files."""

import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from dpals.audit.drills import is_refused
from dpals.checkpoint import Checkpoint
from dpals.files import draft
from dpals.release.accounting import Budget, PrivacyBudgetExceeded
from dpals.release.contribution import Offer, Pattern, Query
from dpals.release.ledger import _GENESIS, Ledger, LedgerDamaged, _chain
from dpals.release.mechanism import Door, Release

_BUDGET = Budget(epsilon=1.0, delta=1e-5)
_DATASET = "drill"


def ledger_breaches() -> Iterator[str]:
    """Ways in which more is published than is paid for, or a spend is forgotten."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        if not is_refused(PrivacyBudgetExceeded, lambda: _spend_twice(folder / "small.db")):
            yield "the ledger lets a data set's budget be spent twice"
        changes = (partial(_open_changed, folder / "changed.db", with_head) for with_head in (False, True))
        if not all(is_refused(LedgerDamaged, change) for change in changes):
            yield "a ledger in which a cost was changed is trusted"
        with Ledger(folder / "ledger.db")._transaction() as (connection, _):
            if connection.execute("PRAGMA synchronous").fetchone() != (3,):
                yield "a spend may be lost when the power fails"
        if _draft_stays(folder / "checkpoint"):
            yield "numbers that were never published stay in the checkpoint after a crash"
    ledger, lost = Ledger(), _Memory()
    _release(ledger, _Memory())
    if ledger.published(f"{_Memory.run}/1") is None:
        yield "numbers leave the door before the ledger knows them"
    if not is_refused(RuntimeError, lambda: _release(ledger, lost)) or lost.given:
        yield "numbers that were published and lost are drawn again for free"
    if not is_refused(RuntimeError, lambda: _publish_twice(Ledger())):
        yield "two tables are published under one spend"
    if not is_refused(RuntimeError, lambda: _pay_with_old_receipt(Ledger())):
        yield "a receipt stands for a dearer release than it was paid for"
    if not is_refused(PrivacyBudgetExceeded, lambda: _overspend_with_receipts(Ledger())):
        yield "a run that can be resumed may exceed the data set's budget"


class _Memory:
    """A checkpoint that counts the tables that it is given, and loses them."""

    run = "drill"

    def __init__(self) -> None:
        self.given = 0

    def recall(self, number: int, record: Release) -> NDArray[np.int64] | None:  # noqa: ARG002
        return None

    def keep(self, number: int, record: Release, table: NDArray[np.int64]) -> None:  # noqa: ARG002
        self.given += 1

    def drop(self, number: int) -> None:
        pass


def _release(ledger: Ledger, keeper: _Memory) -> None:
    offer = Offer(Pattern.one_item(2), np.ones(2))
    Door(_BUDGET, ledger, _DATASET, keeper=keeper).release(Query("drill", 1, 1.0), offer, _BUDGET.cost)


def _spend_twice(path: Path) -> None:
    ledger = Ledger(path)
    ledger.declare(_DATASET, _BUDGET.epsilon, _BUDGET.delta)
    for purpose in ("first", "second"):
        Ledger(path).spend(_DATASET, purpose, _BUDGET.cost)


def _open_changed(path: Path, with_head: bool) -> None:
    """Change a cost, and perhaps the head to go with it, with everything else as it was; then open the ledger again."""
    path.unlink(missing_ok=True)
    Ledger(path).spend(_DATASET, "drill", 1000)
    connection = sqlite3.connect(path, isolation_level=None)
    schema = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid"
    triggers = connection.execute(schema).fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("UPDATE entries SET content = replace(content, '1000', '1')")
    if with_head:
        (content,) = connection.execute("SELECT content FROM entries").fetchone()
        connection.execute("UPDATE head SET hash = ?", (_chain(_GENESIS, 0, content),))
    for _, sql in triggers:
        connection.execute(sql)
    connection.close()
    Ledger(path)


def _publish_twice(ledger: Ledger) -> None:
    ledger.spend(_DATASET, "drill", 1000, receipt="drill/1")
    for digest in ("one table", "another table"):
        ledger.publish(_DATASET, "drill/1", digest)


def _pay_with_old_receipt(ledger: Ledger) -> None:
    for cost in (1, 1000):
        ledger.spend(_DATASET, "drill", cost, receipt="drill/1")


def _overspend_with_receipts(ledger: Ledger) -> None:
    ledger.declare(_DATASET, _BUDGET.epsilon, _BUDGET.delta)
    for number in (1, 2):
        ledger.spend(_DATASET, "drill", _BUDGET.cost, receipt=f"drill/{number}")


def _draft_stays(folder: Path) -> bool:
    """Whether numbers that a killed process left behind are still there when the checkpoint is opened again."""
    folder.mkdir()
    with draft(folder / "release-0001.safetensors") as place:
        place.write_bytes(b"numbers")
    place.write_bytes(b"numbers")
    with Checkpoint(folder, {"method": "drill"}):
        return place.exists()
