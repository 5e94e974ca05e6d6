"""Build Ratings from a source: check its rows, number the ids, sort, keep the latest of duplicates."""

from bisect import bisect_right
from collections.abc import Mapping
from math import isfinite
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpals.data.id_encoder import GrowingArray, IdEncoder, IdMeaning
from dpals.data.ids import Place, id_array, is_text, positions, to_array, to_series, type_name
from dpals.data.ratings import Ratings, ReadingReport
from dpals.data.sources import BadRows, Batch, Source
from dpals.errors import InputError, RangeMissingError
from dpals.kernels.grouping import order_by_user_and_item, take

SomeRatings = TypeVar("SomeRatings", bound=Ratings)
Range = tuple[float, float]
Arrays = dict[str, NDArray[Any]]

_UNREADABLE, _OUTSIDE = np.int32(-1), np.int32(-2)
"""What stands in place of the position of an item: its id could not be read, or is not in the catalogue."""


def build(
    kind: type[SomeRatings],
    source: Source,
    *,
    rating_range: Range | None,
    catalogue: Any,
    bad: BadRows,
    ids: IdMeaning = "given",
    user_ids: IdMeaning | None = None,
) -> SomeRatings:
    """Read a source to its end and make ratings of it, or raise where no row can be used.

    Parameters
    ----------
    kind
        `Ratings` or a subclass of it.
    source
        Where the rows come from.
    rating_range, catalogue
        As in `Ratings.from_arrays`.
    bad
        What to do about rows that cannot be used.
    ids, user_ids
        What the ids are; those of users may be something else.
    """
    ratings = gather(kind, source, rating_range=rating_range, catalogue=catalogue, bad=bad, ids=ids, user_ids=user_ids)
    if not ratings.n_users:
        refuse_if_all_dropped(source.name, ratings.report)
    return ratings


def refuse_if_all_dropped(name: str, report: ReadingReport) -> None:
    """Raise where there were rows and none of them could be used."""
    if report.rows_read:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in report.rows_dropped.items())
        raise InputError(f"{name}: no row is left: all {report.rows_read:,} were dropped ({reasons})")


def gather(
    kind: type[SomeRatings],
    source: Source,
    *,
    rating_range: Range | None,
    catalogue: Any,
    bad: BadRows,
    ids: IdMeaning,
    user_ids: IdMeaning | None = None,
) -> SomeRatings:
    """Do the work of `build`, and make empty ratings where no row can be used."""
    names = source.columns.used()
    limits = checked_range(rating_range, has_ratings="rating" in names)
    declared = None if catalogue is None else id_array(catalogue, "catalogue")
    gathered = _Gathered(names, user_ids or ids, ids, declared)
    for batch in source.batches(bad):
        gathered.add(_usable(batch, names, limits, bad))
    columns, users, items = gathered.finish(bad)
    return assemble(
        kind,
        columns,
        users=users,
        items=items,
        rating_range=limits,
        catalogue_declared=declared is not None,
        rows_dropped=bad.dropped,
        schema=f"{source.schema} User ids are {type_name(users)}." if source.schema else "",
    )


def assemble(
    kind: type[SomeRatings],
    columns: Arrays,
    *,
    users: NDArray[Any],
    items: NDArray[Any],
    rating_range: Range | None,
    catalogue_declared: bool,
    rows_dropped: Mapping[str, int],
    schema: str = "",
    anonymous: bool = False,
) -> SomeRatings:
    """Sort rows into a sparse matrix. Empties `columns` on the way, to hold no column twice for long."""
    n_rows = len(columns["user"])
    indptr, order = order_by_user_and_item(
        columns.pop("user"), columns["item"], columns.get("timestamp"), columns.get("rating"), n_users=len(users)
    )
    sorted_columns = {role: take(columns.pop(role), order) for role in list(columns)}
    return kind(
        indptr=indptr,
        indices=sorted_columns["item"],
        values=sorted_columns.get("rating"),
        timestamps=sorted_columns.get("timestamp"),
        users=users,
        items=items,
        rating_range=rating_range,
        catalogue_declared=catalogue_declared,
        report=ReadingReport(
            rows_read=n_rows + sum(rows_dropped.values()),
            duplicates_replaced=n_rows - len(order),
            rows_dropped=dict(rows_dropped),
        ),
        schema=schema,
        anonymous=anonymous,
    )


