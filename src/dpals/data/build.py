"""Ratings from any source: read its batches, check the rows, number the ids, sort."""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpals.data.bad_rows import BadRows, Place, ReadingReport
from dpals.data.columns import IdType
from dpals.data.deduplicate import Arrays, sort_and_deduplicate
from dpals.data.id_encoder import GrowingArray, IdEncoder
from dpals.data.ids import id_array, is_text, positions, to_array, to_series, type_name
from dpals.data.rating_arrays import Range, SomeRatings, checked_range
from dpals.data.row_checks import usable_rows
from dpals.data.sources import Batch, Source
from dpals.errors import InputError
from dpals.kernels.grouping import take

_UNREADABLE, _OUTSIDE = np.int32(-1), np.int32(-2)
"""What stands in place of the position of an item: its id could not be read, or is not in the catalogue."""


def build(
    ratings_class: type[SomeRatings],
    source: Source,
    *,
    rating_range: Range | None,
    catalogue: Any,
    bad: BadRows,
    ids: IdType = "given",
    user_ids: IdType | None = None,
) -> SomeRatings:
    """Read a source to its end and make ratings of it, or raise where no row can be used.

    Parameters
    ----------
    ratings_class
        `Ratings` or a subclass of it.
    source
        Where the rows come from.
    rating_range, catalogue
        As in `Ratings.from_arrays`.
    bad
        What to do about rows that cannot be used.
    ids, user_ids
        What the ids are; user ids may be of another type than item ids.
    """
    ratings = build_even_if_empty(
        ratings_class, source, rating_range=rating_range, catalogue=catalogue, bad=bad, ids=ids, user_ids=user_ids
    )
    if not ratings.n_users:
        refuse_if_all_dropped(source.name, ratings.report)
    return ratings


def refuse_if_all_dropped(name: str, report: ReadingReport) -> None:
    """Raise where there were rows and none of them could be used."""
    if report.rows_read:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in report.rows_dropped.items())
        raise InputError(f"{name}: no row is left: all {report.rows_read:,} were dropped ({reasons})")


def refuse_if_no_rows(name: str, report: ReadingReport) -> None:
    """Raise where a file has a header and nothing below it."""
    if report.rows_read == 0:
        raise InputError(f"{name}: there are columns but no row of data")


def build_even_if_empty(
    ratings_class: type[SomeRatings],
    source: Source,
    *,
    rating_range: Range | None,
    catalogue: Any,
    bad: BadRows,
    ids: IdType,
    user_ids: IdType | None = None,
) -> SomeRatings:
    """Do the work of `build`, and make empty ratings where no row can be used."""
    names = source.columns.used()
    limits = checked_range(rating_range, has_ratings="rating" in names)
    declared = None if catalogue is None else id_array(catalogue, "catalogue")
    collected = _RowCollector(names, user_ids or ids, ids, declared)
    for batch in source.batches(bad):
        collected.add(usable_rows(batch, names, limits, bad))
    columns, users, items = collected.finish(bad)
    return sort_and_deduplicate(
        ratings_class,
        columns,
        users=users,
        items=items,
        rating_range=limits,
        catalogue_declared=declared is not None,
        rows_dropped=bad.dropped,
        schema=f"{source.schema} User ids are {type_name(users)}." if source.schema else "",
    )


class _RowCollector:
    """The rows of all batches, with numbers in place of ids, so that they take little memory."""

    def __init__(
        self, names: Mapping[str, str], user_ids: IdType, item_ids: IdType, catalogue: NDArray[Any] | None
    ) -> None:
        if item_ids != "given" and catalogue is not None:
            item_ids = "string" if is_text(catalogue) else "integer"
        self._catalogue = catalogue
        self._item_column = names["item"]
        self._ids = {
            "user": IdEncoder("user", names["user"], user_ids),
            "item": IdEncoder("item", names["item"], item_ids),
        }
        types = {"rating": np.float32, "timestamp": np.int64}
        self._numbers = {role: GrowingArray(dtype) for role, dtype in types.items() if role in names}
        self._starts = [0]
        self._places: list[Place] = []

    def add(self, batch: Batch) -> None:
        for role, encoder in self._ids.items():
            encoder.add(batch.frame[role], batch.place)
        for role, numbers in self._numbers.items():
            numbers.append(batch.frame[role].to_numpy())
        self._starts.append(self._starts[-1] + batch.frame.height)
        self._places.append(batch.place)

    def finish(self, bad: BadRows) -> tuple[Arrays, NDArray[Any], NDArray[Any]]:
        """Return the columns, with indices in place of ids, and the ids of users and items."""
        columns: Arrays = {}
        columns["user"], users = self._ids["user"].finish(bad, self._place)
        columns["item"], items = self._ids["item"].finish(bad, self._place)
        if self._catalogue is not None:
            columns["item"] = self._in_catalogue(columns["item"], items, self._catalogue, bad)
            items = self._catalogue
        for role in list(self._numbers):
            columns[role] = self._numbers.pop(role).finish()
        if any(columns[role].size and columns[role].min() < 0 for role in self._ids):
            usable = (columns["user"] >= 0) & (columns["item"] >= 0)
            staying = usable
            if bad.unknown_items == "drop":
                staying = (columns["user"] >= 0) & (columns["item"] != _UNREADABLE)
            remaining = np.bincount(columns["user"][staying], minlength=len(users)) > 0
            for role in columns:
                columns[role] = columns[role][usable]
            columns["user"], users = _without_unused(columns["user"], users, remaining)
            if self._catalogue is None:
                used = np.bincount(columns["item"], minlength=len(items)) > 0
                columns["item"], items = _without_unused(columns["item"], items, used)
        return columns, users, items

    def _place(self, row: int) -> str:
        batch = bisect_right(self._starts, row) - 1
        return self._places[batch](row - self._starts[batch])

    def _in_catalogue(
        self, codes: NDArray[np.int32], ids: NDArray[Any], catalogue: NDArray[Any], bad: BadRows
    ) -> NDArray[np.int32]:
        """Return positions in the catalogue, a number below 0 for items that are not in it."""
        if not len(ids):
            return codes
        if is_text(catalogue) and not is_text(ids):
            ids = to_array(to_series(ids).cast(pl.String))
        if len(catalogue) and is_text(ids) != is_text(catalogue):
            raise InputError(
                f"column {self._item_column!r} holds text and the catalogue integers: turn the ids in the column into "
                "integers"
            )
        place_of = positions(catalogue, ids).astype(np.int32)
        place_of[place_of < 0] = _OUTSIDE
        at = take(np.append(place_of, _UNREADABLE), codes)  # the last for codes that are -1
        outside = at == _OUTSIDE
        if outside.any():
            row = int(np.argmax(outside))
            where = f"{self._place(row)}, column {self._item_column!r}"
            bad.found_unknown_items(int(np.count_nonzero(outside)), where, ids.tolist()[codes[row]])
        return at


def _without_unused(
    codes: NDArray[np.int32], ids: NDArray[Any], used: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Leave out the ids that are not used."""
    if used.all():
        return codes, ids
    return (np.cumsum(used, dtype=np.int32) - np.int32(1))[codes], ids[used]
