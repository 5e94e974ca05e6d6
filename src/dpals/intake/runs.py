"""Tables that are too large for memory, sorted by user: parts go to temporary files, which are then merged."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from types import TracebackType
from typing import Self

import polars as pl

_GROUPS = 128
"""Groups of rows in a file, of which one is read at least. So many files are merged within the rows at once."""
UserType = type[pl.DataType]


class Runs:
    """Tables to add, which come out again merged, with the users in order and their rows in the order of arrival.

    Parameters
    ----------
    folder
        Where temporary files go, into a folder of their own that the end of the block removes; the system's folder
        for such files by default. It is made when it is needed.
    rows_at_once
        About how many rows to hold in memory.

    Examples
    --------
    >>> tables = [pl.DataFrame({"user": users, "at": [at, at]}) for at, users in enumerate([[2, 5], [5, 9], [1, 2]])]
    >>> with Runs(None, rows_at_once=2) as runs:
    ...     for table in tables:
    ...         runs.add(table, pl.Int64)
    ...     [part.rows() for part in runs.merged(pl.Int64)]
    [[(1, 2)], [(2, 0), (2, 2)], [(5, 0), (5, 1), (9, 1)]]
    """

    def __init__(self, folder: Path | None, rows_at_once: int) -> None:
        self.n_rows = 0
        """Rows added so far."""
        self._folder = folder
        self._rows_at_once = rows_at_once
        self._rows_per_group = max(1, rows_at_once // _GROUPS)
        self._home: TemporaryDirectory[str] | None = None
        self._runs: list[_Run] = []
        self._waiting: list[pl.DataFrame] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._home is not None:
            self._home.cleanup()

    def add(self, table: pl.DataFrame, user_type: UserType) -> None:
        """Take a table with a column user, in any order."""
        if sum(waiting.height for waiting in self._waiting) >= self._rows_at_once:
            self._put_aside(user_type)
        if table.height:
            self._waiting.append(table)
            self.n_rows += table.height

    def merged(self, user_type: UserType) -> Iterator[pl.DataFrame]:
        """Everything that was added, in tables of whole users that follow one another; once only."""
        if self._runs and self._waiting:
            self._put_aside(user_type)
        if self._waiting:
            yield _sorted(self._waiting, user_type)
        open_runs = self._runs
        n_rows = max(self._rows_per_group, self._rows_at_once // max(1, len(open_runs)))
        while open_runs:
            for run in open_runs:
                run.fill(n_rows, user_type)
            # A run that goes on may have more rows of its last user; all users before that one are complete.
            complete_below = min((run.last_user for run in open_runs if run.goes_on), default=None)
            stretches = [run.take(complete_below) for run in open_runs]
            if any(stretch.height for stretch in stretches):
                yield _sorted(stretches, user_type)
            open_runs = [run for run in open_runs if run.goes_on or run.rows.height]

    def _put_aside(self, user_type: UserType) -> None:
        table = _sorted(self._waiting, user_type)
        self._waiting = []
        try:
            if self._home is None:
                self._home = TemporaryDirectory(prefix=".dpals-", dir=self._folder)
            file = Path(self._home.name, f"{len(self._runs)}.parquet")
            table.write_parquet(file, compression="lz4", statistics=False, row_group_size=self._rows_per_group)
        except (OSError, pl.exceptions.PolarsError) as problem:
            reason = str(problem).split(" (os error")[0].removeprefix("parquet: File out of specification: ")
            elsewhere = ", or name another folder in the environment variable TMPDIR" * (self._folder is None)
            raise OSError(
                f"temporary files cannot be written to {self._folder or gettempdir()} ({reason}). Free some space "
                f"there{elsewhere}"
            ) from problem
        self._runs.append(_Run(file, table.height))


class _Run:
    """A sorted file that is read from its start to its end."""

    def __init__(self, file: Path, n_rows: int) -> None:
        self.rows = pl.DataFrame()
        """What was read and not yet taken."""
        self.last_user: int | str = 0
        self._table = pl.scan_parquet(file, glob=False, hive_partitioning=False)
        self._next, self._n_rows = 0, n_rows
        self._is_stuck = False

    @property
    def goes_on(self) -> bool:
        """Whether there is more in the file."""
        return self._next < self._n_rows

    def fill(self, n_rows: int, user_type: UserType) -> None:
        """Read on where little is left, or where what is there is not yet all of one user."""
        if not self.goes_on or (self.rows.height >= n_rows and not self._is_stuck):
            return
        more = self._table.slice(self._next, n_rows).collect().with_columns(pl.col("user").cast(user_type))
        self._next += n_rows
        self.rows = pl.concat([self.rows, more], rechunk=True) if self.rows.height else more
        self.last_user = self.rows["user"][-1]

    def take(self, below: int | str | None) -> pl.DataFrame:
        """Give the rows of the users below the given one, or all."""
        count = self.rows.height if below is None else int(self.rows["user"].search_sorted(below, side="left"))
        taken, self.rows = self.rows.head(count), self.rows.slice(count)
        self._is_stuck = self.last_user == below
        return taken


def _sorted(tables: list[pl.DataFrame], user_type: UserType) -> pl.DataFrame:
    """One table, sorted by user; rows of a user keep their order."""
    one_type = [table.with_columns(pl.col("user").cast(user_type)) for table in tables if table.width]
    return pl.concat(one_type).sort("user", maintain_order=True)
