"""Timestamps, each made from its own cell alone.

A timestamp is a whole number: decimals are rounded down, and a date becomes the seconds since 1970 (UTC).
"""

from datetime import UTC, date, datetime
from math import floor, isfinite
from typing import Any

import numpy as np
import polars as pl

from dpals.data.bad_rows import Place, row_of_array
from dpals.data.cells import BLANKS, convert_objects, number_in, number_of, parse_texts, typed_series
from dpals.errors import InputError

_EXACT = 2.0**53
"""From here on, decimal numbers are too coarse to tell one whole number from the next: they count as missing."""
_INT64 = range(-(2**63), 2**63)


def timestamp_series(values: Any, column: str, place: Place = row_of_array) -> pl.Series:
    """Timestamps as whole numbers, seconds since 1970 for dates and times; null where one is missing.

    Examples
    --------
    >>> timestamp_series([date(1970, 1, 2), None, 1700000000000000001, 1.5], "when").to_list()
    [86400, None, 1700000000000000001, 1]
    """
    series = typed_series(values, column)
    if series is None:
        return pl.Series(convert_objects(values, _from_object, column, place), dtype=pl.Int64)
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


def parse_timestamps(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Timestamps as whole numbers, null where one is missing; and in which cells there is something else.

    Examples
    --------
    >>> parse_timestamps(pl.Series(["7", "8.9", "1970-01-01T00:01"]))[0].to_list()
    [7, 8, 60]
    """
    return parse_texts(texts, pl.Int64, _from_text)


def _from_object(value: Any) -> int | None:
    """The rule for a Python object; None for what does not fit in 64 bits."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        return _seconds(moment)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        number = int(value)
    else:
        exact = number_of(value)
        number = floor(exact) if abs(exact) < _EXACT else 2**63
    return number if number in _INT64 else None


def _from_text(text: str) -> int | None:
    """The rule for a text: a whole number, a decimal one or an ISO date."""
    text = text.strip(BLANKS).strip()
    if not text:
        return None
    try:
        exact = number_in(text)
    except ValueError:
        return _seconds(datetime.fromisoformat(text))
    try:
        number = int(text)
    except ValueError:
        number = floor(exact) if exact is not None and isfinite(exact) else 2**63
    if number not in _INT64:
        raise ValueError("does not fit in 64 bits")
    return number


def _seconds(moment: datetime) -> int:
    """Seconds since 1970, rounded down; where there is no time zone it is UTC."""
    return floor((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
