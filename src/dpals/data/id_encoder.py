"""Ids numbered: from columns that come in batches to one index for each row, and the sorted ids."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

from dpals.data.bad_rows import BadRows, Place
from dpals.data.cells import BLANKS
from dpals.data.columns import IdType
from dpals.data.ids import to_array
from dpals.errors import InputError

PLAIN_INTEGER = r"0|-?[1-9][0-9]*"
"""Integers that text can be turned into and back without loss: no plus sign, no leading zeros."""

_CHUNK = 1 << 20


class GrowingArray:
    """An array to append to, in memory that grows in place where the system can, instead of pieces to join.

    Examples
    --------
    >>> array = GrowingArray(np.int32)
    >>> array.append(np.array([1, 2]))
    >>> array.append(np.array([3]))
    >>> array.finish()
    array([1, 2, 3], dtype=int32)
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self._array: NDArray[Any] = np.empty(_CHUNK, dtype)
        self._length = 0

    def append(self, values: NDArray[Any]) -> None:
        """Add values, which must fit the type of the array."""
        length = self._length + len(values)
        if length > len(self._array):
            self._array.resize(max(length, len(self._array) * 9 // 8), refcheck=False)
        self._array[self._length : length] = values
        self._length = length

    def view(self) -> NDArray[Any]:
        """What is in the array so far, to be used before the next change."""
        return self._array[: self._length]

    def widen(self, dtype: DTypeLike) -> None:
        """Change the type."""
        self._array = self._array.astype(dtype, copy=False)

    def finish(self) -> NDArray[Any]:
        """Give the array away; nothing can be appended afterwards."""
        array, self._array = self._array, np.empty(0, self._array.dtype)
        array.resize(self._length, refcheck=False)
        return array


class IdEncoder:
    """Gathers the ids of users or of items; in the end numbers them in sorted order.

    What it keeps of a batch is four bytes a row and the distinct ids.

    Parameters
    ----------
    role
        "user" or "item".
    column
        Name of the column, for messages.
    id_type
        What the ids are.

    Examples
    --------
    >>> encoder = IdEncoder("user", "uid", "integer")
    >>> encoder.add(pl.Series(["30", "4", "30"]), str)
    >>> encoder.add(pl.Series(["9"]), str)
    >>> encoder.finish(BadRows("error"), str)
    (array([2, 0, 2, 1], dtype=int32), array([ 4,  9, 30]))
    """

    def __init__(self, role: str, column: str, id_type: IdType) -> None:
        self.role = role
        self.column = column
        self.id_type = id_type
        self._rows = GrowingArray(np.int32)
        """Integer ids themselves; for text, where the id is in the distinct texts of all batches together."""
        self._distinct_texts: list[pl.Series] = []
        self._n_distinct = 0
        self._compact_above = _CHUNK
        self._limits: tuple[int, int] | None = None

    def add(self, ids: pl.Series, place: Place) -> None:
        """Take the ids of a batch, none of them missing."""
        if ids.is_empty():
            return
        if self.id_type == "string":
            ids = ids.cast(pl.String)
        is_text = ids.dtype == pl.String
        if self._limits is not None if is_text else self._distinct_texts:
            kinds = ("text", "integers") if is_text else ("an integer", "text")
            raise InputError(
                f"{place(0)}, column {self.column!r}: mixed id types: {ids[0]!r} is {kinds[0]} but the ids "
                f"before it are {kinds[1]}. Make them all integers or all text"
            )
        if is_text:
            distinct = ids.unique()
            self._rows.append(_codes(ids, distinct) + np.int32(self._n_distinct))
            self._distinct_texts.append(distinct)
            self._n_distinct += len(distinct)
            if self._n_distinct > self._compact_above:
                self._compact()
        else:
            self._add_numbers(ids.to_numpy(), place)

    def _add_numbers(self, ids: NDArray[np.integer], place: Place) -> None:
        low, high = int(ids.min()), int(ids.max())
        if self._limits is not None:
            low, high = min(low, self._limits[0]), max(high, self._limits[1])
        dtype = _integer_type(low, high)
        if dtype is None:
            raise InputError(
                f"{place(0)} or after, column {self.column!r}: ids from {low} to {high} do not fit in 64 "
                "bits. Make them text"
            )
        self._limits = low, high
        self._rows.widen(dtype)
        self._rows.append(ids)

    def _compact(self) -> None:
        """Keep ids once that were distinct within several batches."""
        texts = pl.concat(self._distinct_texts)
        distinct = texts.unique()
        _replace(self._rows.view(), _codes(texts, distinct))
        self._distinct_texts = [distinct]
        self._n_distinct = len(distinct)
        self._compact_above = max(_CHUNK, 2 * len(distinct))

    def finish(self, bad: BadRows, place: Place) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Number the ids. A row whose id is not what the others are goes to `bad` and gets -1."""
        if self._limits is not None:
            return _number_integers(self._rows.finish(), *self._limits)
        if self._distinct_texts:
            return self._number_texts(self._rows.finish(), pl.concat(self._distinct_texts), bad, place)
        return np.empty(0, np.int32), np.empty(0, np.int64)

    def _number_texts(
        self, rows: NDArray[np.int32], texts: pl.Series, bad: BadRows, place: Place
    ) -> tuple[NDArray[np.int32], NDArray[Any]]:
        if self.id_type != "integer":
            sorted_texts = texts.unique().sort()
            ids = to_array(sorted_texts)
            rank = _codes(texts, sorted_texts)
        else:
            numbers = _as_integers(texts)
            is_integer = numbers.is_not_null().to_numpy()
            ids, inverse = np.unique(to_array(numbers.drop_nulls()), return_inverse=True)
            rank = np.full(len(texts), -1, np.int32)
            rank[is_integer] = inverse
            if not is_integer.all():
                refused = rank[rows] < 0
                row = int(np.argmax(refused))
                bad.found(
                    f"{self.role} id that is not an integer",
                    int(np.count_nonzero(refused)),
                    f"{place(row)}, column {self.column!r}",
                    f"{texts[int(rows[row])]!r} is not a plain 64-bit integer, and ids here must be: the catalogue, "
                    "the argument ids or the format says so",
                )
        _replace(rows, rank)
        return rows, ids


def _as_integers(texts: pl.Series) -> pl.Series:
    """The integers that texts stand for, null where a text is not an integer that fits in 64 bits."""
    stripped = texts.str.strip_chars(BLANKS)
    is_plain = stripped.str.contains(f"^({PLAIN_INTEGER})$")
    return pl.select(pl.when(is_plain).then(stripped)).to_series().cast(pl.Int64, strict=False)


def _codes(texts: pl.Series, distinct: pl.Series) -> NDArray[np.int32]:
    """Find where each text is among the distinct ones."""
    return texts.cast(pl.Enum(distinct)).to_physical().to_numpy().astype(np.int32)


def _replace(codes: NDArray[np.int32], new_codes: NDArray[np.int32]) -> None:
    """Put a new code for each code, in place."""
    for chunk in _chunks(codes):
        chunk[:] = new_codes[chunk]


def _number_integers(numbers: NDArray[Any], low: int, high: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
    dtype = numbers.dtype
    codes = numbers if dtype == np.int32 else np.empty(len(numbers), np.int32)
    span = high - low + 1
    if span > max(len(numbers) // 4, _CHUNK):
        ids = pl.Series(numbers).unique().sort().to_numpy()
        for chunk, coded in zip(_chunks(numbers), _chunks(codes), strict=True):
            coded[:] = np.searchsorted(ids, chunk)
    else:  # a table of all integers from low to high is quicker than a search
        seen = np.zeros(span, np.bool_)
        for chunk in _chunks(numbers):
            seen[chunk - dtype.type(low)] = True
        ids = np.flatnonzero(seen).astype(dtype) + dtype.type(low)
        rank = np.cumsum(seen, dtype=np.int32) - np.int32(1)
        for chunk, coded in zip(_chunks(numbers), _chunks(codes), strict=True):
            coded[:] = rank[chunk - dtype.type(low)]
    return codes, ids.astype(np.uint64 if dtype == np.uint64 else np.int64)


def _integer_type(low: int, high: int) -> "np.dtype[Any] | None":
    """Find the smallest type that holds ids from low to high."""
    for candidate in (np.int32, np.int64, np.uint64):
        limits = np.iinfo(candidate)
        if limits.min <= low and high <= limits.max:
            return np.dtype(candidate)
    return None


def _chunks(array: NDArray[Any]) -> list[NDArray[Any]]:
    """Views of consecutive parts, so that the arrays that numpy makes in between are small."""
    return [array[start : start + _CHUNK] for start in range(0, len(array), _CHUNK)]
