"""The durable record of what was spent on which data set.

An append-only SQLite table whose rows are chained by hashes: each row's hash covers the row and the hash
before it, and a separate head holds the number of rows and the last hash. A row is either the declaration of
a data set's budget or a spend.

Formal guarantee: `spend` returns only after the spend is on disk, and raises `PrivacyBudgetExceeded` without
writing where the data set's budget would be exceeded. Check and write are one exclusive transaction, so
processes that spend at once cannot exceed the budget together. A ledger in which a row was changed, removed,
inserted or reordered is refused by every call. Someone who writes hashes and head anew can pass that check, so
each privacy statement prints the head of its time, and `verify` takes it to compare with.

**Paid once, released once.** A run that may be resumed gives each of its releases a receipt. Paying twice under one
receipt writes one spend; publishing twice under one receipt is allowed for the same numbers only, whose digest is kept.
So a run that was broken off between paying and publishing goes on without paying again, with fresh noise, because
the numbers of before reached nobody; and no spend ever stands for two different published tables.
"""

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dpals.release.accounting import PrivacyBudgetExceeded, cost_of, mu_of
from dpals.release.accounting import mu as largest_mu

FORMAT = 1
SEEDED = " (seeded: not private)"
"""At the end of the purpose of a spend whose noise was made from a known seed."""

_SCHEMA = """\
CREATE TABLE entries (number INTEGER PRIMARY KEY, content TEXT NOT NULL, hash TEXT NOT NULL) STRICT;
CREATE TABLE head (count INTEGER NOT NULL, hash TEXT NOT NULL) STRICT;
CREATE TRIGGER no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'ledgers are append-only'); END;
CREATE TRIGGER no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'ledgers are append-only'); END;
""".splitlines()
_OPEN: dict[str, Any] = {"uri": True, "isolation_level": None, "timeout": 10}
_GENESIS = hashlib.sha256(b"dpals ledger 1").hexdigest()


class LedgerDamaged(RuntimeError):  # noqa: N818, a public name
    """The ledger is not what dpals wrote; nothing more may be spent on its word."""


@dataclass(frozen=True)
class Entry:
    """One row of the ledger.

    ``kind`` is ``"budget"`` (`cost` is the most that may be spent on the data set from now on, in all),
    ``"spend"`` (`cost` was spent) or ``"publication"`` (what was paid for under this receipt was published; the
    purpose is the digest of the numbers). `cost` is in units of 2^-64 of squared mu. `receipt` is the name of the run
    and the number of the release in it, for runs that can be resumed.
    """

    kind: str
    dataset: str
    purpose: str
    cost: int
    time: str
    receipt: str = ""


