"""The mechanism itself: clip, sum, pay, then add noise, in this order and for every release."""

import hashlib
import logging
import math
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpals.engines.local import LocalEngine
from dpals.ledger.amounts import down, up
from dpals.ledger.entries import SEEDED
from dpals.ledger.ledger import Ledger
from dpals.release.accounting import Budget, PrivacyBudgetExceeded, Release, mu_of, variance_for
from dpals.release.contribution import MAX_SENSITIVITY_BITS, Contribution, Grid, Query
from dpals.release.noise import InsecureSeededStream, NoiseStream, rounded_gaussian
from dpals.release.passes import BlockFunction, Engine, Pass, Population, Table, check_receipts, check_tables

logger = logging.getLogger(__name__)

_NOISE_BITS = 34
"""The grid is as fine as it can be with noise of at most 2^34 steps, beyond which sampling gets slow."""


class ReleaseStore(Protocol):
    """Stores what a run released, so that an interrupted run can resume.

    It gets each table just before the table is published, and must show it to nobody until then. Otherwise it is not
    trusted: with one and the same ledger, a store that loses or changes tables costs budget or accuracy alone.
    """

    run: str
    """A name that no other run has."""

    def load(self, number: int, record: Release) -> NDArray[np.int64] | None:
        """The table of an earlier release, None if it is not stored."""
        ...

    def save(self, number: int, record: Release, table: NDArray[np.int64]) -> None:
        """Store the table of a release, durably; an error if there is one already."""
        ...

    def discard(self, number: int) -> None:
        """Remove a stored table that may not be published."""
        ...


