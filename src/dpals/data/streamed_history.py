"""A history that may be larger than memory, read as a stream of parts, each of whole users.

Rows come in any order. They are read in pieces of bounded size, which an external sort brings into the order of users.
So users come out in the order of their ids, each with all their rows, as `dpals.read_ratings` would have sorted them. A
history of one piece needs no temporary file.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpals.data.bad_rows import BadRows, ReadingReport
from dpals.data.bounded_batches import ROWS_AT_ONCE, CommonIdType, pieces
from dpals.data.build import build_even_if_empty, refuse_if_all_dropped, refuse_if_no_rows
from dpals.data.columns import ColumnOptions, Columns, IdOption, IdType
from dpals.data.deduplicate import sort_and_deduplicate
from dpals.data.external_sort import ExternalSort
from dpals.data.file_format import open_table, refuse_changes
from dpals.data.ids import to_array, to_series
from dpals.data.rating_arrays import Range
from dpals.data.ratings import Ratings
from dpals.data.sources import Source
from dpals.errors import InputError

_NO_ITEM = -1
"""Stands in a row that only says that its user exists: the item of that row was not in the catalogue."""


@contextmanager
def stream_history(
    path: Path,
    options: ColumnOptions,
    *,
    rating_range: Range | None,
    catalogue: NDArray[Any],
    bad: BadRows,
    user_ids: IdOption = "auto",
    only: Sequence[str] = (),
    rows_at_once: int = ROWS_AT_ONCE,
    folder: Path | None = None,
    progress: Callable[[int], object] = lambda _: None,
) -> Iterator["StreamedHistory"]:
    """Read a history and give its users in parts, while the block runs.

    Parameters
    ----------
    path, options, rating_range, catalogue, bad, user_ids
        As in `read_file`.
    only
        Ids of the users to keep, as text; all by default. InputError where one of them is not in the history.
    rows_at_once
        About how many rows to hold in memory; more only where one user has more.
    folder
        Where a temporary file without a name goes; the system's folder for such files by default.
    progress
        Called with the number of rows read, whenever there are more.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     file = Path(place, "clicks.csv")
    ...     _ = file.write_text("user,item\\nbob,tea\\nann,rum\\nbob,rum\\ncid,ale\\n")
    ...     known = np.array(["rum", "tea"], np.dtypes.StringDType())
    ...     facts = {"rating_range": None, "catalogue": known, "bad": BadRows("error", "drop")}
    ...     with stream_history(file, ColumnOptions(), **facts, rows_at_once=2) as history:
    ...         [(part.users.tolist(), part.n_ratings) for part in history]
    [(['ann'], 1), (['bob', 'cid'], 2)]
    """
    with ExternalSort(folder, rows_at_once) as external_sort:
        with refuse_changes(path):
            source, ids = open_table(path, options)
            id_types = ids, ids if user_ids == "auto" else user_ids
            history = StreamedHistory(source, id_types, rating_range, catalogue, bad, only, external_sort)
            history.read(rows_at_once, progress)
        refuse_if_no_rows(source.name, history.report)
        if history.user_type is None:
            refuse_if_all_dropped(source.name, history.report)
        history.check_only()
        yield history


class StreamedHistory:
    """Ratings of some users at a time, in the order of their ids. Made by `stream_history`."""

    def __init__(
        self,
        source: Source,
        ids: tuple[IdType, IdType],
        rating_range: Range | None,
        catalogue: NDArray[Any],
        bad: BadRows,
        only: Sequence[str],
        external_sort: ExternalSort,
    ) -> None:
        self.columns: Columns = source.columns
        self._source = source
        self._ids, self._user_ids = ids
        self._range = rating_range
        self._catalogue = catalogue
        self._bad = bad
        self._sort = external_sort
        self._missing = dict.fromkeys(only)
        self._only = only
        self._users = CommonIdType(f"{source.name}, column {source.columns.user!r}")
        self._rows_used = self._duplicates = 0

    @property
    def user_type(self) -> type[pl.DataType] | None:
        """What user ids are, once a row has been seen: text, or integers of 64 bits with or without a sign."""
        if self._users.dtype is None:
            return None
        return {"i": pl.Int64, "u": pl.UInt64}.get(self._users.dtype.kind, pl.String)

    @property
    def n_rows(self) -> int:
        """Rows that all parts have together."""
        return self._sort.n_rows

    @property
    def report(self) -> ReadingReport:
        """What became of the rows; complete when all parts have been seen."""
        dropped = self._bad.dropped
        return ReadingReport(self._rows_used + dropped.total(), self._duplicates, dict(dropped))

    def __iter__(self) -> Iterator[Ratings]:
        for rows in self._sort.merged(self.user_type or pl.Int64):
            yield self._ratings(rows)

    def read(self, rows_at_once: int, progress: Callable[[int], object]) -> None:
        """Take in the whole source."""
        for piece in pieces(self._source, self._bad, rows_at_once):
            ratings = build_even_if_empty(
                Ratings,
                piece,
                rating_range=self._range,
                catalogue=self._catalogue,
                bad=self._bad,
                ids=self._ids,
                user_ids=self._user_ids,
            )
            if ratings.n_users:
                self._users.include(ratings.users)
                self._sort.add(self._chosen(_rows(ratings)), self.user_type or pl.Int64)
            self._rows_used += ratings.report.rows_read - sum(ratings.report.rows_dropped.values())
            self._duplicates += ratings.report.duplicates_replaced
            progress(self.report.rows_read)

    def _chosen(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows of the users that were asked for."""
        if not self._only:
            return rows
        chosen = rows.filter(pl.col("user").cast(pl.String).is_in(list(self._only)))
        for user in chosen["user"].unique().cast(pl.String):
            self._missing.pop(user, None)
        return chosen

    def check_only(self) -> None:
        """Raise where a user that was asked for is not in the history."""
        if self._missing:
            users, several = ", ".join(map(repr, self._missing)), len(self._missing) > 1
            raise InputError(f"the user{'s' * several} {users} {'are' if several else 'is'} not in {self._source.name}")

    def _ratings(self, rows: pl.DataFrame) -> Ratings:
        """Ratings of rows that are sorted by user."""
        users = to_array(rows["user"].unique(maintain_order=True))
        known = rows.with_columns(user=pl.col("user").rle_id().cast(pl.Int32)).filter(pl.col("item") != _NO_ITEM)
        ratings = sort_and_deduplicate(
            Ratings,
            {role: known[role].to_numpy() for role in known.columns},
            users=users.astype(np.uint64) if self.user_type is pl.UInt64 else users,
            items=self._catalogue,
            rating_range=self._range,
            catalogue_declared=True,
            rows_dropped={},
        )
        self._duplicates += ratings.report.duplicates_replaced
        return ratings


def _rows(ratings: Ratings) -> pl.DataFrame:
    """Ratings as a table sorted by user, with a row without an item for users who have no other."""
    users = to_series(ratings.users)
    columns = {"item": ratings.indices, "rating": ratings.values, "timestamp": ratings.timestamps}
    given = {role: column for role, column in columns.items() if column is not None}
    rows = pl.DataFrame({"user": users.gather(ratings.rows), **given})
    alone = np.flatnonzero(np.diff(ratings.indptr) == 0)
    if not len(alone):
        return rows
    nothing = {role: np.full(len(alone), _NO_ITEM, column.dtype) for role, column in given.items()}
    return pl.concat([rows, pl.DataFrame({"user": users.gather(alone), **nothing})]).sort("user", maintain_order=True)
