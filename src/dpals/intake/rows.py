"""Rows on their way in: a batch of them, and what happens to bad ones."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, get_args

import polars as pl

from dpals.errors import InputError
from dpals.intake.columns import Columns
from dpals.intake.ids import Place
from dpals.ratings import OnBadRows


@dataclass(frozen=True)
class Batch:
    """Some rows of a table."""

    frame: pl.DataFrame
    """Columns user, item (integers or text) and, if there are any, rating (Float32), timestamp (Int64)."""
    place: Place
    """Where a row of this frame is, for messages."""


@dataclass
class BadRows:
    """What to do about a row that cannot be used: refuse the table, or drop the row and count why."""

    policy: OnBadRows
    dropped: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        if self.policy not in get_args(OnBadRows):
            raise InputError(f'on_bad_rows must be "error" or "drop", not {self.policy!r}')

    def found(self, reason: str, count: int, first: str, problem: str) -> None:
        """Record `count` rows that are bad for the same reason, the first of them at the place `first`."""
        if self.policy == "error":
            raise InputError(f'{first}: {problem}. on_bad_rows="drop" drops such rows and counts them')
        self.dropped[reason] += count


class Source(Protocol):
    """A table that can be read in batches."""

    name: str
    """What to call it in messages."""
    columns: Columns

    def batches(self, bad: BadRows) -> Iterator[Batch]:
        """Read the rows. Rows that cannot be parsed go to `bad` instead."""
        ...
