"""Ratings and times, each made from its own cell alone.

A rating is the nearest single-precision number to the nearest double-precision one, with a plain zero for -0. A time
is a whole number: decimals are rounded down, and a date becomes the seconds since 1970 (UTC). What the other cells of a
column hold changes neither. A column that has a type, of a frame, an array or a Parquet file, says what its cells are;
lists and text are read cell by cell.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime
from math import floor, isfinite
from typing import Any

import numpy as np
import polars as pl

from dpals.data.ids import BLANKS, Place, is_missing, row_of_array, typed_series
from dpals.errors import InputError

_EXACT = 2.0**53
"""From here on a decimal number does not tell a time from the next: it counts as missing."""
_INT64 = range(-(2**63), 2**63)


def rating_series(values: Any, column: str, place: Place = row_of_array) -> pl.Series:
    """Ratings in single precision, null where one is missing.

    Examples
    --------
    >>> rating_series([3, None, 4.5], "stars").to_list()
    [3.0, None, 4.5]
    """
    series = typed_series(values, column)
    if series is None:
        return _single(pl.Series(_each(values, _rating, column, place), dtype=pl.Float64))
    if not (series.dtype.is_numeric() or series.dtype == pl.Null):
        raise InputError(f"column {column!r} holds {series.dtype} values, but ratings are numbers. Convert it first")
    return _single(series.cast(pl.Float64))


def timestamp_series(values: Any, column: str, place: Place = row_of_array) -> pl.Series:
    """Timestamps as whole numbers, seconds since 1970 for dates and times; null where one is missing.

    Examples
    --------
    >>> timestamp_series([date(1970, 1, 2), None, 1700000000000000001, 1.5], "when").to_list()
    [86400, None, 1700000000000000001, 1]
    """
    series = typed_series(values, column)
    if series is None:
        return pl.Series(_each(values, _timestamp, column, place), dtype=pl.Int64)
    if series.dtype.is_temporal() and series.dtype not in (pl.Duration, pl.Time):
        return series.dt.epoch("s")
    if series.dtype.is_float():
        exact = pl.when(series.abs() < _EXACT).then(series.floor())
        return pl.select(exact).to_series().cast(pl.Int64)
    if not (series.dtype.is_integer() or series.dtype == pl.Null):
        raise InputError(
            f"column {column!r} holds {series.dtype} values, but timestamps are numbers or dates. Convert it first"
        )
    return series.cast(pl.Int64, strict=False)


def read_ratings_as_text(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Ratings in single precision, null where one is missing; and in which cells there is something else.

    Examples
    --------
    >>> numbers, unreadable = read_ratings_as_text(pl.Series(["3", " 4.5 ", "", "good"]))
    >>> numbers.to_list(), unreadable.to_list()
    ([3.0, 4.5, None, None], [False, False, False, True])
    """
    numbers, unreadable = _read(texts, pl.Float64, _rating_in)
    return _single(numbers), unreadable


def read_timestamps_as_text(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Times as whole numbers, null where one is missing; and in which cells there is something else.

    Examples
    --------
    >>> read_timestamps_as_text(pl.Series(["7", "8.9", "1970-01-01T00:01"]))[0].to_list()
    [7, 8, 60]
    """
    return _read(texts, pl.Int64, _timestamp_in)


def _read(
    texts: pl.Series, dtype: type[pl.DataType], parse: Callable[[str], float | None]
) -> tuple[pl.Series, pl.Series]:
    """Numbers by polars, which takes the plainest spellings only, and by Python for each cell that polars leaves."""
    numbers = texts.cast(dtype, strict=False)
    left = numbers.is_null()
    unreadable = np.zeros(len(texts), np.bool_)
    if not left.any():
        return numbers, pl.Series(unreadable)
    rows, values = left.arg_true(), []
    for row, text in zip(rows, texts.filter(left), strict=True):
        try:
            values.append(parse(text or ""))
        except ValueError:
            values.append(None)
            unreadable[row] = True
    return numbers.scatter(rows, pl.Series(values, dtype=dtype)), pl.Series(unreadable)


def _single(numbers: pl.Series) -> pl.Series:
    """In single precision, with 0 in place of -0."""
    single = numbers.cast(pl.Float32)
    return pl.select(pl.when(single == 0).then(pl.lit(0, pl.Float32)).otherwise(single)).to_series()


def _each(values: Any, convert: Callable[[Any], Any], column: str, place: Place) -> list[Any]:
    """Convert Python objects one by one; the first that cannot be is named."""
    converted = []
    for row, value in enumerate(values.tolist() if hasattr(values, "tolist") else values):
        try:
            converted.append(None if is_missing(value) else convert(value))
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{place(row)}, column {column!r}: {value!r} is not a number") from None
    return converted


def _rating(value: Any) -> float:
    if isinstance(value, str | bytes | bool | np.bool_):
        raise TypeError("not a number")
    return float(value)


def _timestamp(value: Any) -> int | None:
    """The rule for a Python object; None for what does not fit in 64 bits."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        return _seconds(moment)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        number = int(value)
    else:
        exact = _rating(value)
        number = floor(exact) if abs(exact) < _EXACT else 2**63
    return number if number in _INT64 else None


def _seconds(moment: datetime) -> int:
    """Seconds since 1970, rounded down; where there is no time zone it is UTC."""
    return floor((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _rating_in(text: str) -> float | None:
    if "_" in text:
        raise ValueError("Python allows 1_000, tables do not")
    text = text.strip(BLANKS)
    return float(text) if text.strip() else None


def _timestamp_in(text: str) -> int | None:
    """The rule for a text: a whole number, a decimal one or an ISO date."""
    text = text.strip(BLANKS).strip()
    if not text:
        return None
    try:
        exact = _rating_in(text)
    except ValueError:
        return _seconds(datetime.fromisoformat(text))
    try:
        number = int(text)
    except ValueError:
        number = floor(exact) if exact is not None and isfinite(exact) else 2**63
    if number not in _INT64:
        raise ValueError("does not fit in 64 bits")
    return number
