"""The mechanism itself: clip, sum, pay, then add noise, in this order and for every release."""

import hashlib
import logging
import math
import os
import secrets
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpals.ledger.amounts import down, up
from dpals.ledger.entries import SEEDED
from dpals.ledger.ledger import Ledger
from dpals.release.accounting import Budget, PrivacyBudgetExceeded, Release, mu_of, variance_for
from dpals.release.contribution import MAX_SENSITIVITY_BITS, Contribution, Grid, Query, quantize_and_clip
from dpals.release.noise import InsecureSeededStream, NoiseStream, rounded_gaussian
from dpals.release.sums import add_exactly, empty_sums

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
    """

    budget: Budget
    ledger: Ledger = field(default_factory=Ledger)
    dataset: str = "ratings"
    insecure_seed: int | None = None
    store: ReleaseStore | None = None
    quiet: bool = False
    adaptive: bool = False
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
        """Publish sum_i c_ij x_i + noise for every item j.

        Formal guarantee (docs/privacy.md, step 4): the result is mu-Gaussian-DP for the addition or removal of one
        user, with mu^2 = release.cost / 2^64 at most `cost` / 2^64. Each user's contribution is clipped to the query's
        sensitivity S in integers (`contribution`) and the sum is exact (`sums`), so one user moves the table by at most
        S in the norm in which coordinate k counts w_k. The noise in coordinate k is round(N(0, V / w_k)), exact, from a
        stream used once (`noise`), with V >= S^2 2^64 / cost. The spend is on disk before the first random bit is
        drawn. With a store, a table that was released before is returned again without a new spend: releasing the same
        numbers twice reveals nothing new. That holds even if the ratings have changed since, because what a user can
        move in each release stays within its sensitivity.

        Parameters
        ----------
        query
            What is published; made without looking at the data.
        contributions
            What users contribute: one block, or several that hold different users. Blocks may be made one after the
            other, so that not all users need to be in memory.
        cost
            What the release may cost, from `Budget.split`.

        Returns
        -------
        array of shape (n_items, number of coordinates), in the units of the contributions

        ============================  ========================================================
        cost above what is left       PrivacyBudgetExceeded; nothing is spent
        from several threads at once  one after the other; together within the budget
        in a forked child             RuntimeError: the child needs a mechanism of its own
        blocks share a user           ValueError; nothing is spent
        no blocks, no users           noise around zero, and paid for: absence is private too
        sensitivity of zero           noise of one step around zero, free
        released before (store)       the same numbers, free
        paid, but never published     released with fresh noise under the same spend
        published, then lost          RuntimeError; nothing is spent
        the ledger has too little     PrivacyBudgetExceeded at the first release if it cannot cover the whole run
        ============================  ========================================================
        """
        if type(cost) is not int or cost < 1:
            raise ValueError(f"a release needs a positive integer as its cost, {query.purpose!r} got {cost!r}")
        self._check_affordable(query, cost)
        if self.store is None:
            self._reserve()
        grid = Grid.of(query, _sensitivity_bits(cost))
        variance = variance_for(grid.sensitivity, cost)
        shape = (query.n_items, len(query.coordinate_weights))
        seeded = self.insecure_seed is not None
        record = Release(query.purpose, shape, query.form, grid.sensitivity, variance, grid.step, seeded)
        blocks = [contributions] if isinstance(contributions, Contribution) else contributions
        if self.store is None:
            table = self._draw(query, grid, record, blocks)
        else:
            with self._turn:
                table = self._draw_or_load(self.store, query, grid, record, blocks)
        if not self.quiet:
            logger.info("released %s: mu %s, noise %.4g", record.purpose, up(record.mu), record.sigma)
        return table.astype(np.float64) * grid.step

    def _draw(
        self, query: Query, grid: Grid, record: Release, contributions: Iterable[Contribution], receipt: str = ""
    ) -> NDArray[np.int64]:
        """The exact sums, with noise that is paid for before it is drawn."""
        sums = self.exact_sums(query, grid, contributions)
        stream = self._pay(record, receipt)
        sums += rounded_gaussian(stream, len(sums), record.variance, query.coordinate_weights)
        return sums

    def _draw_or_load(
        self, store: ReleaseStore, query: Query, grid: Grid, record: Release, contributions: Iterable[Contribution]
    ) -> NDArray[np.int64]:
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
            table = self._draw(query, grid, record, contributions, receipt)
            store.save(number, record, table)
        try:
            self.ledger.publish(self.dataset, receipt, hashlib.sha256(table.tobytes()).hexdigest())
        except RuntimeError:
            store.discard(number)
            raise
        return table

    def exact_sums(self, query: Query, grid: Grid, contributions: Iterable[Contribution]) -> NDArray[np.int64]:
        """What users add up to, before noise: never published. Audits override it to record it."""
        sums = empty_sums(query)
        seen: list[tuple[int, int]] = []
        for contribution in contributions:
            _check_new_users(contribution, seen)
            add_exactly(sums, quantize_and_clip(contribution, query, grid), query)
        return sums

    def _pay(self, record: Release, receipt: str) -> NoiseStream:
        """Record the spend, then open a stream for its noise (docs/privacy.md, step 7).

        What is left is checked again, because other releases may have been paid while the contributions were made.
        """
        with self._lock:
            if os.getpid() != self._home:
                raise RuntimeError("a mechanism does not survive a fork: the child must make its own")
            self._check_affordable(record, record.cost)
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

    def _check_affordable(self, wanted: Query | Release, cost: int) -> None:
        """Refuse what would exceed the budget (docs/privacy.md, step 5)."""
        if self.spent + cost > self.budget.cost:
            raise PrivacyBudgetExceeded(
                f"{wanted.purpose!r} would bring this run to mu {up(mu_of(self.spent + cost), 6)}, but epsilon "
                f"{self.budget.epsilon} with delta {self.budget.delta} allows {down(self.budget.mu, 6)}; "
                "nothing was spent or released"
            )


def _sensitivity_bits(cost: int) -> int:
    """Bits of the integer sensitivity: as many as leave the noise below 2^34 steps."""
    return min(math.floor(_NOISE_BITS + math.log2(mu_of(cost))), MAX_SENSITIVITY_BITS)


def _check_new_users(contribution: Contribution, seen: list[tuple[int, int]]) -> None:
    """Refuse a block that shares a user with an earlier one of the release (docs/privacy.md, step 1)."""
    first, stop = contribution.pattern.first_user, contribution.pattern.first_user + contribution.pattern.n_users
    if any(first < other_stop and other_first < stop for other_first, other_stop in seen):
        raise ValueError(f"users {first} to {stop - 1} contribute twice to one release")
    seen.append((first, stop))
