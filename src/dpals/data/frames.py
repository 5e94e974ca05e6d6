"""Rows from arrays, one for each column, and from frames: pandas, polars, Arrow."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from dpals.data.bad_rows import BadRows, Place, row_of_array
from dpals.data.columns import ColumnOptions, Columns
from dpals.data.ids import id_series
from dpals.data.rating_values import rating_series
from dpals.data.sources import Batch
from dpals.data.timestamps import timestamp_series
from dpals.errors import InputError

BATCH_ROWS = 500_000


class ArraySource:
    """One array per column, as `Ratings.from_arrays` takes them."""

    name = "the arrays"
    schema = ""

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

    def __init__(self, frame: Any, options: ColumnOptions, name: str = "the frame") -> None:
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
        self.columns = options.find(names, self.name)
        self.schema = self.columns.declared_by("The frame")
        used = list(self.columns.used().values())
        self._frame = frame.select(used) if isinstance(frame, pl.LazyFrame) else frame[used]

    def batches(self, bad: BadRows) -> Iterator[Batch]:  # noqa: ARG002
        """Give everything at once, but a lazy frame, which may be larger than memory, slice by slice."""
        if not isinstance(self._frame, pl.LazyFrame):
            yield typed_batch(self._frame, self.columns, row_of_array)
            return
        start = 0
        for frame in self._frame.collect_batches(chunk_size=BATCH_ROWS):
            yield typed_batch(frame, self.columns, lambda row, start=start: row_of_array(start + row))  # type: ignore[misc]
            start += frame.height


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
