"""Columns of arrays and frames, as the series that the builder takes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from dpals.errors import InputError
from dpals.intake.columns import Columns, Wanted
from dpals.intake.ids import Place, id_series, row_of_array
from dpals.intake.rows import BadRows, Batch


class ArraySource:
    """One array per column, as `Ratings.from_arrays` takes them."""

    name = "the arrays"

    def __init__(self, users: Any, items: Any, values: Any, timestamps: Any) -> None:
        arrays = {"users": users, "items": items, "values": values, "timestamps": timestamps}
        self._arrays = {name: array for name, array in arrays.items() if array is not None}
        self.columns = Columns(
            "users",
            "items",
            "values" if values is not None else None,
            "timestamps" if timestamps is not None else None,
        )

    def batches(self, bad: BadRows) -> Iterator[Batch]:  # noqa: ARG002
        """Give everything at once."""
        yield typed_batch(self._arrays, self.columns, row_of_array)


class FrameSource:
    """A pandas or polars frame, an Arrow table, or anything with the Arrow stream interface."""

    def __init__(self, frame: Any, wanted: Wanted, name: str = "the frame") -> None:
        self.name, kind = name, type(frame).__name__
        if isinstance(frame, pl.LazyFrame):
            names = frame.collect_schema().names()
        elif is_pandas(frame):  # column by column, for those that Arrow would refuse
            names = [str(name) for name in frame.columns]
        else:
            try:
                frame = pl.DataFrame(frame) if hasattr(frame, "__arrow_c_stream__") else None
            except pl.exceptions.PolarsError:  # a single column speaks Arrow, too
                frame = None
            if frame is None:
                raise InputError(f"expected a pandas or polars frame or an Arrow table, not {kind}")
            names = frame.columns
        self.columns = wanted.find(names, self.name)
        used = list(self.columns.used().values())
        self._frame = frame.select(used).collect() if isinstance(frame, pl.LazyFrame) else frame[used]

    def batches(self, bad: BadRows) -> Iterator[Batch]:  # noqa: ARG002
        """Give everything at once."""
        yield typed_batch(self._frame, self.columns, row_of_array)


def is_pandas(frame: Any) -> bool:
    """Whether something is a pandas frame, without importing pandas."""
    return hasattr(frame, "iloc") and hasattr(frame, "columns")


def typed_batch(columns_by_name: Any, columns: Columns, place: Place) -> Batch:
    """Convert the columns that are used to the types of a batch."""
    convert = {"user": id_series, "item": id_series, "rating": rating_series, "timestamp": timestamp_series}
    series = {role: convert[role](columns_by_name[name], name, place) for role, name in columns.used().items()}
    lengths = {columns.used()[role]: len(column) for role, column in series.items()}
    if len(set(lengths.values())) > 1:
        raise InputError("columns of different lengths: " + ", ".join(f"{k} has {n:,}" for k, n in lengths.items()))
    return Batch(pl.DataFrame(series), place)


def rating_series(values: Any, column: str, place: Place = row_of_array) -> pl.Series:
    """Ratings in single precision, null where one is missing.

    Examples
    --------
    >>> rating_series([3, None, 4.5], "stars").to_list()
    [3.0, None, 4.5]
    """
    series = _number_series(values, column, place)
    if not (series.dtype.is_numeric() or series.dtype == pl.Null):
        raise InputError(f"column {column!r} holds {series.dtype} values, but ratings are numbers. Convert it first")
    return series.cast(pl.Float32)


def timestamp_series(values: Any, column: str, place: Place = row_of_array) -> pl.Series:
    """Timestamps as whole numbers, seconds since 1970 for dates and times; null where one is missing.

    Examples
    --------
    >>> from datetime import date
    >>> timestamp_series([date(1970, 1, 2), None], "when").to_list()
    [86400, None]
    """
    series = _number_series(values, column, place)
    if series.dtype.is_temporal() and series.dtype not in (pl.Duration, pl.Time):
        return series.dt.epoch("s")
    if series.dtype.is_float():
        return series.floor().cast(pl.Int64, strict=False)
    if not (series.dtype.is_integer() or series.dtype == pl.Null):
        raise InputError(
            f"column {column!r} holds {series.dtype} values, but timestamps are numbers or dates. Convert it first"
        )
    return series.cast(pl.Int64, strict=False)


def _number_series(values: Any, column: str, place: Place) -> pl.Series:
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise InputError(f"column {column!r}: expected a list or an array, not {values!r}")
    try:
        series = pl.Series(values)
        if series.dtype == pl.Object:
            raise TypeError("a mixture of types")
        return series
    except Exception:
        objects = values.tolist() if isinstance(values, np.ndarray) else list(values)
    for row, value in enumerate(objects):
        try:
            None if value is None else float(value)
        except (TypeError, ValueError):
            raise InputError(f"{place(row)}, column {column!r}: {value!r} is not a number") from None
    return pl.Series(objects, dtype=pl.Float64, strict=False)
