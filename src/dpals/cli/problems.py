"""Errors in one sentence, with the options of the command in place of the library's arguments."""

import errno
import re
from collections.abc import Callable

_EXPECTED = (OSError, RuntimeError, ValueError, MemoryError)
_LIBRARIES = ("polars", "safetensors", "safetensors_rust", "zlib", "sqlite3")
"""Their errors say what is wrong with a file or a disk. Anything else is a bug, whose trace is shown."""

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def _names_for_the_command(found: re.Match[str]) -> str:
    return "--columns " + found[1].replace('", "', ",")


_WORDS: dict[str, str | Callable[[re.Match[str]], str]] = {
    r'on_bad_rows="(\w+)"': r"--on-bad-rows \1",
    r'on_unknown_items="(\w+)"': r"--on-bad-rows \1",
    r"\boverwrite=True": "--overwrite",
    r"rating_range=\(lowest, highest\)": "--rating-range LOW HIGH",
    r"rating_range=\(([\d.]+), ([\d.]+)\)": r"--rating-range \1 \2",
    r"\(implicit=True where a table is read\)": "(--implicit)",
    r"^mean_ratings\b": "--mean-ratings",
    r'\bids="(\w+)"': r"--ids \1",
    r'columns=\["([^\]]*)"\]': _names_for_the_command,
    r"\bseparator=\.\.\.": "--separator CHARACTER",
    r"\b(user|item|rating|timestamp)=\.\.\. Columns": r"--\1 COLUMN. Columns",
    r"\b(user|item|rating|timestamp)=\.\.\.": r"--\1 COLUMN",
}
"""The library's arguments, and the options that stand for them on the command line."""


def in_one_sentence(problem: Exception) -> str | None:
    """The sentence to show the user; None for what must be a bug.

    Examples
    --------
    >>> in_one_sentence(OSError(28, "No space left on device", "recs.csv"))
    'the disk is full, or a limit is reached (No space left on device: recs.csv). Free some space and run this again'
    >>> in_one_sentence(ValueError("no column looks like the item. Say which it is with item=..."))
    'no column looks like the item. Say which it is with --item COLUMN'
    >>> in_one_sentence(TypeError("unexpected"))
    """
    if not isinstance(problem, _EXPECTED) and type(problem).__module__.split(".")[0] not in _LIBRARIES:
        return None
    if isinstance(problem, MemoryError):
        return "this does not fit in memory. Close other programs, or use a machine with more memory"
    text = str(problem).strip().split("\n")[0]
    if isinstance(problem, OSError) and problem.strerror:
        text = problem.strerror + (f": {problem.filename}" if problem.filename else "")
    if _number(problem) in _NO_SPACE:
        return f"the disk is full, or a limit is reached ({text}). Free some space and run this again"
    for theirs, ours in _WORDS.items():
        text = re.sub(theirs, ours, text)
    return text


def _number(problem: Exception) -> int | None:
    """The system's number of an error, which polars has in its text only."""
    if isinstance(problem, OSError) and problem.errno is not None:
        return problem.errno
    found = re.search(r"\(os error (\d+)\)", str(problem))
    return int(found[1]) if found else None
