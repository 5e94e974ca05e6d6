"""A Parquet file that grows table by table, so that what is written need never be in memory as a whole."""

from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

import polars as pl
from polars.io.plugins import register_io_source

_ROWS_PER_GROUP = 1 << 18
_SECONDS = 0.1
"""How long to wait for the other thread before checking that it still runs."""


class GrowingParquet:
    """Tables of the same columns, written one below the other into one file.

    polars takes the tables in a thread of its own, so the caller can go on computing. The file is complete when the
    ``with`` block ends without an error; after an error it must not be used.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with GrowingParquet(Path(folder, "squares.parquet")) as file:
    ...         for number in range(3):
    ...             file.write(pl.DataFrame({"n": [number], "square": [number**2]}))
    ...     pl.read_parquet(Path(folder, "squares.parquet")).rows()
    [(0, 0), (1, 1), (2, 4)]
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tables: Queue[pl.DataFrame | None] = Queue(maxsize=2)
        self._given_up = Event()
        self._schema = pl.Schema()
        self._thread: Thread | None = None
        self._problem: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def write(self, table: pl.DataFrame) -> None:
        """Append a table. The first one decides the types of the columns."""
        if self._thread is None:
            self._schema = table.schema
            self._thread = Thread(target=self._sink)
            self._thread.start()
        if table.schema != self._schema:
            raise ValueError(f"a table with {table.schema} does not fit below one with {self._schema}")
        self._put(table)

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is None:
            return
        try:
            if kind is None:
                self._put(None)
                self._thread.join()
        finally:
            self._given_up.set()
            self._thread.join()
        if kind is None and self._problem is not None:
            raise self._problem

    def _put(self, table: pl.DataFrame | None) -> None:
        """Hand a table, or the end, to the other thread; raise the error that stopped it, if there is one."""
        while True:
            if self._problem is not None:
                raise self._problem
            try:
                return self._tables.put(table, timeout=_SECONDS)
            except Full:
                continue

    def _sink(self) -> None:
        try:
            source = register_io_source(self._take, schema=self._schema)
            with self._path.open("wb") as file:  # given a path, polars may create it after writing was given up
                source.sink_parquet(file, row_group_size=_ROWS_PER_GROUP)
        except BaseException as problem:
            self._problem = problem

    def _take(self, *_: Any) -> Iterator[pl.DataFrame]:
        """The tables as they come, for polars."""
        while not self._given_up.is_set():
            try:
                table = self._tables.get(timeout=_SECONDS)
            except Empty:
                continue
            if table is None:
                return
            yield table
        raise RuntimeError("writing was given up")
