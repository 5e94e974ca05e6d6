"""Files that are whole or absent, and locks on files."""

import errno
import fcntl
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

OWNER_ONLY = 0o600
"""Mode of files that nobody but their owner may read."""
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
"""Errors of file systems that have no locks."""


@contextmanager
def draft(path: Path, mode: int = 0o666) -> Iterator[Path]:
    """A temporary file beside `path` to write to. It replaces `path` when the block ends without an error.

    Until then, and after an error or Ctrl-C, `path` stays as it was. The next draft of the same file removes what a
    killed process left. The file has the given mode, less the umask, before anything is written to it.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with draft(Path(folder, "numbers.csv")) as place:
    ...         _ = place.write_text("1,2,3")
    ...     os.listdir(folder)
    ['numbers.csv']
    """
    remove_drafts(path.parent, re.escape(path.name))
    place = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")
    with held(place, mode):
        try:
            yield place
            _sync(place)
            place.replace(path)
            with suppress(OSError):  # some file systems cannot; the file is in place all the same
                _sync(path.parent)
        finally:
            place.unlink(missing_ok=True)


def remove_drafts(folder: Path, names: str) -> None:
    """Remove the drafts that killed processes left of files whose names match a regular expression.

    Nothing else is touched: no file with another name, and no draft that a living process holds.
    """
    ours = re.compile(rf"\.(?:{names})\.[0-9a-f]{{12}}\.part")
    for path in folder.glob(".*.part"):
        if ours.fullmatch(path.name):
            with suppress(OSError), lock(path):
                path.unlink()


def lock(path: Path, mode: int = 0o666, *, wait: bool = False) -> IO[bytes]:
    """Open a file and lock it until it is closed; BlockingIOError where another process holds the lock.

    A missing file is made with the given mode. The file is neither read nor changed, and no link is followed, so
    whoever may write to the folder cannot redirect the lock to another file.
    """
    while True:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, mode)
        except OSError as problem:
            if problem.errno != errno.ELOOP:
                raise
            raise OSError(f"{path} is a link, and should be a file of dpals: remove it") from problem
        file = os.fdopen(handle, "rb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if _is_there(file, path):
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # its holder has removed it: by now there is another one, or none


def write_whole(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write all of a file or none of it."""
    with draft(path, mode) as place:
        place.write_bytes(content)


def held(path: Path, mode: int) -> AbstractContextManager[object]:
    """Make a file if need be and hold its lock, where the file system has locks."""
    try:
        return lock(path, mode)
    except OSError as problem:
        if problem.errno in _NO_LOCKS:
            return nullcontext()
        raise


def _is_there(file: IO[bytes], path: Path) -> bool:
    """Whether a file that is open is still the one under its name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.lstat())
    except FileNotFoundError:
        return False


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, would survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
