"""Files that are there whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
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
    place = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield place
        with place.open("rb") as file:
            os.fsync(file.fileno())
        place.replace(path)
    finally:
        place.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write all of a file or none of it."""
    with draft(path) as place:
        place.write_bytes(content)
