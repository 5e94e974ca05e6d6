"""Level 5: plant mistakes in a copy of this library, one at a time, and see that the other levels notice."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dpals.audit.report import Check, Level, Verdict
from dpals.errors import InputError

_SOURCE = Path(__file__).resolve().parents[1]
_COMMAND = "from dpals.cli import main; main()"
_LEVELS = (1, 2, 3)
_COMPILED = "numba"


@dataclass(frozen=True)
class Change:
    """In a file of the library, the text `before`, which must be there exactly once, becomes `after`."""

    file: str
    before: str
    after: str


@dataclass(frozen=True)
class Bug:
    """A mistake that would break the promise, and what to audit to find it. See ``bugs.toml``."""

    name: str
    method: str
    tests: tuple[str, ...]
    changes: tuple[Change, ...]
    options: tuple[str, ...] = ()
    easy: bool = False


def known_bugs() -> list[Bug]:
    """All mistakes that can be planted.

    Examples
    --------
    >>> "no clipping" in {bug.name for bug in known_bugs()}
    True
    """
    found = tomllib.loads((_SOURCE / "audit" / "bugs.toml").read_text())["bug"]
    return [
        Bug(
            **{
                **entry,
                "tests": tuple(entry["tests"]),
                "options": tuple(entry.get("options", ())),
                "changes": tuple(Change(**change) for change in entry["changes"]),
            }
        )
        for entry in found
    ]


def audit_planted_bugs(
    quick: bool = False, bugs: Sequence[Bug] | None = None, tell: Callable[[str], object] = lambda _: None
) -> Level:
    """Audit copies of this library with a mistake in each. Every mistake must be noticed by level 1, 2 or 3.

    Before that, the same audits of an unchanged copy must pass, or noticing would mean nothing.

    Parameters
    ----------
    quick
        Plant only mistakes that are easy to make.
    bugs
        Which ones to plant; by default all of `known_bugs`.
    tell
        Called with how far it is, in words.
    """
    chosen = [bug for bug in known_bugs() if bug.easy or not quick] if bugs is None else list(bugs)
    sound = [
        Bug("", method, (), (), options) for method, options in sorted({(bug.method, bug.options) for bug in chosen})
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        checks = []
        for check in pool.map(_judged, [*sound, *chosen]):
            checks.append(check)
            tell(f"Level 5, planted bugs: {len(checks)} of {len(sound) + len(chosen)} copies audited")
    caught = sum(check.verdict == "passed" for check in checks[len(sound) :])
    return Level(5, "planted bugs", tuple(checks), {"bugs": len(chosen), "caught": caught})


def copy_with(bug: Bug, folder: Path) -> None:
    """A copy of the library with the mistake in it; InputError where the source is not as the mistake expects.

    Compiled functions are copied along only where no file with such functions changes, and never files that another
    process is just writing them to.
    """
    changed = {change.file: (_SOURCE / change.file).read_text() for change in bug.changes}
    compiled = any(_COMPILED in text for text in changed.values())
    left_out = ("__pycache__",) if compiled else ("*.pyc.*", "*.tmp.*")
    shutil.copytree(_SOURCE, folder / "dpals", ignore=shutil.ignore_patterns(*left_out))
    for change in bug.changes:
        if changed[change.file].count(change.before) != 1:
            raise InputError(f"the mistake {bug.name!r} does not fit {change.file}: the code has changed")
        changed[change.file] = changed[change.file].replace(change.before, change.after)
    for file, text in changed.items():
        (folder / "dpals" / file).write_text(text)


def _judged(bug: Bug) -> Check:
    """Whether a mistake is noticed; or, if there is none, whether nothing is."""
    subject = " ".join([bug.method, *bug.options])
    try:
        if bug.changes:
            by = _caught_by(bug, ("failed",))
            return Check(bug.name, "passed" if by else "failed", by or f"not noticed in an audit of {subject}")
        by = _caught_by(bug, ("failed", "inconclusive"))
        return Check(f"{subject} passes without a mistake", "failed" if by else "passed", by or "levels 1, 2 and 3")
    except _CrashError as problem:
        return Check(bug.name or subject, "failed", str(problem))


def _caught_by(bug: Bug, verdicts: Sequence[Verdict]) -> str:
    """Which level came to one of these verdicts, and why; empty where none did."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        copy_with(bug, folder)
        for number in _LEVELS:
            level = _audited(bug, number, folder)
            for check in level["checks"]:
                if check["verdict"] in verdicts:
                    return f"level {number}, {level['name']}: {check['question']} ({check['detail']})"
    return ""


class _CrashError(Exception):
    """The audit of a copy did not come to its end."""


def _audited(bug: Bug, level: int, folder: Path) -> dict[str, Any]:
    """What one level says about the copy in a folder, in a process of its own."""
    arguments = [
        "--method",
        bug.method,
        "--epsilon",
        "1",
        *bug.options,
        "--level",
        str(level),
        "--quick",
        "--json",
        "-q",
    ]
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, "audit", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        found: dict[str, Any] = json.loads(done.stdout)["levels"][0]
    except (ValueError, LookupError):
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise _CrashError(f"level {level} of the audit of this copy did not come to its end: {last}") from None
    return found