class Ledger:
    """Budgets and spends, on disk or, by default, in memory.

    Examples
    --------
    >>> ledger = Ledger()
    >>> ledger.declare("ratings of 2026", epsilon=1.0, delta=1e-6)
    >>> ledger.spend("ratings of 2026", "item counts", cost=10**15)
    >>> [entry.purpose for entry in ledger.entries()]
    ['epsilon 1.0, delta 1e-06', 'item counts']
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path).absolute()
        self._lock = threading.Lock()
        self._memory: sqlite3.Connection | None = None
        if self.path is None:
            self._memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            _create(self._memory)
        elif not self.path.exists():
            _create_file(self.path)
        self.entries()

    def declare(self, dataset: str, epsilon: float, delta: float) -> None:
        """Set the most that may ever be spent on a data set. The last declaration counts."""
        allowance = cost_of(largest_mu(epsilon, delta))
        with self._transaction() as (connection, _):
            _append(connection, Entry("budget", dataset, f"epsilon {epsilon}, delta {delta}", allowance, _now()))

    def check(self, dataset: str, purpose: str, cost: int, run: str = "") -> None:
        """Raise `PrivacyBudgetExceeded` where `cost` would be too much, for a run that has not begun to pay.

        Nothing is written or reserved: `spend` is what keeps to the budget, also where several runs go on at once.
        """
        entries = self.entries()
        if not any(entry.kind == "spend" and _is_of(entry.receipt, run) for entry in entries):
            _check_allowance(entries, dataset, purpose, cost)

    def spend(self, dataset: str, purpose: str, cost: int, receipt: str = "") -> None:
        """Record a spend, durably, or refuse it. A data set without a declared budget has no limit.

        ==================================  =====================================================
        receipt that was used before        nothing is written: it was paid
        the same for another spend          RuntimeError
        ==================================  =====================================================
        """
        if type(cost) is not int or cost < 0:
            raise ValueError(f"a cost is an integer and not negative, got {cost!r}")
        with self._transaction() as (connection, entries):
            before = [entry for entry in entries if receipt and entry.kind == "spend" and entry.receipt == receipt]
            if before:
                if (before[0].dataset, before[0].purpose, before[0].cost) != (dataset, purpose, cost):
                    raise RuntimeError(f"the receipt {receipt} is for {before[0].purpose!r}, not for {purpose!r}")
                return
            _check_allowance(entries, dataset, purpose, cost)
            _append(connection, Entry("spend", dataset, purpose, cost, _now(), receipt))

    def publish(self, dataset: str, receipt: str, digest: str) -> None:
        """Record, durably, that numbers with this digest are published under a receipt.

        ==================================  ===========================================
        the same digest again               nothing is written
        another digest                      RuntimeError: the first one is published
        receipt that nothing was paid for   RuntimeError
        ==================================  ===========================================
        """
        with self._transaction() as (connection, entries):
            if not any(entry.kind == "spend" and entry.receipt == receipt for entry in entries):
                raise RuntimeError(f"nothing was paid for under the receipt {receipt}")
            earlier = _published(entries, receipt)
            if earlier is None:
                _append(connection, Entry("publication", dataset, digest, 0, _now(), receipt))
            elif earlier != digest:
                raise RuntimeError(
                    f"other numbers were published under the receipt {receipt} before: the checkpoint was changed or "
                    "copied. Start over (--fresh, or another folder)"
                )

    def published(self, receipt: str) -> str | None:
        """Digest of the numbers that were published under a receipt, None where none were."""
        return _published(self.entries(), receipt)

    def spent(self, dataset: str) -> int:
        """Cost of everything spent on a data set so far."""
        return _totals(self.entries(), dataset)[0]

    def allowance(self, dataset: str) -> int | None:
        """The declared budget of a data set as a cost, None where there is none."""
        return _totals(self.entries(), dataset)[1]

    def summary(self, dataset: str) -> tuple[int, bool, str]:
        """What was spent on a data set so far, whether any of it was seeded, and the head of the ledger by then."""
        with self._transaction() as (connection, entries):
            seeded = any(entry.dataset == dataset and entry.purpose.endswith(SEEDED) for entry in entries)
            head: str = connection.execute("SELECT hash FROM head").fetchone()[0]
            return _totals(entries, dataset)[0], seeded, head

    def entries(self) -> list[Entry]:
        """All rows in order, after checking the chain; `LedgerDamaged` where it does not hold."""
        with self._transaction() as (_, entries):
            return entries

    def verify(self, head: str | None = None) -> str:
        """Check the whole ledger and return its head; `LedgerDamaged` where something is wrong.

        Parameters
        ----------
        head
            The head that a privacy statement printed: it must occur in the chain. This finds out a ledger
            that was cut back or rewritten as a whole, which the chain alone cannot.
        """
        with self._transaction() as (connection, _):
            (sound,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if sound != "ok":
                raise LedgerDamaged(str(sound))
            if (
                head is not None
                and connection.execute("SELECT 1 FROM entries WHERE hash = ?", (head,)).fetchone() is None
            ):
                raise LedgerDamaged(f"the head {head} never was in it: entries were removed or rewritten")
            last: str = connection.execute("SELECT hash FROM head").fetchone()[0]
            return last

    @property
    def _name(self) -> str:
        return f"the ledger {self.path}" if self.path else "the ledger in memory"

    @contextmanager
    def _transaction(self) -> Iterator[tuple[sqlite3.Connection, list[Entry]]]:
        """An exclusive transaction on a checked ledger, durable when it is left without an exception."""
        with self._lock:
            try:
                connection = self._memory or sqlite3.connect(f"file:{quote(str(self.path))}?mode=rw", **_OPEN)
                try:
                    connection.execute("PRAGMA synchronous = EXTRA")
                    connection.execute("PRAGMA fullfsync = ON")
                    connection.execute("BEGIN IMMEDIATE")
                    yield connection, _read(connection)
                    connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    if connection is not self._memory:
                        connection.close()
            except sqlite3.OperationalError as problem:
                busy = getattr(problem, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
                advice = "another process holds it. Try again when that is done" if busy else str(problem)
                raise OSError(f"{self._name} cannot be used: {advice}") from problem
            except (sqlite3.DatabaseError, LedgerDamaged) as problem:
                raise LedgerDamaged(f"{self._name} cannot be trusted: {problem}") from problem


def _create(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("INSERT INTO head VALUES (0, ?)", (_GENESIS,))


def _create_file(path: Path) -> None:
    """A new ledger appears under its name complete or not at all, so an empty file is always damage."""
    draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}.new")
    try:
        connection = sqlite3.connect(draft, isolation_level=None)
        _create(connection)
        connection.close()
        with suppress(FileExistsError):  # another process was faster
            os.link(draft, path)
    except sqlite3.OperationalError as problem:
        raise OSError(f"the ledger {path} cannot be created: {problem}") from problem
    finally:
        draft.unlink(missing_ok=True)


def _append(connection: sqlite3.Connection, entry: Entry) -> None:
    count, previous = connection.execute("SELECT count, hash FROM head").fetchone()
    content = json.dumps(asdict(entry), sort_keys=True)
    chained = _chain(previous, count, content)
    connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (count, content, chained))
    connection.execute("UPDATE head SET count = ?, hash = ?", (count + 1, chained))


def _read(connection: sqlite3.Connection) -> list[Entry]:
    """All entries, after walking the chain from its beginning to the head."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != FORMAT:
        raise LedgerDamaged(f"format {version} is not the format {FORMAT} of this version of dpals")
    schema = connection.execute("SELECT sql FROM sqlite_schema ORDER BY rowid").fetchall()
    if [sql for (sql,) in schema] != [statement.rstrip(";") for statement in _SCHEMA]:
        raise LedgerDamaged("its tables or the triggers that keep it append-only were changed")
    entries, last = [], _GENESIS
    rows = connection.execute("SELECT number, content, hash FROM entries ORDER BY number").fetchall()
    for expected, (number, content, stored) in enumerate(rows):
        last = _chain(last, expected, content)
        if number != expected or stored != last:
            raise LedgerDamaged(f"the chain breaks at entry {expected}: the ledger was changed or damaged")
        entries.append(Entry(**json.loads(content)))
    if connection.execute("SELECT count, hash FROM head").fetchall() != [(len(entries), last)]:
        raise LedgerDamaged(f"the head does not belong to the {len(entries)} entries: entries were removed or added")
    return entries


