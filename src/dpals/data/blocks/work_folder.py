"""A hidden folder for work in progress inside a folder of results: kept after an interruption, for the same task."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dpals.data.blocks.array_file import full_disk_explained
from dpals.errors import InputError
from dpals.system.files import OWNER_ONLY, held, write_whole

_WORK, _TASK, _LOCK = ".writing", "task.json", "lock"


@contextmanager
def work_folder(folder: Path, task: Mapping[str, Any] | None) -> Iterator[Path]:
    """A folder to work in, which nobody else may read and which is gone when the block ends.

    After an interruption, such as Ctrl-C or a full disk, it stays with all that is in it, and the next call for the
    same task gets it. A call for another task gets it empty. Bad input is no interruption: it would be bad again.

    Parameters
    ----------
    folder
        Where the results go. It is made if need be.
    task
        What is worked on; None if nobody could resume it.
    """
    work = folder / _WORK
    _make(work)
    try:
        held_here = held(work / _LOCK, OWNER_ONLY)
    except BlockingIOError as problem:
        raise InputError(f"another process is writing to {folder}: wait until it is done") from problem
    with held_here:
        if not is_interrupted(folder, task):
            _empty(work)
            with full_disk_explained(folder):
                write_whole(work / _TASK, json.dumps(task).encode(), OWNER_ONLY)
        try:
            yield work
        except BaseException as problem:
            if task is None or isinstance(problem, InputError):
                _remove(work)
            raise
        _remove(work)


def is_interrupted(folder: Path, task: Mapping[str, Any] | None) -> bool:
    """Whether an interrupted call left work on this task in a folder."""
    return task is not None and _task(folder / _WORK) == task


def _make(work: Path) -> None:
    try:
        work.parent.mkdir(parents=True, exist_ok=True)
        work.mkdir(mode=0o700, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as problem:
        raise InputError(f"{work.parent} cannot be written: there is a file, not a folder") from problem


def _task(work: Path) -> Any:
    """The task that an interrupted call left; None where there is none, or it was not even noted."""
    try:
        return json.loads((work / _TASK).read_bytes())
    except (OSError, ValueError):
        return None


def _empty(work: Path) -> None:
    """Remove all files but the lock."""
    for file in work.iterdir():
        if file.name != _LOCK:
            file.unlink()


def _remove(work: Path) -> None:
    shutil.rmtree(work)
    with suppress(OSError):  # there is something else in it
        work.parent.rmdir()
