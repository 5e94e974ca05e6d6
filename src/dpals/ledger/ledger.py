"""The durable record of what was spent on which data set.

It is an append-only file whose rows are chained by hashes (`hash_chain`). What the rows mean is in `entries`, what they
add up to in `totals`.

**Reserve first, refund last.** A run reserves all that it may cost before it spends anything, and the reservation
counts in full until the run has ended. What the run did not spend is refunded then. So two concurrent runs cannot both
begin if the budget covers only one, and whenever a process is killed, the total is at least what was spent.

**Paid once, published once.** A run that may be resumed gives each of its releases a receipt. Paying twice under one
receipt writes one spend. Publishing twice under one receipt is allowed only for the same numbers, whose digest is
stored. So a run that was interrupted between paying and publishing resumes without paying again, with fresh noise,
because the earlier numbers reached nobody; and no spend ever stands for two different published tables.
"""

import os
import secrets
import sqlite3
import stat
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpals.ledger import amounts, hash_chain
from dpals.ledger.entries import Entry
from dpals.ledger.hash_chain import LedgerDamaged
from dpals.ledger.totals import Run, Total, budget_of, runs_of, total_of
from dpals.ledger.transactions import LedgerFile, append
from dpals.ledger.user_sketch import merged, sketch_of, sketches_of, warn_of_shared_users
from dpals.release.accounting import Budget, PrivacyBudgetExceeded, cost_of, mu_of
from dpals.release.accounting import mu as largest_mu


