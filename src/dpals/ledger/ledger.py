"""The durable record of what was spent on which data set.

An append-only file whose rows are chained by hashes (`chain`). What the rows mean is in `entries`, what they add up to
in `totals`.

Formal guarantee: `reserve`, `spend` and `enter_search` return only after their entry is on disk, and raise
`PrivacyBudgetExceeded` without writing where the total of the data set would exceed its budget. Check and write are one
exclusive transaction, so processes cannot exceed the budget together. A ledger in which a row was changed, removed,
inserted or reordered is refused by every call. Someone who writes hashes and head anew can pass that check, so each
privacy statement prints the head of its time, and `verify` takes it to compare with.

**Reserved first, given back last.** A run reserves all that it may cost before it spends anything, and that counts in
full until the run has ended. What it did not spend is given back then. So two runs at once cannot both begin where
there is room for one; and whenever a process is killed, the total is at least what was spent.

**Paid once, released once.** A run that may be resumed gives each of its releases a receipt. Paying twice under one
receipt writes one spend; publishing twice under one receipt is allowed for the same numbers only, whose digest is kept.
So a run that was broken off between paying and publishing goes on without paying again, with fresh noise, because
the numbers of before reached nobody; and no spend ever stands for two different published tables.
"""

import logging
import os
import secrets
import sqlite3
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dpals.ledger import hash_chain
from dpals.ledger.entries import Entry
from dpals.ledger.hash_chain import LedgerDamaged
from dpals.ledger.totals import Run, Total, budget_of, runs_of, total_of
from dpals.ledger.user_sketch import ALIKE, Sketch, merged, overlap, sketch_of
from dpals.release.accounting import Budget, PrivacyBudgetExceeded, cost_of, mu_of
from dpals.release.accounting import mu as largest_mu
from dpals.statement import rounding

logger = logging.getLogger(__name__)

_OPEN: dict[str, Any] = {"uri": True, "isolation_level": None, "timeout": 10}


