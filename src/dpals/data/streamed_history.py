"""A history that may be larger than memory, read as a stream of parts, each of whole users.

Rows come in any order. They are read in pieces of bounded size, which an external sort brings into the order of users.
So users come out in the order of their ids, each with all their rows, as `dpals.read_ratings` would have sorted them. A
history of one piece needs no temporary file.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpals.data.bad_rows import BadRows
from dpals.data.build import build_even_if_empty, refuse_if_all_dropped, refuse_if_no_rows
from dpals.data.columns import ColumnOptions, Columns, IdOption, IdType
from dpals.data.deduplicate import sort_and_deduplicate
from dpals.data.external_sort import ExternalSort
from dpals.data.file_changes import refuse_changes
from dpals.data.file_format import open_table
from dpals.data.ids import is_text, to_array, to_series
from dpals.data.rating_range import Range
from dpals.data.ratings import Ratings
from dpals.data.reading_report import ReadingReport
from dpals.data.sources import Batch, Source
from dpals.errors import InputError

ROWS_AT_ONCE = 1 << 21
_NO_ITEM = -1
"""Stands in a row that only says that its user exists: the item of that row was not in the catalogue."""
_LARGEST = np.iinfo(np.int64).max


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

    user_type: type[pl.DataType] | None = None
    """What user ids are, once a row has been seen: text, or integers of 64 bits with or without a sign."""

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
        self._lowest, self._highest = 0, 0
        self._rows_used = self._duplicates = 0

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
        batches = _limit_batches(self._source.batches(self._bad), rows_at_once)
        for first in batches:
            ratings = build_even_if_empty(
                Ratings,
                _BoundedSource(self._source.name, self.columns, chain([first], batches), rows_at_once),
                rating_range=self._range,
                catalogue=self._catalogue,
                bad=self._bad,
                ids=self._ids,
                user_ids=self._user_ids,
            )
            if ratings.n_users:
                self._check_types(ratings.users)
                self._sort.add(self._chosen(_rows(ratings)), self.user_type or pl.Int64)
            self._rows_used += ratings.report.rows_read - sum(ratings.report.rows_dropped.values())
            self._duplicates += ratings.report.duplicates_replaced
            progress(self.report.rows_read)

    def _check_types(self, users: NDArray[Any]) -> None:
        """Raise where parts of a table have ids of different types, or integers that need more than 64 bits."""
        text = is_text(users)
        if self.user_type is not None and text != (self.user_type is pl.String):
            raise InputError(
                f"{self._source.name}, column {self.columns.user!r}: mixed id types: text in some rows and integers in "
                "others. Make them all integers or all text"
            )
        if text:
            self.user_type = pl.String
            return
        self._lowest, self._highest = min(self._lowest, int(users[0])), max(self._highest, int(users[-1]))
        self.user_type = pl.UInt64 if self._highest > _LARGEST else pl.Int64
        if self._lowest < 0 and self.user_type is pl.UInt64:
            raise InputError(
                f"{self._source.name}, column {self.columns.user!r}: ids from {self._lowest} to {self._highest} do not "
                "fit in 64 bits. Make them text"
            )

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


class _BoundedSource:
    """The next batches of a source, until they have about the given number of rows."""

    def __init__(self, name: str, columns: Columns, batches: Iterator[Batch], n_rows: int) -> None:
        self.name, self.columns, self.schema = name, columns, ""
        self._batches, self._n_rows = batches, n_rows

    def batches(self, bad: BadRows) -> Iterator[Batch]:  # noqa: ARG002
        taken = 0
        for batch in self._batches:
            yield batch
            taken += batch.frame.height
            if taken >= self._n_rows:
                return


def _limit_batches(batches: Iterator[Batch], at_most: int) -> Iterator[Batch]:
    """The same rows in batches that are not too large."""
    for batch in batches:
        for start in range(0, batch.frame.height, at_most):
            yield Batch(batch.frame.slice(start, at_most), lambda row, b=batch, s=start: b.place(s + row))  # type: ignore[misc]


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