@dataclass(eq=False)
class Mechanism:
    """Publishes noisy sums over users and accounts for them.

    It reserves the whole budget in the ledger before its first release. As a context manager, it refunds what is left
    of the reservation when it is closed. The exception is a run with a store that ended with an error: it may resume.

    Parameters
    ----------
    budget
        What this run may spend.
    ledger
        Where each spend is recorded before its noise is drawn; in memory if not given.
    dataset
        The name of the data set in the ledger.
    insecure_seed
        Repeatable noise for tests and simulations. Whoever knows the seed can remove the noise: the statement
        says that the result is not private.
    store
        Where released tables are stored and loaded from again, for a run that can be resumed.
    quiet
        Write no log messages, because the number of releases is secret.
    adaptive
        Whether the cost of a release may depend on earlier ones. The whole budget then counts as spent.
    engine
        What runs a pass over the blocks of a population; this machine by default.
    """

    budget: Budget
    ledger: Ledger = field(default_factory=Ledger)
    dataset: str = "ratings"
    insecure_seed: int | None = None
    store: ReleaseStore | None = None
    quiet: bool = False
    adaptive: bool = False
    engine: Engine = field(default_factory=LocalEngine)
    releases: list[Release] = field(default_factory=list, init=False)
    run: str = field(init=False)
    _reserved: bool = field(default=False, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _turn: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _home: int = field(default_factory=os.getpid, init=False, repr=False)

    def __post_init__(self) -> None:
        self.run = secrets.token_hex(16) if self.store is None else self.store.run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, problem: BaseException | None, traceback: object) -> None:
        if problem is None:
            self.close()
            return
        try:
            self.close(may_resume=self.store is not None)
        except (OSError, RuntimeError):  # the error that ended the run matters more
            logger.warning("what the run %s had left was not refunded: dpals ledger release", self.run)

    def close(self, may_resume: bool = False) -> None:
        """Refund what is left of the reservation, unless the run spent something and may be resumed."""
        if (self._reserved or self.store is not None) and os.getpid() == self._home:
            self.ledger.end(self.run, only_unspent=may_resume)
            self._reserved = False

    @property
    def spent(self) -> int:
        return sum(release.cost for release in self.releases)

    def release(
        self, query: Query, contributions: Contribution | Iterable[Contribution], cost: int
    ) -> NDArray[np.float64]:
        """Publish sum_i c_ij x_i + noise for every item j, of contributions that are in memory.

        This is `release_together` for one query and one block.

        Parameters
        ----------
        query
            What is published; made without looking at the data.
        contributions
            What users contribute: all at once, or in several parts that hold different users. Parts may be made one
            after the other, so that not all users need to be in memory.
        cost
            What the release may cost, from `Budget.split`.

        Returns
        -------
        array of shape (n_items, number of coordinates), in the units of the contributions
        """
        return self.release_together(_Given(contributions), _given, None, [(query, cost)])[0]

    def release_together(
        self, population: Population, function: BlockFunction, public: Any, queries: Sequence[tuple[Query, int]]
    ) -> list[NDArray[np.float64]]:
        """Publish, for each query, sum_i c_ij x_i + noise for every item j, after one pass over all users.

        Formal guarantee (docs/privacy.md, step 4): each result is mu-Gaussian-DP for the addition or removal of one
        user, with mu^2 = release.cost / 2^64 at most `cost` / 2^64. Each user's contribution is clipped to the query's
        sensitivity S in integers (`contribution`) and the sum is exact (`sums`), so one user moves the table by at most
        S in the norm in which coordinate k counts w_k. The noise in coordinate k is round(N(0, V / w_k)), exact, from a
        stream used once (`noise`), with V >= S^2 2^64 / cost. The spend is on disk before the first random bit is
        drawn. With a store, a table that was released before is returned again without a new spend: releasing the same
        numbers twice reveals nothing new. That holds even if the ratings have changed since, because what a user can
        move in each release stays within its sensitivity.

        Parameters
        ----------
        population
            All users, in blocks.
        function
            From a block and the public values to what its users contribute, one contribution for each query.
        public
            What the function takes beside a block: public values alone.
        queries
            What is published, made without looking at the data, and what each may cost, from `Budget.split`.

        Returns
        -------
        for each query an array of shape (n_items, number of coordinates), in the units of the contributions

        ============================  ========================================================
        costs above what is left      PrivacyBudgetExceeded; nothing is spent
        from several threads at once  one after the other; together within the budget
        in a forked child             RuntimeError: the child needs a mechanism of its own
        parts share a user            ValueError; nothing is spent
        a block missing, or twice     PassRefused; nothing is spent
        blocks from other versions    PassRefused; nothing is spent
        no blocks, no users           noise around zero, and paid for: absence is private too
        sensitivity of zero           noise of one step around zero, free
        released before (store)       the same numbers, free; if that holds for all, there is no pass
        paid, but never published     released with fresh noise under the same spend
        published, then lost          RuntimeError; nothing is spent
        the ledger has too little     PrivacyBudgetExceeded at the first release if it cannot cover the whole run
        ============================  ========================================================
        """
        for query, cost in queries:
            if type(cost) is not int or cost < 1:
                raise ValueError(f"a release needs a positive integer as its cost, {query.purpose!r} got {cost!r}")
        self._check_affordable(" and ".join(repr(query.purpose) for query, _ in queries), sum(c for _, c in queries))
        if self.store is None:
            self._reserve()
        grids = [Grid.of(query, _sensitivity_bits(cost)) for query, cost in queries]
        records = [self._record(query, grid, cost) for (query, cost), grid in zip(queries, grids, strict=True)]
        work = Pass(function, public, tuple(query for query, _ in queries), tuple(grids))
        sums = cache(lambda: self.exact_sums(work, population))
        if self.store is None:
            tables = [self._draw(sums()[k], work.queries[k], record) for k, record in enumerate(records)]
        else:
            with self._turn:
                tables = [self._draw_or_load(self.store, sums, k, work, record) for k, record in enumerate(records)]
        if not self.quiet:
            for record in records:
                logger.info("released %s: mu %s, noise %.4g", record.purpose, up(record.mu), record.sigma)
        return [table.astype(np.float64) * grid.step for table, grid in zip(tables, grids, strict=True)]

    def _record(self, query: Query, grid: Grid, cost: int) -> Release:
        variance = variance_for(grid.sensitivity, cost)
        shape = (query.n_items, len(query.coordinate_weights))
        seeded = self.insecure_seed is not None
        return Release(query.purpose, shape, query.form, grid.sensitivity, variance, grid.step, seeded)

    def _draw(self, sums: Table, query: Query, record: Release, receipt: str = "") -> Table:
        """The exact sums, with noise that is paid for before it is drawn."""
        stream = self._pay(record, receipt)
        table = rounded_gaussian(stream, len(sums), record.variance, query.coordinate_weights)
        table += sums  # a table of its own: the engine may keep the sums
        return table

    def _draw_or_load(
        self, store: ReleaseStore, sums: Callable[[], list[Table]], position: int, work: Pass, record: Release
    ) -> Table:
        """The same, once for each receipt. A table leaves only after `Ledger.publish` (docs/privacy.md, step 8)."""
        number = len(self.releases) + 1
        receipt = f"{store.run}/{number}"
        if not self.ledger.is_paid(receipt):
            self._reserve()
        table = store.load(number, record)
        if table is not None:
            self._pay(record, receipt)
        elif self.ledger.published(receipt) is not None:
            raise RuntimeError(
                f"{record.purpose!r} was published before, but its numbers are no longer stored: start over "
                "(--fresh, or another folder)"
            )
        else:
            table = self._draw(sums()[position], work.queries[position], record, receipt)
            store.save(number, record, table)
        try:
            self.ledger.publish(self.dataset, receipt, hashlib.sha256(table.tobytes()).hexdigest())
        except RuntimeError:
            store.discard(number)
            raise
        return table

    def exact_sums(self, work: Pass, population: Population) -> list[Table]:
        """What users add up to, before noise: never published. Audits override it to record it."""
        engine = LocalEngine() if isinstance(population, _Given) else self.engine
        tables, receipts = engine.run(work, population.blocks)
        check_tables(tables, work)
        check_receipts(receipts, population.blocks)
        return tables

    def _pay(self, record: Release, receipt: str) -> NoiseStream:
        """Record the spend, then open a stream for its noise (docs/privacy.md, step 7).

        What is left is checked again, because other releases may have been paid while the contributions were made.
        """
        with self._lock:
            if os.getpid() != self._home:
                raise RuntimeError("a mechanism does not survive a fork: the child must make its own")
            self._check_affordable(repr(record.purpose), record.cost)
            seeded = SEEDED if record.seeded else ""
            self.ledger.spend(self.dataset, record.purpose + seeded, record.cost, receipt, self.run)
            self.releases.append(record)
            if self.insecure_seed is None:
                return NoiseStream()
            return InsecureSeededStream(self.insecure_seed, release=len(self.releases))

    def _reserve(self) -> None:
        """Reserve the whole budget once, before anything is spent; or refuse the run (docs/privacy.md, step 7)."""
        with self._lock:
            if not self._reserved and os.getpid() == self._home:
                whole = f"training with epsilon {up(self.budget.epsilon)} and delta {up(self.budget.delta)}"
                self.ledger.reserve(self.dataset, whole, self.budget, self.run, self.adaptive)
                self._reserved = True

    def _check_affordable(self, purpose: str, cost: int) -> None:
        """Refuse what would exceed the budget (docs/privacy.md, step 5)."""
        if self.spent + cost > self.budget.cost:
            raise PrivacyBudgetExceeded(
                f"{purpose} would bring this run to mu {up(mu_of(self.spent + cost), 6)}, but epsilon "
                f"{self.budget.epsilon} with delta {self.budget.delta} allows {down(self.budget.mu, 6)}; "
                "nothing was spent or released"
            )


def _sensitivity_bits(cost: int) -> int:
    """Bits of the integer sensitivity: as many as leave the noise below 2^34 steps."""
    return min(math.floor(_NOISE_BITS + math.log2(mu_of(cost))), MAX_SENSITIVITY_BITS)


@dataclass(frozen=True, eq=False)
class _Given:
    """Contributions that are in memory already, as a population of one block."""

    contributions: Contribution | Iterable[Contribution]
    name: str = "given"
    n_users: int = 0  # counted by `sums`

    @property
    def blocks(self) -> Sequence[Self]:
        return (self,)

    def open(self) -> Self:
        return self


def _given(block: _Given, public: None) -> tuple[Contribution | Iterable[Contribution]]:  # noqa: ARG001
    return (block.contributions,)
