"""External sort: tables larger than memory, sorted by user in runs in a temporary file, which are then merged."""

from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from types import TracebackType
from typing import IO, Self

import polars as pl

_GROUPS = 128
"""Groups of rows in a run. A run is read by whole groups, so up to this many runs merge within `rows_at_once`."""
UserType = type[pl.DataType]


class ExternalSort:
    """Takes tables in any order and gives their rows sorted by user, those of a user in the order of arrival.

    What does not fit in memory goes to one file without a name, which nobody else can open. It is gone when the
    ``with`` statement ends, or the process, even if that is killed.

    Parameters
    ----------
    folder
        Where the temporary file goes; the system's folder for such files by default. It is made when it is needed.
    rows_at_once
        About how many rows to hold in memory.

    Examples
    --------
    >>> tables = [pl.DataFrame({"user": users, "at": [at, at]}) for at, users in enumerate([[2, 5], [5, 9], [1, 2]])]
    >>> with ExternalSort(None, rows_at_once=2) as external_sort:
    ...     for table in tables:
    ...         external_sort.add(table, pl.Int64)
    ...     [part.rows() for part in external_sort.merged(pl.Int64)]
    [[(1, 2)], [(2, 0), (2, 2)], [(5, 0), (5, 1), (9, 1)]]
    """

    def __init__(self, folder: Path | None, rows_at_once: int) -> None:
        self.n_rows = 0
        """Rows added so far."""
        self._folder = folder
        self._rows_at_once = rows_at_once
        self._rows_per_group = max(1, rows_at_once // _GROUPS)
        self._file: IO[bytes] | None = None
        self._runs: list[_Run] = []
        self._waiting: list[pl.DataFrame] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            with suppress(OSError):  # what could not be written is not needed any more
                self._file.close()

    def add(self, table: pl.DataFrame, user_type: UserType) -> None:
        """Take a table with a column user, in any order."""
        if sum(waiting.height for waiting in self._waiting) >= self._rows_at_once:
            self._write_run(user_type)
        if table.height:
            self._waiting.append(table)
            self.n_rows += table.height

    def merged(self, user_type: UserType) -> Iterator[pl.DataFrame]:
        """Everything that was added, in tables of whole users that follow one another; once only."""
        if self._runs and self._waiting:
            self._write_run(user_type)
        if self._waiting:
            yield _sorted(self._waiting, user_type)
        open_runs = self._runs
        n_groups = max(1, self._rows_at_once // max(1, len(open_runs)) // self._rows_per_group)
        while open_runs:
            for run in open_runs:
                run.fill(n_groups, user_type)
            # The next rows of a run may be of its last user; all users before that one are complete.
            complete_below = min((run.last_user for run in open_runs if run.has_more), default=None)
            complete = [run.take(complete_below) for run in open_runs]
            if any(rows.height for rows in complete):
                yield _sorted(complete, user_type)
            open_runs = [run for run in open_runs if run.has_more or run.rows.height]

    def _write_run(self, user_type: UserType) -> None:
        """Sort the tables that wait in memory and move them to the file."""
        table = _sorted(self._waiting, user_type)
        self._waiting = []
        try:
            if self._file is None:
                self._file = TemporaryFile(dir=self._folder)  # noqa: SIM115
            groups = [_write(group, self._file) for group in table.iter_slices(self._rows_per_group)]
            self._file.flush()
        except OSError as problem:
            place = f"{self._folder or gettempdir()} ({problem.strerror})"
            elsewhere = ", or name another folder in the environment variable TMPDIR" * (self._folder is None)
            raise OSError(
                f"temporary files cannot be written to {place}. Free some space there{elsewhere}"
            ) from problem
        self._runs.append(_Run(self._file, groups, self._rows_per_group))


class _Run:
    """A sorted table in the file, read from its start to its end."""

    def __init__(self, file: IO[bytes], groups: list[tuple[int, int]], rows_per_group: int) -> None:
        self.rows = pl.DataFrame()
        """Rows that were read and not yet taken."""
        self.last_user: int | str = 0
        self._file = file
        self._groups = groups
        self._rows_per_group = rows_per_group
        self._user_is_incomplete = False

    @property
    def has_more(self) -> bool:
        """Whether there is more in the file."""
        return bool(self._groups)

    def fill(self, n_groups: int, user_type: UserType) -> None:
        """Read on where little is left, or where the rows that are left are not yet all of one user's."""
        if not self.has_more or (self.rows.height >= n_groups * self._rows_per_group and not self._user_is_incomplete):
            return
        groups, self._groups = self._groups[:n_groups], self._groups[n_groups:]
        more = [_read(group, self._file).with_columns(pl.col("user").cast(user_type)) for group in groups]
        self.rows = pl.concat([self.rows, *more] if self.rows.height else more, rechunk=True)
        self.last_user = self.rows["user"][-1]

    def take(self, below: int | str | None) -> pl.DataFrame:
        """Give the rows of the users below the given one, or all."""
        count = self.rows.height if below is None else int(self.rows["user"].search_sorted(below, side="left"))
        taken, self.rows = self.rows.head(count), self.rows.slice(count)
        self._user_is_incomplete = self.last_user == below
        return taken


def _sorted(tables: list[pl.DataFrame], user_type: UserType) -> pl.DataFrame:
    """One table, sorted by user; rows of a user keep their order."""
    one_type = [table.with_columns(pl.col("user").cast(user_type)) for table in tables if table.width]
    return pl.concat(one_type).sort("user", maintain_order=True)


def _write(rows: pl.DataFrame, file: IO[bytes]) -> tuple[int, int]:
    """Write rows at the end of a file; where they are, and how many bytes they take."""
    content = BytesIO()
    rows.write_ipc_stream(content, compression="lz4")
    return file.tell(), file.write(content.getbuffer())


def _read(group: tuple[int, int], file: IO[bytes]) -> pl.DataFrame:
    """Rows that were written to a file."""
    start, size = group
    file.seek(start)
    return pl.read_ipc_stream(BytesIO(file.read(size)))
