"""One pass over the users: what each block contributes, clipped and added up exactly.

A *population* is a set of blocks of users. An *engine* opens every block once, wherever it likes, and lets a `Pass` add
what its users contribute to tables of integers. Adding integers has one result, whatever the blocks, their order and
the machines. An engine never sees the noise. It is trusted to add up what `Work.add` put into tables: receipts show
which blocks took part, and not what became of the tables.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpals.errors import InputError
from dpals.kernels.target import Target, check_same, target
from dpals.release.contribution import Contribution, Grid, Query, quantize_and_clip
from dpals.release.sums import MAX_USERS, add_exactly, empty_sums

Table = NDArray[np.int64]
Contributed = Contribution | Iterable[Contribution]
"""What a block contributes to one query: all users at once, or some of them after the others to save memory."""
BlockFunction = Callable[[Any, Any], Contributed | tuple[Contributed, ...]]
"""From a block and public values to what its users contribute, query by query. It looks at nothing else."""


class Block(Protocol):
    """Users who are stored together. It can be sent to where it is opened."""

    @property
    def name(self) -> str:
        """Tells it from every other block; for a file, the digest of what must be in it."""
        ...

    def open(self) -> Any:
        """The ratings of its users, after checking that they are what the name says."""
        ...


class Population(Protocol):
    """All users, in blocks. No user is in two of them."""

    @property
    def blocks(self) -> Sequence[Block]: ...


class Receipt(NamedTuple):
    """That a block took part in a pass, with how many users, and what kind of machine computed their rows."""

    block: str
    n_users: int
    target: Target


class PassRefused(RuntimeError):  # noqa: N818
    """What took part in a pass is not the population, each block once and alike. Nothing was spent for the pass."""


@dataclass(frozen=True, eq=False)
class Pass:
    """A function of each block and the queries that its contributions are for. It can be sent to other processes.

    Parameters
    ----------
    function
        A function of a module, not of an object, so that it can be sent.
    public
        What the function takes beside the block.
    queries, grids
        One of each for everything that a block contributes.
    """

    function: BlockFunction
    public: Any
    queries: tuple[Query, ...]
    grids: tuple[Grid, ...]

    def empty(self) -> list[Table]:
        """Tables to add to."""
        return [empty_sums(query) for query in self.queries]

    def add(self, block: Block, tables: Sequence[Table]) -> Receipt:
        """Add the users of a block to the tables, in place.

        Formal guarantee (docs/privacy.md, step 1): each table grows by the exact sum of integer contributions,
        each of which is within the sensitivity of its query. After an error the tables may hold a part of the block:
        whoever tries again must begin with empty ones.
        """
        users = block.open()
        contributed = self.function(users, self.public)
        parts = contributed if isinstance(contributed, tuple) else (contributed,)
        for table, query, grid, part in zip(tables, self.queries, self.grids, parts, strict=True):
            seen: list[tuple[int, int]] = []
            for contribution in [part] if isinstance(part, Contribution) else part:
                _check_new_users(contribution, seen)
                add_exactly(table, quantize_and_clip(contribution, query, grid), query)
        return Receipt(block.name, users.n_users, target())


class Work(Protocol):
    """What an engine runs on every block: a `Pass`, or other sums of integers."""

    def empty(self) -> list[Table]:
        """Tables to add to."""
        ...

    def add(self, block: Block, tables: Sequence[Table]) -> Receipt:
        """Add the users of a block to the tables, in place."""
        ...


class Engine(Protocol):
    """Runs a pass over the blocks of a population. It may have a method ``check(blocks)`` that refuses blocks early."""

    def run(self, work: Work, blocks: Sequence[Block]) -> tuple[list[Table], list[Receipt]]:
        """`work.add` on every block once, and once only; the tables, added up, and the receipts of the blocks."""
        ...


def check_tables(tables: Sequence[Table], work: Work) -> None:
    """Raise unless the tables that came back are of integers, and of the shapes that the work has."""
    expected = [(table.shape, table.dtype) for table in work.empty()]
    if [(table.shape, table.dtype) for table in tables] != expected:
        raise PassRefused("the engine returned other tables than the pass has; nothing was spent for this pass")


def check_receipts(receipts: Sequence[Receipt], blocks: Sequence[Block]) -> None:
    """Raise unless every block took part exactly once, and all can be added up (docs/privacy.md, step 1).

    They cannot if there are too many users, or if machines unlike this one computed their rows (step 11).
    """
    expected, seen = sorted(block.name for block in blocks), sorted(receipt.block for receipt in receipts)
    if expected != seen or len(set(expected)) != len(expected):
        raise PassRefused(
            f"{len(seen)} blocks took part where the population has {len(expected)}, each of which must count once; "
            "nothing was spent for this pass"
        )
    if sum(receipt.n_users for receipt in receipts) > MAX_USERS:
        raise PassRefused(f"one release can hold at most {MAX_USERS} users; nothing was spent for this pass")
    try:
        check_same({target(), *(receipt.target for receipt in receipts)})
    except InputError as problem:
        raise PassRefused(f"{problem}; nothing was spent for this pass") from problem


def _check_new_users(contribution: Contribution, seen: list[tuple[int, int]]) -> None:
    """Refuse contributions that share a user with earlier ones of the block (docs/privacy.md, step 1)."""
    first, stop = contribution.pattern.first_user, contribution.pattern.first_user + contribution.pattern.n_users
    if any(first < other_stop and other_first < stop for other_first, other_stop in seen):
        raise ValueError(f"users {first} to {stop - 1} contribute twice to one release")
    seen.append((first, stop))
