"""Ratings, each made from its own cell alone.

A rating is the nearest single-precision number to the nearest double-precision one, with a plain zero for -0.
"""

from typing import Any

import polars as pl

from dpals.data.bad_rows import Place, row_of_array
from dpals.data.cells import convert_objects, number_in, number_of, parse_texts, typed_series
from dpals.errors import InputError


def rating_series(values: Any, column: str, place: Place = row_of_array) -> pl.Series:
    """Ratings in single precision, null where one is missing.

    Examples
    --------
    >>> rating_series([3, None, 4.5], "stars").to_list()
    [3.0, None, 4.5]
    """
    series = typed_series(values, column)
    if series is None:
        return _single(pl.Series(convert_objects(values, number_of, column, place), dtype=pl.Float64))
    if not (series.dtype.is_numeric() or series.dtype == pl.Null):
        raise InputError(f"column {column!r} holds {series.dtype} values, but ratings are numbers. Convert it first")
    return _single(series.cast(pl.Float64))


def parse_ratings(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Ratings in single precision, null where one is missing; and in which cells there is something else.

    Examples
    --------
    >>> numbers, unreadable = parse_ratings(pl.Series(["3", " 4.5 ", "", "good"]))
    >>> numbers.to_list(), unreadable.to_list()
    ([3.0, 4.5, None, None], [False, False, False, True])
    """
    numbers, unreadable = parse_texts(texts, pl.Float64, number_in)
    return _single(numbers), unreadable


def _single(numbers: pl.Series) -> pl.Series:
    """In single precision, with 0 in place of -0."""
    single = numbers.cast(pl.Float32)
    return pl.select(pl.when(single == 0).then(pl.lit(0, pl.Float32)).otherwise(single)).to_series()