class Ledger:
    """Budgets and spends, on disk or, by default, in memory.

    Formal guarantee (docs/privacy.md, step 7): `reserve`, `spend` and `enter_search` return only after their entry is
    on disk, and raise `PrivacyBudgetExceeded` without writing if the total of the data set would exceed its budget.
    Check and write are one exclusive transaction, so processes cannot exceed the budget together. Every call refuses a
    ledger in which a row was changed, removed, inserted or reordered. Someone who rewrites all hashes and the head can
    pass that check, so each privacy statement prints the head at its time, and `verify` compares the ledger with it.

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
        self._file = LedgerFile(self.path)
        self.entries()

    def declare(self, dataset: str, epsilon: float, delta: float) -> None:
        """Set the most that may ever be spent on a data set. The last declaration counts."""
        allowance = cost_of(largest_mu(epsilon, delta))
        purpose = f"epsilon {epsilon}, delta {delta}"
        with self._transaction() as (connection, _):
            append(connection, Entry("budget", dataset, purpose, allowance, epsilon=float(epsilon), delta=float(delta)))

    def check(self, dataset: str, purpose: str, cost: int, run: str = "", fresh: bool = False) -> None:
        """Raise `PrivacyBudgetExceeded` if `reserve` would now. Nothing is written or reserved.

        Parameters
        ----------
        run
            The name of the run, if it was interrupted and is to be resumed.
        fresh
            Whether to end that run and begin another one instead.
        """
        entries = self.entries()
        own = _find(entries, run)
        if own is not None and fresh:
            entries, run = [*entries, Entry("end", own.dataset, own.purpose, run=run)], ""
        if own is None or fresh or not own.spent:
            _check_allowance(entries, Entry("reservation", dataset, purpose, cost, run=run or secrets.token_hex(16)))

    def reserve(self, dataset: str, purpose: str, budget: Budget, run: str, adaptive: bool = False) -> None:
        """Reserve, durably, all that a run may cost; or refuse the run as a whole (docs/privacy.md, step 7).

        ==================================  =====================================================
        run that has not ended              nothing is written: it has its reservation
        run that has ended                  reserves again: what it spent counts towards it
        ==================================  =====================================================

        Parameters
        ----------
        run
            A name that no other run has.
        adaptive
            Whether the costs of its releases depend on earlier ones. The whole budget then counts for good.
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
                append(connection, entry)

    def end(self, run: str, only_unspent: bool = False) -> Run | None:
        """End a run and refund what it reserved and did not spend (docs/privacy.md, step 7).

        Adaptive costs count as a whole, so nothing is refunded once something was spent.

        Parameters
        ----------
        only_unspent
            Do nothing if the run has spent something, and so may be resumed.

        Returns
        -------
        the run as it was before, None if nothing was done
        """
        with self._transaction() as (connection, entries):
            own = _find(entries, run)
            if own is None or not own.is_open or (own.spent and only_unspent):
                return None
            refund = own.charge - replace(own, is_open=False).charge
            append(connection, Entry("end", own.dataset, own.purpose, refund, run=run))
            return own

    def spend(self, dataset: str, purpose: str, cost: int, receipt: str = "", run: str = "") -> None:
        """Record a spend, durably, or refuse it (docs/privacy.md, step 7).

        A data set without a declared budget has no limit. What `run` has reserved was checked before; all other spends
        are checked here.

        ==================================  =====================================================
        receipt that was used before        nothing is written: it was paid
        the same receipt, another spend     RuntimeError
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
            append(connection, entry)

    def enter_search(self, dataset: str, purpose: str, epsilon: float, delta: float) -> None:
        """Record, durably and for good, what a search over hyper-parameters costs as a whole; or refuse it."""
        Budget(epsilon, delta)  # refuses invalid parameters
        with self._transaction() as (connection, entries):
            entry = Entry("search", dataset, purpose, epsilon=float(epsilon), delta=float(delta))
            _check_allowance(entries, entry)
            append(connection, entry)

    def publish(self, dataset: str, receipt: str, digest: str) -> None:
        """Record, durably, that numbers with this digest are published under a receipt (docs/privacy.md, step 8).

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
                append(connection, Entry("publication", dataset, digest, receipt=receipt))
            elif earlier != digest:
                raise RuntimeError(
                    f"other numbers were published under the receipt {receipt} before: the checkpoint was changed or "
                    "copied. Start over (--fresh, or another folder)"
                )

    def is_paid(self, receipt: str) -> bool:
        """Whether a spend was recorded under a receipt."""
        return _paid(self.entries(), receipt) is not None

    def published(self, receipt: str) -> str | None:
        """Digest of the numbers that were published under a receipt, None if none were."""
        return _published(self.entries(), receipt)

    def note_users(self, dataset: str, ids: Iterable[Any]) -> None:
        """Remember the users of a data set, and warn if many of them are in another one (docs/privacy.md, step 9).

        Parameters
        ----------
        ids
            Of the users. A keyed sketch of them (`user_sketch`) is stored. It stays in the file.
        """
        sketch = sketch_of(self._sketch_key(dataset), ids)
        with self._transaction() as (connection, entries):
            before = sketches_of(entries).get(dataset, ())
            everyone = merged(sketch, before)
            if everyone != before:
                append(connection, Entry("population", dataset, "", sketch=everyone))
        warn_of_shared_users(entries, dataset, sketch)

    def warn_of_shared_users(self, dataset: str, ids: Iterable[Any]) -> None:
        """The same warning, without remembering anyone."""
        entries = self.entries()
        if sketches_of(entries):
            warn_of_shared_users(entries, dataset, sketch_of(self._sketch_key(dataset), ids))

    def spent(self, dataset: str) -> int:
        """Cost of all runs on a data set, including what runs that have not ended may still spend."""
        return self.total(dataset).cost

    def total(self, dataset: str) -> Total:
        """The same, with searches."""
        return total_of(self.entries(), dataset)

    def allowance(self, dataset: str) -> int | None:
        """What runs on a data set may cost in all, beside its searches; None if no budget is declared."""
        entries = self.entries()
        budget = budget_of(entries, dataset)
        return None if budget is None else max(0, total_of(entries, dataset).allowance(budget))

    def open_runs(self) -> list[Run]:
        """Runs that have reserved budget and have not ended: they are in progress, or were interrupted."""
        return [run for run in runs_of(self.entries()) if run.is_open]

    def summary(self, dataset: str) -> tuple[Total, str]:
        """What was spent on a data set, and the head of the ledger, at one moment."""
        with self._transaction() as (connection, entries):
            return total_of(entries, dataset), hash_chain.head(connection)

    def entries(self) -> list[Entry]:
        """All entries in order, after checking the chain; `LedgerDamaged` if it does not hold."""
        with self._transaction() as (_, entries):
            return entries

    def verify(self, head: str | None = None) -> str:
        """Check the whole ledger and return its head; `LedgerDamaged` if something is wrong.

        Parameters
        ----------
        head
            The head that a privacy statement printed: it must occur in the chain. This detects a ledger that was rolled
            back or rewritten as a whole, which the chain alone cannot.
        """
        with self._transaction() as (connection, _):
            (sound,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if sound != "ok":
                raise LedgerDamaged(str(sound))
            if head is not None and not hash_chain.holds(connection, head):
                raise LedgerDamaged(f"the head {head} was never in this ledger: entries were removed or rewritten")
            return hash_chain.head(connection)

    def _transaction(self) -> AbstractContextManager[tuple[sqlite3.Connection, list[Entry]]]:
        return self._file.transaction()

    def _sketch_key(self, dataset: str) -> bytes:
        """The key for hashing ids: the random bytes of the first entry about users, made if there is none."""
        with self._transaction() as (connection, entries):
            for entry in entries:
                if entry.kind == "population":
                    return bytes.fromhex(entry.nonce)
            if self.path is not None:  # ledgers of earlier versions may be readable by everyone
                with suppress(PermissionError):  # only the owner of the file can change that
                    self.path.chmod(stat.S_IMODE(self.path.stat().st_mode) & ~stat.S_IRWXO)
            nonce = secrets.token_hex(16)
            append(connection, Entry("population", dataset, "", nonce=nonce))
            return bytes.fromhex(nonce)


def _check_allowance(entries: list[Entry], entry: Entry) -> None:
    """Refuse an entry that makes the total of its data set grow beyond the budget (docs/privacy.md, step 6)."""
    dataset = entry.dataset
    before, after = total_of(entries, dataset), total_of([*entries, entry], dataset)
    budget = budget_of(entries, dataset)
    grows = after.cost > before.cost or len(after.searches) > len(before.searches)
    if budget is not None and grows and after.cost > after.allowance(budget):
        held = sum(run.charge - run.spent for run in runs_of(entries) if run.is_open and run.dataset == dataset)
        raise PrivacyBudgetExceeded(
            f"{entry.purpose!r} would bring what is spent on {dataset!r} to {after.text(budget.delta)}, but its "
            f"budget is {amounts.allowed(budget.epsilon, budget.delta)}; nothing was spent or released for it"
            + (f". Runs that have not ended hold mu {amounts.up(mu_of(held))}: see dpals ledger show" * (held > 0))
        )


def _find(entries: list[Entry], run: str) -> Run | None:
    return next((found for found in runs_of(entries) if run and found.name == run), None)


def _paid(entries: list[Entry], receipt: str) -> Entry | None:
    return next((entry for entry in entries if receipt and (entry.kind, entry.receipt) == ("spend", receipt)), None)


def _published(entries: list[Entry], receipt: str) -> str | None:
    digests = [entry.purpose for entry in entries if entry.kind == "publication" and entry.receipt == receipt]
    return digests[0] if digests else None
