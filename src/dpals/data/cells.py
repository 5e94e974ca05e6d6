"""Cells of a column: read as the type that the column has, or one by one, each by itself.

A column of a frame, an array or a Parquet file says what its cells are. Lists and text do not, so a rule reads each of
their cells and looks at that cell alone. What the other cells hold changes nothing.
"""

from collections.abc import Callable
from math import isnan
from typing import Any

import numpy as np
import polars as pl

from dpals.data.bad_rows import Place
from dpals.errors import InputError

BLANKS = " \t\ufeff"
"""Around a cell of a text file they do not count: blanks, tabs and byte order marks, wherever in the file they are."""


def typed_series(values: Any, column: str) -> pl.Series | None:
    """A column whose container gives it a type, as a series; None for lists and the like, to be read one by one.

    Nothing is inferred from the elements of a list: one of them would then decide what all the others are.

    Examples
    --------
    >>> typed_series(np.array([1, 2]), "user").dtype
    Int64
    >>> typed_series([1, 2], "user")
    """
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise InputError(f"column {column!r}: expected a list or an array, not {values!r}")
    if getattr(values, "ndim", 1) != 1:
        raise InputError(f"column {column!r}: expected one dimension, not the shape {values.shape}")
    if not any(hasattr(values, name) for name in ("dtype", "__arrow_c_array__", "__arrow_c_stream__")):
        return None
    try:
        series = pl.Series([], dtype=pl.Object) if str(getattr(values, "dtype", "")) == "object" else pl.Series(values)
    except Exception:  # a type that polars does not know, or a pandas column without pyarrow
        return None
    return None if series.dtype == pl.Object else series


def is_missing(value: object) -> bool:
    """Whether a Python object stands for a missing value.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), 0, "")]
    [True, True, False, False]
    """
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and isnan(value))


def convert_objects(values: Any, convert: Callable[[Any], Any], column: str, place: Place) -> list[Any]:
    """Convert Python objects one by one, None where one is missing; an error names the first that is not a number."""
    converted = []
    for row, value in enumerate(values.tolist() if hasattr(values, "tolist") else values):
        try:
            converted.append(None if is_missing(value) else convert(value))
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{place(row)}, column {column!r}: {value!r} is not a number") from None
    return converted


def parse_texts(
    texts: pl.Series, dtype: type[pl.DataType], parse: Callable[[str], float | None]
) -> tuple[pl.Series, pl.Series]:
    """Numbers in texts, null where one is missing; and in which cells there is something else.

    polars takes the plainest spellings only. Python reads each cell that polars leaves.
    """
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


def number_of(value: Any) -> float:
    """A Python object as a number; TypeError or ValueError if it is not one."""
    if isinstance(value, str | bytes | bool | np.bool_):
        raise TypeError("not a number")
    return float(value)


def number_in(text: str) -> float | None:
    """The number that a text stands for, None for a blank one; ValueError if it is not a number.

    Examples
    --------
    >>> number_in(" 4.5 "), number_in("")
    (4.5, None)
    """
    if "_" in text:
        raise ValueError("Python allows 1_000, tables do not")
    text = text.strip(BLANKS)
    return float(text) if text.strip() else None