def _check_allowance(entries: list[Entry], dataset: str, purpose: str, cost: int) -> None:
    spent, allowance = _totals(entries, dataset)
    if allowance is not None and spent + cost > allowance:
        declared = [entry.purpose for entry in entries if (entry.kind, entry.dataset) == ("budget", dataset)][-1]
        raise PrivacyBudgetExceeded(
            f"{purpose!r} would bring what is spent on {dataset!r} to mu {mu_of(spent + cost):.6g}, its budget of "
            f"{declared} allows {mu_of(allowance):.6g}; nothing was spent or released for it"
        )


def _is_of(receipt: str, run: str) -> bool:
    return bool(run) and receipt.startswith(f"{run}/")


def _published(entries: list[Entry], receipt: str) -> str | None:
    digests = [entry.purpose for entry in entries if entry.kind == "publication" and entry.receipt == receipt]
    return digests[0] if digests else None


def _totals(entries: list[Entry], dataset: str) -> tuple[int, int | None]:
    own = [entry for entry in entries if entry.dataset == dataset]
    allowances = [entry.cost for entry in own if entry.kind == "budget"]
    return sum(entry.cost for entry in own if entry.kind == "spend"), allowances[-1] if allowances else None


def _chain(previous: str, number: int, content: str) -> str:
    return hashlib.sha256(f"{previous}\n{number}\n{content}".encode()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
