"""Rows on their way in: a batch of them, and what happens to bad ones."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, get_args

import polars as pl

from dpals.data.columns import Columns
from dpals.data.ids import Place
from dpals.data.ratings import OnBadRows
from dpals.errors import InputError


@dataclass(frozen=True)
class Batch:
    """Some rows of a table."""

    frame: pl.DataFrame
    """Columns user, item (integers or text) and, if there are any, rating (Float32), timestamp (Int64)."""
    place: Place
    """Where a row of this frame is, for messages."""


UNKNOWN_ITEM = "item outside the catalogue"
"""The reason under which rows of items that are not in the catalogue are counted."""


@dataclass
class BadRows:
    """What to do about a row that cannot be used: refuse the table, or drop the row and count why."""

    policy: OnBadRows
    unknown_items: OnBadRows | None = None
    """The same for items outside the catalogue. If it says "drop", users who lose all rows by that stay; None follows
    `policy`."""
    advice: str = 'on_bad_rows="drop" drops such rows and counts them'
    dropped: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for name, policy in (("on_bad_rows", self.policy), ("on_unknown_items", self.unknown_items or self.policy)):
            if policy not in get_args(OnBadRows):
                raise InputError(f'{name} must be "error" or "drop", not {policy!r}')

    def found(self, reason: str, count: int, first: str, problem: str) -> None:
        """Record `count` rows that are bad for the same reason, the first of them at the place `first`."""
        self._record(self.policy, reason, count, f"{first}: {problem}. {self.advice}")

    def found_unknown_items(self, count: int, first: str, item: object) -> None:
        """Record `count` rows whose item is not in the catalogue, the first of them about `item`."""
        problem = f"{first}: the item {item!r} is not in the catalogue"
        advice = 'on_unknown_items="drop" leaves out such rows and counts them'
        self._record(self.unknown_items or self.policy, UNKNOWN_ITEM, count, f"{problem}. {advice}")

    def _record(self, policy: OnBadRows, reason: str, count: int, message: str) -> None:
        if policy == "error":
            raise InputError(message)
        self.dropped[reason] += count


class Source(Protocol):
    """A table that can be read in batches."""

    name: str
    """What to call it in messages."""
    columns: Columns
    schema: str
    """Who or what declares the columns, in a sentence; empty where they are given one by one."""

    def batches(self, bad: BadRows) -> Iterator[Batch]:
        """Read the rows. Rows that cannot be parsed go to `bad` instead."""
        ...
