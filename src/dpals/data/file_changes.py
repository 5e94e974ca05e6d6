"""Files that change while they are read: an error, so that nothing half-read is returned."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpals.data.parquet import parquet_files
from dpals.errors import InputError


@contextmanager
def refuse_changes(path: Path) -> Iterator[None]:
    """Raise if a file, or a Parquet file of a folder, changes while the block runs, whatever else goes wrong in it.

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
