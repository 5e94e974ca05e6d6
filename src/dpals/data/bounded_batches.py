"""A table larger than memory, in pieces of a bounded number of rows, and the one type that ids have in all of them."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpals.data.bad_rows import BadRows
from dpals.data.columns import Columns
from dpals.data.ids import is_text
from dpals.data.sources import Batch, Source
from dpals.errors import InputError

ROWS_AT_ONCE = 1 << 21
_LARGEST = np.iinfo(np.int64).max


class Piece:
    """The next batches of a source, until they have about the given number of rows."""

    def __init__(self, name: str, columns: Columns, batches: Iterator[Batch], n_rows: int) -> None:
        self.name, self.columns, self.schema = name, columns, ""
        self._batches, self._n_rows = batches, n_rows

    def batches(self, bad: BadRows) -> Iterator[Batch]:  # noqa: ARG002
        taken = 0
        for batch in self._batches:
            yield batch
            taken += batch.frame.height
            if taken >= self._n_rows:
                return


def pieces(source: Source, bad: BadRows, n_rows: int) -> Iterator[Piece]:
    """A source as smaller sources, to be read to their ends one after another.

    Examples
    --------
    >>> from dpals.data.frames import ArraySource
    >>> source = ArraySource([1, 2, 3], [7, 7, 8], None, None)
    >>> [sum(batch.frame.height for batch in piece.batches(None)) for piece in pieces(source, BadRows("error"), 2)]
    [2, 1]
    """
    batches = _limit_batches(source.batches(bad), n_rows)
    for first in batches:
        yield Piece(source.name, source.columns, chain([first], batches), n_rows)


def _limit_batches(batches: Iterator[Batch], at_most: int) -> Iterator[Batch]:
    """The same rows in batches that are not too large."""
    for batch in batches:
        for start in range(0, batch.frame.height, at_most):
            yield Batch(batch.frame.slice(start, at_most), lambda row, b=batch, s=start: b.place(s + row))  # type: ignore[misc]


class CommonIdType:
    """What the ids of one column are, in all pieces together: text, or integers of 64 bits with or without a sign.

    Examples
    --------
    >>> users = CommonIdType("a.csv, column 'user'")
    >>> users.include(np.array([3, 5]))
    >>> users.include(np.array(["bob"], np.dtypes.StringDType()))
    Traceback (most recent call last):
    dpals.errors.InputError: a.csv, column 'user': mixed id types: text in some rows and integers in others. \
Make them all integers or all text
    """

    def __init__(self, where: str) -> None:
        self.dtype: Any = None
        """None until there is an id."""
        self._where = where
        self._lowest, self._highest = 0, 0

    def include(self, ids: NDArray[Any]) -> None:
        """Take account of ids, or raise where they do not go together with those before."""
        if not len(ids):
            return
        text = is_text(ids)
        if self.dtype is not None and text != isinstance(self.dtype, np.dtypes.StringDType):
            raise InputError(
                f"{self._where}: mixed id types: text in some rows and integers in others. Make them all integers or "
                "all text"
            )
        if text:
            self.dtype = ids.dtype
            return
        self._lowest, self._highest = min(self._lowest, int(ids.min())), max(self._highest, int(ids.max()))
        self.dtype = np.dtype(np.uint64 if self._highest > _LARGEST else np.int64)
        if self._lowest < 0 and self.dtype == np.uint64:
            raise InputError(
                f"{self._where}: ids from {self._lowest} to {self._highest} do not fit in 64 bits. Make them text"
            )
