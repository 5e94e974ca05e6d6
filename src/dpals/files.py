"""Files that are there whole or not at all."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def draft(path: Path) -> Iterator[Path]:
    """A place beside `path` to write to. What was written there gets its name when the block ends without an error.

    Until then, and after an error or Ctrl-C, `path` is what it was before.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with draft(Path(folder, "numbers.csv")) as place:
    ...         _ = place.write_text("1,2,3")
    ...     os.listdir(folder)
    ['numbers.csv']
    """
    place = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        yield place
        _sync(place)
        place.replace(path)
        with suppress(OSError):  # some file systems cannot; the file is in place all the same
            _sync(path.parent)
    finally:
        place.unlink(missing_ok=True)


def remove_drafts(folder: Path) -> None:
    """Remove what a process that was killed had not finished writing."""
    for path in folder.glob(".*.part"):
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, would survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, content: bytes) -> None:
    """Write all of a file or none of it."""
    with draft(path) as place:
        place.write_bytes(content)