def checked_range(rating_range: Range | None, *, has_ratings: bool) -> Range | None:
    """Return the declared range as floats, or raise if there is none where there should be one.

    Examples
    --------
    >>> checked_range((1, 5), has_ratings=True)
    (1.0, 5.0)
    """
    if not has_ratings:
        if rating_range is not None:
            raise InputError("there are no ratings, so rating_range has no meaning: leave it out")
        return None
    if rating_range is None:
        raise RangeMissingError(
            "ratings need rating_range=(lowest, highest), for example rating_range=(0.5, 5.0): the bounds of "
            "the scale, known without looking at the data. They are not inferred, because the smallest and the "
            "largest rating in the data would leak who is in it. For implicit feedback, who saw what, leave "
            "out the ratings instead (implicit=True where a table is read)"
        )
    try:
        low, high = (float(bound) for bound in rating_range)
    except (TypeError, ValueError):
        raise InputError(f"rating_range must be two numbers (lowest, highest), not {rating_range!r}") from None
    if not (isfinite(low) and isfinite(high) and low < high):
        raise InputError(f"rating_range must be two finite numbers, the lower one first, not {rating_range!r}")
    return low, high


def _usable(batch: Batch, names: Mapping[str, str], limits: Range | None, bad: BadRows) -> Batch:
    """Return the rows that have all they need; the others go to `bad`."""
    frame, place = batch.frame, batch.place
    problems = _problems(frame, limits)
    if not frame.select(pl.any_horizontal(is_bad.any() for _, is_bad, _ in problems.values())).item():
        return batch
    rows = np.arange(frame.height, dtype=np.int32)
    for reason, (role, is_bad, problem) in problems.items():
        mask = frame.select(is_bad).to_series()
        if mask.any():
            row = mask.arg_max() or 0
            where = f"{place(int(rows[row]))}, column {names[role]!r}"
            bad.found(reason, int(mask.sum()), where, problem.format(frame[role][row]))
            frame, rows = frame.filter(~mask), rows[~mask.to_numpy()]
    return Batch(frame, lambda row: place(int(rows[row])))


def _problems(frame: pl.DataFrame, limits: Range | None) -> dict[str, tuple[str, pl.Expr, str]]:
    """For every reason a row can be bad: the column it is about, which rows, and how to say it."""
    problems: dict[str, tuple[str, pl.Expr, str]] = {}
    for role in ("user", "item"):
        is_missing = pl.col(role).is_null()
        if frame.schema[role] == pl.String:
            is_missing |= pl.col(role) == ""
        problems[f"missing {role} id"] = (role, is_missing, f"the {role} id is missing")
    if limits is not None:
        rating = pl.col("rating")
        low, high = (float(np.float32(bound)) for bound in limits)  # ratings are kept in single precision
        outside = f"{{:g}} is outside the declared rating_range {limits[0]:g} to {limits[1]:g}"
        problems["missing rating"] = ("rating", rating.is_null() | rating.is_nan(), "the rating is missing")
        problems["infinite rating"] = ("rating", rating.is_infinite(), "the rating is infinite")
        problems["rating outside the range"] = ("rating", ~rating.is_between(low, high), outside)
    if "timestamp" in frame.columns:
        is_missing = pl.col("timestamp").is_null()
        problems["missing timestamp"] = ("timestamp", is_missing, "the timestamp is missing, or no exact number")
    return problems


class _Gathered:
    """The rows of all batches, compactly."""

    def __init__(
        self, names: Mapping[str, str], user_ids: IdMeaning, item_ids: IdMeaning, catalogue: NDArray[Any] | None
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
        for role, coder in self._ids.items():
            coder.add(batch.frame[role], batch.place)
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
