"""Rows that cannot be used: an error that says where the first one is, or a count of what was dropped and why."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from dpals.errors import InputError

OnBadRows = Literal["error", "drop"]
"""What the caller wants: an error for a bad row, or the row dropped and counted."""

Place = Callable[[int], str]
"""Says where a row is, in words of the file or table that it came from."""

UNKNOWN_ITEM = "item outside the catalogue"
"""The reason under which rows of items that are not in the catalogue are counted."""


def row_of_array(row: int) -> str:
    """Say where a row of an array or frame is."""
    return f"row {row} (counting from 0)"


@dataclass
class BadRows:
    """What to do about a row that cannot be used: refuse the table, or drop the row and count why.

    Examples
    --------
    >>> bad = BadRows("drop")
    >>> bad.found("missing rating", 2, "a.csv, line 7, column 'stars'", "the rating is missing")
    >>> bad.dropped
    Counter({'missing rating': 2})
    """

    policy: OnBadRows
    unknown_items: OnBadRows | None = None
    """The same for items outside the catalogue. With "drop", users who lose all their rows by it stay; None does as
    `policy` says."""
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


@dataclass(frozen=True)
class ReadingReport:
    """What became of the rows of a table on their way into `Ratings`.

    Examples
    --------
    >>> print(ReadingReport(rows_read=1200, duplicates_replaced=1, rows_dropped={"missing rating": 2}))
    1,200 rows read, 1 repeated for the same user and item, 2 dropped (2 missing rating)
    """

    rows_read: int
    duplicates_replaced: int = 0
    rows_dropped: Mapping[str, int] = field(default_factory=dict)
    """Number of bad rows dropped, by reason."""

    def __str__(self) -> str:
        parts = [f"{self.rows_read:,} rows read"]
        if self.duplicates_replaced:
            parts.append(f"{self.duplicates_replaced:,} repeated for the same user and item")
        if self.rows_dropped:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.rows_dropped.items())
            parts.append(f"{sum(self.rows_dropped.values()):,} dropped ({reasons})")
        return ", ".join(parts)
