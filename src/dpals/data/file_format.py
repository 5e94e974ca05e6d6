"""Files of ratings: which format they have, Parquet or text, and that nobody changes them while they are read."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpals.data.columns import ColumnOptions, IdOption, IdType
from dpals.data.parquet import ParquetSource, parquet_files
from dpals.data.sources import Source
from dpals.data.text_file import TextSource
from dpals.errors import InputError


def open_table(path: Path, options: ColumnOptions, ids: IdOption = "auto") -> tuple[Source, IdType]:
    """The rows of a file or folder, and what their ids are."""
    if _is_parquet(path, is_text=options.columns is not None):
        return ParquetSource(path, options), "given" if ids == "auto" else ids
    source = TextSource(path, options)
    return source, source.ids if ids == "auto" else ids


def _is_parquet(path: Path, is_text: bool) -> bool:
    """Whether a file is Parquet, by its first bytes unless it is declared to be text; raise if it cannot be read."""
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


@contextmanager
def refuse_changes(path: Path) -> Iterator[None]:
    """Raise if a file, or a Parquet file of a folder, changes during the ``with`` statement, whatever else goes wrong.

    It compares size, time of the last change and inode: a file that is written to, or replaced by another, changes in
    one of them.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.csv")
    ...     _ = file.write_text("1,2")
    ...     with refuse_changes(file):
    ...         _ = file.write_text("1,2,3")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dpals.errors.InputError: ...a.csv changed while it was read: wait until it is complete, or read a copy of it
    """
    before = file_states(path)
    try:
        yield
    except (InputError, OSError) as problem:
        if file_states(path) != before:
            raise _changed(path) from problem
        raise
    if file_states(path) != before:
        raise _changed(path)


def _changed(path: Path) -> InputError:
    return InputError(f"{path} changed while it was read: wait until it is complete, or read a copy of it")


def file_states(path: Path) -> dict[Path, tuple[int, int, int]] | None:
    """What distinguishes each file from another or a later one; None where there is nothing to read."""
    try:
        files = parquet_files(path) if path.is_dir() else [path]
        known = {file: file.stat() for file in files}
    except (OSError, InputError):
        return None
    return {file: (facts.st_ino, facts.st_size, facts.st_mtime_ns) for file, facts in known.items()}
