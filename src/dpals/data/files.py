"""Ratings from a file or a folder of parts: which format it is, and whether it stayed as it was meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from dpals.data.build import Range, build
from dpals.data.columns import Wanted
from dpals.data.id_encoder import IdMeaning
from dpals.data.parquet import ParquetSource, parts
from dpals.data.ratings import Ratings, ReadingReport
from dpals.data.sources import BadRows, Source
from dpals.data.text import TextSource
from dpals.errors import InputError

Ids = Literal["auto", "integer", "string"]
"""What the caller says about ids: nothing, or what they are."""


def read_file(
    path: Path,
    wanted: Wanted,
    *,
    rating_range: Range | None,
    catalogue: Any,
    bad: BadRows,
    ids: Ids = "auto",
    user_ids: Ids = "auto",
) -> Ratings:
    """Do the work of `dpals.read_ratings`. Ids of users can be said to be something else than those of items."""
    with undisturbed(path):
        source, meaning = open_table(path, wanted, ids)
        ratings = build(
            Ratings,
            source,
            rating_range=rating_range,
            catalogue=catalogue,
            bad=bad,
            ids=meaning,
            user_ids=None if user_ids == "auto" else user_ids,
        )
    refuse_if_no_rows(path, ratings.report)
    return ratings


def open_table(path: Path, wanted: Wanted, ids: Ids = "auto") -> tuple[Source, IdMeaning]:
    """The rows of a file or folder, and what their ids are."""
    if _is_parquet(path, is_text=wanted.columns is not None):
        return ParquetSource(path, wanted), "given" if ids == "auto" else ids
    source = TextSource(path, wanted)
    return source, source.ids if ids == "auto" else ids


def refuse_if_no_rows(path: Path, report: ReadingReport) -> None:
    """Raise where a file has a header and nothing below it."""
    if report.rows_read == 0:
        raise InputError(f"{path}: there are columns but no row of data")


@contextmanager
def undisturbed(path: Path) -> Iterator[None]:
    """Raise if a file, or the parts of a folder, change while the block runs, whatever else goes wrong in it.

    Size, time of the last change and inode tell: a file that is written to, or replaced by another, changes in one
    of them.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.csv")
    ...     _ = file.write_text("1,2")
    ...     with undisturbed(file):
    ...         _ = file.write_text("1,2,3")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dpals.errors.InputError: ...a.csv changed while it was read: wait until it is complete, or read a copy of it
    """
    before = _state(path)
    try:
        yield
    except (InputError, OSError) as problem:
        if _state(path) != before:
            raise _changed(path) from problem
        raise
    if _state(path) != before:
        raise _changed(path)


def _changed(path: Path) -> InputError:
    return InputError(f"{path} changed while it was read: wait until it is complete, or read a copy of it")


def _state(path: Path) -> dict[Path, tuple[int, int, int]] | None:
    """What tells each file from another or a later one; None where there is nothing to read."""
    try:
        files = parts(path) if path.is_dir() else [path]
        known = {file: file.stat() for file in files}
    except (OSError, InputError):
        return None
    return {file: (facts.st_ino, facts.st_size, facts.st_mtime_ns) for file, facts in known.items()}


def _is_parquet(path: Path, is_text: bool) -> bool:
    """Tell by the first bytes what a file is, unless it is declared to be text; raise if it cannot be read."""
    if path.is_dir():
        return True
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}. Check the path") from error
    if not start:
        raise InputError(f"{path}: the file is empty")
    if is_text:
        return False
    if start[:2] == b"PK":
        raise InputError(f"{path}: this is a zip archive or a spreadsheet. Unpack it or save the table as CSV first")
    return start == b"PAR1" or path.suffix in (".parquet", ".pq")