class Ledger:
    """Budgets and spends, on disk or, by default, in memory.

    Examples
    --------
    >>> ledger = Ledger()
    >>> ledger.declare("ratings of 2026", epsilon=1.0, delta=1e-6)
    >>> ledger.spend("ratings of 2026", "item counts", cost=10**15)
    >>> [entry.purpose for entry in ledger.entries()]
    ['epsilon 1.0, delta 1e-06', 'item counts']
    >>> ledger.total("ratings of 2026").text(delta=1e-6)
    'epsilon 0.0242 at delta 1e-06 (mu 0.007363)'
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path).absolute()
        self._lock = threading.Lock()
        self._memory: sqlite3.Connection | None = None
        if self.path is None:
            self._memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            hash_chain.create(self._memory)
        elif not self.path.exists():
            hash_chain.create_file(self.path)
        self.entries()

    def declare(self, dataset: str, epsilon: float, delta: float) -> None:
        """Set the most that may ever be spent on a data set. The last declaration counts."""
        allowance = cost_of(largest_mu(epsilon, delta))
        said = f"epsilon {epsilon}, delta {delta}"
        with self._transaction() as (connection, _):
            _append(connection, Entry("budget", dataset, said, allowance, epsilon=float(epsilon), delta=float(delta)))

    def check(self, dataset: str, purpose: str, cost: int, run: str = "", fresh: bool = False) -> None:
        """Raise `PrivacyBudgetExceeded` where `reserve` would, now. Nothing is written or reserved.

        Parameters
        ----------
        run
            The name of the run, if it was broken off and is to be resumed.
        fresh
            Whether that run is to be ended, and another one to begin, instead.
        """
        entries = self.entries()
        own = _find(entries, run)
        if own is not None and fresh:
            entries, run = [*entries, Entry("end", own.dataset, own.purpose, run=run)], ""
        if own is None or fresh or not own.spent:
            _check_allowance(entries, Entry("reservation", dataset, purpose, cost, run=run or secrets.token_hex(16)))

    def reserve(self, dataset: str, purpose: str, budget: Budget, run: str, adaptive: bool = False) -> None:
        """Set aside, durably, all that a run may cost; or refuse it as a whole.

        ==================================  =====================================================
        run that has not ended              nothing is written: it has its reservation
        run that has ended                  reserves again: what it spent counts towards it
        ==================================  =====================================================

        Parameters
        ----------
        run
            A name that no other run has.
        adaptive
            Whether what its releases cost will depend on earlier ones. The whole budget then counts for good.
        """
        if not run:
            raise ValueError("a run needs a name")
        entry = Entry("reservation", dataset, purpose, budget.cost, run=run, adaptive=adaptive)
        entry = replace(entry, epsilon=budget.epsilon, delta=budget.delta)
        with self._transaction() as (connection, entries):
            own = _find(entries, run)
            if own is not None and own.dataset != dataset:
                raise RuntimeError(f"the run {run} is on {own.dataset!r}, not on {dataset!r}")
            if own is None or not own.is_open or own.reserved < budget.cost:
                _check_allowance(entries, entry)
                _append(connection, entry)

    def end(self, run: str, only_unspent: bool = False) -> Run | None:
        """Give back what a run has reserved and not spent. The run as it was before, None where nothing was done.

        Costs that depend on releases count as a whole, so that nothing is given back of them once something was spent.

        Parameters
        ----------
        only_unspent
            Leave a run as it is that has spent something, and may be resumed.
        """
        with self._transaction() as (connection, entries):
            own = _find(entries, run)
            if own is None or not own.is_open or (own.spent and only_unspent):
                return None
            given_back = own.charge - replace(own, is_open=False).charge
            _append(connection, Entry("end", own.dataset, own.purpose, given_back, run=run))
            return own

    def spend(self, dataset: str, purpose: str, cost: int, receipt: str = "", run: str = "") -> None:
        """Record a spend, durably, or refuse it. A data set without a declared budget has no limit.

        What `run` has reserved was checked before; all other spends are checked here.

        ==================================  =====================================================
        receipt that was used before        nothing is written: it was paid
        the same for another spend          RuntimeError
        ==================================  =====================================================
        """
        if type(cost) is not int or cost < 0:
            raise ValueError(f"a cost is an integer and not negative, got {cost!r}")
        with self._transaction() as (connection, entries):
            before = _paid(entries, receipt)
            if before is not None:
                if (before.dataset, before.purpose, before.cost) != (dataset, purpose, cost):
                    raise RuntimeError(f"the receipt {receipt} is for {before.purpose!r}, not for {purpose!r}")
                return
            entry = Entry("spend", dataset, purpose, cost, receipt=receipt, run=run or receipt.rpartition("/")[0])
            _check_allowance(entries, entry)
            _append(connection, entry)

    def enter_search(self, dataset: str, purpose: str, epsilon: float, delta: float) -> None:
        """Record, durably, what a search over hyper-parameters costs as a whole, for good; or refuse it."""
        Budget(epsilon, delta)  # refuses what is none
        with self._transaction() as (connection, entries):
            entry = Entry("search", dataset, purpose, epsilon=float(epsilon), delta=float(delta))
            _check_allowance(entries, entry)
            _append(connection, entry)

    def publish(self, dataset: str, receipt: str, digest: str) -> None:
        """Record, durably, that numbers with this digest are published under a receipt.

        ==================================  ===========================================
        the same digest again               nothing is written
        another digest                      RuntimeError: the first one is published
        receipt that nothing was paid for   RuntimeError
        ==================================  ===========================================
        """
        with self._transaction() as (connection, entries):
            if _paid(entries, receipt) is None:
                raise RuntimeError(f"nothing was paid for under the receipt {receipt}")
            earlier = _published(entries, receipt)
            if earlier is None:
                _append(connection, Entry("publication", dataset, digest, receipt=receipt))
            elif earlier != digest:
                raise RuntimeError(
                    f"other numbers were published under the receipt {receipt} before: the checkpoint was changed or "
                    "copied. Start over (--fresh, or another folder)"
                )

    def is_paid(self, receipt: str) -> bool:
        """Whether a spend was recorded under a receipt."""
        return _paid(self.entries(), receipt) is not None

    def published(self, receipt: str) -> str | None:
        """Digest of the numbers that were published under a receipt, None where none were."""
        return _published(self.entries(), receipt)

    def note_population(self, dataset: str, ids: Iterable[Any]) -> None:
        """Remember who is in a data set, and warn where many of them are known under another name.

        Parameters
        ----------
        ids
            Of the users. A keyed sketch of them is kept (`population`), which stays in the file.
        """
        met = sketch_of(self._population_key(dataset), ids)
        with self._transaction() as (connection, entries):
            before = _sketches(entries).get(dataset, ())
            everyone = merged(met, before)
            if everyone != before:
                _append(connection, Entry("population", dataset, "", sketch=everyone))
        _warn_of_others(entries, dataset, met)

    def warn_if_known(self, dataset: str, ids: Iterable[Any]) -> None:
        """The same warning, without remembering anyone."""
        entries = self.entries()
        if _sketches(entries):
            _warn_of_others(entries, dataset, sketch_of(self._population_key(dataset), ids))

    def spent(self, dataset: str) -> int:
        """Cost of all trainings on a data set, with what those that have not ended may still spend."""
        return self.total(dataset).cost

    def total(self, dataset: str) -> Total:
        """The same with searches."""
        return total_of(self.entries(), dataset)

    def allowance(self, dataset: str) -> int | None:
        """What trainings on a data set may cost in all, beside its searches; None where there is no declared budget."""
        entries = self.entries()
        budget = budget_of(entries, dataset)
        return None if budget is None else max(0, total_of(entries, dataset).allowance(budget))

    def open_runs(self) -> list[Run]:
        """Runs that have reserved budget and have not ended: they go on, or were broken off."""
        return [run for run in runs_of(self.entries()) if run.is_open]

    def summary(self, dataset: str) -> tuple[Total, str]:
        """What was spent on a data set so far, and the head of the ledger by then."""
        with self._transaction() as (connection, entries):
            return total_of(entries, dataset), hash_chain.head(connection)

    def entries(self) -> list[Entry]:
        """All rows in order, after checking the chain; `LedgerDamaged` where it does not hold."""
        with self._transaction() as (_, entries):
            return entries

    def verify(self, head: str | None = None) -> str:
        """Check the whole ledger and return its head; `LedgerDamaged` where something is wrong.

        Parameters
        ----------
        head
            The head that a privacy statement printed: it must occur in the hash_chain. This finds out a ledger
            that was cut back or rewritten as a whole, which the chain alone cannot.
        """
        with self._transaction() as (connection, _):
            (sound,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if sound != "ok":
                raise LedgerDamaged(str(sound))
            if head is not None and not hash_chain.holds(connection, head):
                raise LedgerDamaged(f"the head {head} never was in it: entries were removed or rewritten")
            return hash_chain.head(connection)

    @property
    def _name(self) -> str:
        return f"the ledger {self.path}" if self.path else "the ledger in memory"

    def _population_key(self, dataset: str) -> bytes:
        """What ids are hashed with: the random bytes of the first entry about people, made if there is none."""
        with self._transaction() as (connection, entries):
            for entry in entries:
                if entry.kind == "population":
                    return bytes.fromhex(entry.nonce)
            if self.path is not None:  # ledgers of earlier versions may be readable for everyone
                with suppress(PermissionError):  # whose file it is decides
                    self.path.chmod(stat.S_IMODE(self.path.stat().st_mode) & ~stat.S_IRWXO)
            nonce = secrets.token_hex(16)
            _append(connection, Entry("population", dataset, "", nonce=nonce))
            return bytes.fromhex(nonce)

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
                    yield connection, [Entry.from_json(content) for content in hash_chain.read(connection)]
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


def _append(connection: sqlite3.Connection, entry: Entry) -> None:
    hash_chain.append(connection, replace(entry, nonce=entry.nonce or secrets.token_hex(16)).to_json())


def _check_allowance(entries: list[Entry], entry: Entry) -> None:
    """Refuse an entry that makes the total of its data set grow, to more than the budget."""
    dataset = entry.dataset
    before, after = total_of(entries, dataset), total_of([*entries, entry], dataset)
    budget = budget_of(entries, dataset)
    grows = after.cost > before.cost or len(after.searches) > len(before.searches)
    if budget is not None and grows and after.cost > after.allowance(budget):
        held = sum(run.charge - run.spent for run in runs_of(entries) if run.is_open and run.dataset == dataset)
        raise PrivacyBudgetExceeded(
            f"{entry.purpose!r} would bring what is spent on {dataset!r} to {after.text(budget.delta)}, its budget is "
            f"{rounding.allowed(budget.epsilon, budget.delta)}; nothing was spent or released for it"
            + (f". Runs that have not ended hold mu {rounding.up(mu_of(held))}: see dpals ledger show" * (held > 0))
        )


def _find(entries: list[Entry], run: str) -> Run | None:
    return next((found for found in runs_of(entries) if run and found.name == run), None)


def _paid(entries: list[Entry], receipt: str) -> Entry | None:
    return next((entry for entry in entries if receipt and (entry.kind, entry.receipt) == ("spend", receipt)), None)


def _published(entries: list[Entry], receipt: str) -> str | None:
    digests = [entry.purpose for entry in entries if entry.kind == "publication" and entry.receipt == receipt]
    return digests[0] if digests else None


def _sketches(entries: list[Entry]) -> dict[str, Sketch]:
    return {entry.dataset: entry.sketch for entry in entries if entry.kind == "population"}


def _warn_of_others(entries: list[Entry], dataset: str, met: Sketch) -> None:
    others = [name for name, other in _sketches(entries).items() if name != dataset and overlap(met, other) >= ALIKE]
    if others:
        logger.warning(
            "many users of %r are in this ledger as %s already, and what is spent on them adds up under one name only. "
            "If they are the same people, use that name for them (dataset=..., or --dataset)",
            dataset,
            " and ".join(map(repr, others)),
        )
