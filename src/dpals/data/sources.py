"""What every kind of input gives: a table as batches of rows, each row with its place in the input."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from dpals.data.bad_rows import BadRows, Place
from dpals.data.columns import Columns


@dataclass(frozen=True)
class Batch:
    """Some rows of a table."""

    frame: pl.DataFrame
    """Columns user, item (integers or text) and, if there are any, rating (Float32), timestamp (Int64)."""
    place: Place
    """Where a row of this frame is, for messages."""


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
