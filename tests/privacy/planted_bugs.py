"""Plant bugs that would break the promise, one at a time, and see that the tests and the audit notice each.

    python tests/privacy/planted_bugs.py [-o FILE] [WORDS ...]

Run by ``make mutants``. The bugs are those of ``planted_bugs.toml``, or those of them with such words in their names.
Each is planted in a copy of the project. The tests named beside it must then fail, and, where it names a method, an
audit of that method in the copy must fail as well, on level 1, 2 or 3. The same tests and audits of an unchanged copy
must pass. A bug that survives fails the run. A file gets a table of what noticed each bug.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
SOURCE = PROJECT / "src" / "dpals"
BUGS = Path(__file__).with_name("planted_bugs.toml")
COMMAND = "from dpals.cli import main; main()"
LEVELS = (1, 2, 3)
HEADING = """# Planted bugs

`make mutants`: {caught} of {bugs} are noticed by the tests and, where a method can show them, by the audit.

| bug | tests that fail | check of the audit that fails |
|---|---|---|
"""


class StaleBug(Exception):  # noqa: N818, the bug is what is stale
    """The source is not as a bug expects it."""


class AuditCrashed(Exception):  # noqa: N818
    """The audit of a copy did not come to its end."""


@dataclass(frozen=True)
class Change:
    """In a file of the library, the text `before`, which must be there exactly once, becomes `after`."""

    file: str
    before: str
    after: str


@dataclass(frozen=True)
class Bug:
    """A mistake that would break the promise, the tests that notice it, and the method whose audit does, if any."""

    name: str
    tests: tuple[str, ...]
    changes: tuple[Change, ...]
    method: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What became of a bug, or of an unchanged copy: the verdict, and the check of the audit that failed."""

    bug: Bug
    verdict: str
    check: str = ""


def known_bugs() -> list[Bug]:
    """All bugs that can be planted.

    Examples
    --------
    >>> "no clipping" in {bug.name for bug in known_bugs()}
    True
    """
    return [
        Bug(
            **{
                **entry,
                "tests": tuple(entry["tests"]),
                "options": tuple(entry.get("options", ())),
                "changes": tuple(Change(**change) for change in entry["changes"]),
            }
        )
        for entry in tomllib.loads(BUGS.read_text())["bug"]
    ]


def copy_with(bug: Bug, folder: Path) -> None:
    """Copy the library, with the bug in it; StaleBug where the source is not as the bug expects.

    Compiled functions are copied along only where no file with such functions changes, and never files that another
    process is writing at the moment.
    """
    changed = {change.file: (SOURCE / change.file).read_text() for change in bug.changes}
    compiled = any("numba" in text for text in changed.values())
    left_out = ("__pycache__",) if compiled else ("*.pyc.*", "*.tmp.*")
    shutil.copytree(SOURCE, folder / "dpals", ignore=shutil.ignore_patterns(*left_out))
    for change in bug.changes:
        if changed[change.file].count(change.before) != 1:
            raise StaleBug(f"the bug {bug.name!r} does not fit {change.file}: the code has changed")
        changed[change.file] = changed[change.file].replace(change.before, change.after)
    for file, text in changed.items():
        (folder / "dpals" / file).write_text(text)


def run_tests(tests: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run tests on the copy in a folder. Exit code 0: passed, 1: failed, others: did not run."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PROJECT / "tests", folder / "tests", ignore=ignored, dirs_exist_ok=True)
    for part in ("pyproject.toml", "README.md"):
        shutil.copy(PROJECT / part, folder / part)
    return _run(["-m", "pytest", "-x", "-p", "no:cacheprovider", *tests], folder, CI="true")


def run_audit(bug: Bug, level: int, folder: Path) -> dict[str, Any]:
    """What one level of a quick audit says about the copy in a folder."""
    arguments = ["--method", bug.method, "--epsilon", "1", *bug.options, "--level", str(level), "--quick"]
    done = _run(["-c", COMMAND, "audit", *arguments, "--json", "-q"], folder)
    try:
        found: dict[str, Any] = json.loads(done.stdout)["levels"][0]
    except (ValueError, LookupError):
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise AuditCrashed(f"level {level} of the audit did not come to its end: {last}") from None
    return found


def _run(arguments: Sequence[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src"), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def failed_check(bug: Bug, folder: Path, verdicts: Sequence[str] = ("failed",)) -> str:
    """The first check of the audit with one of these verdicts; empty where there is none."""
    for number in LEVELS:
        level = run_audit(bug, number, folder)
        for check in level["checks"]:
            if check["verdict"] in verdicts:
                return f"level {number}, {level['name']}: {check['question']}"
    return ""


def plant(bug: Bug) -> Outcome:
    """Whether the tests and the audit notice a bug."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_with(bug, folder / "src")
        code = run_tests(bug.tests, folder).returncode
        if code != 1:
            return Outcome(bug, "SURVIVED the tests" if code == 0 else f"TESTS DID NOT RUN ({code})")
        if not bug.method:
            return Outcome(bug, "caught")
        try:
            check = failed_check(bug, folder)
        except AuditCrashed as problem:
            return Outcome(bug, f"NOT AUDITED, {problem}")
        return Outcome(bug, "caught" if check else "SURVIVED the audit", check)


def check_unchanged(bugs: Sequence[Bug]) -> str:
    """Why an unchanged copy does not pass the tests and audits of all bugs; empty where it does."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_with(Bug("unchanged", (), ()), folder / "src")
        done = run_tests(sorted({test for bug in bugs for test in bug.tests}), folder)
        if done.returncode != 0:
            return f"{done.stdout}\nthe tests do not pass without any bug: mend them first"
        for method, options in sorted({(bug.method, bug.options) for bug in bugs if bug.method}):
            check = failed_check(Bug("unchanged", (), (), method, options), folder, ("failed", "inconclusive"))
            if check:
                return f"the audit of {method} does not pass without any bug: {check}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description="Plant bugs and see that the tests and the audit notice each.")
    parser.add_argument("words", nargs="*", help="plant only bugs with one of these words in their names")
    parser.add_argument("-o", dest="table", type=Path, help="a Markdown file for the table")
    options = parser.parse_args()
    bugs = [bug for bug in known_bugs() if not options.words or any(word in bug.name for word in options.words)]
    if problem := check_unchanged(bugs):
        sys.exit(problem)
    outcomes = []
    with ThreadPoolExecutor(2) as pool:
        for outcome in pool.map(plant, bugs):
            outcomes.append(outcome)
            print(f"{outcome.verdict:12}  {outcome.bug.name}", flush=True)
    caught = sum(outcome.verdict == "caught" for outcome in outcomes)
    print(f"{caught} of {len(bugs)} bugs caught")
    if options.table is not None:
        rows = (
            f"| {one.bug.name} | {', '.join(Path(test).name for test in one.bug.tests)} | {one.check} |\n"
            for one in outcomes
        )
        options.table.write_text(HEADING.format(caught=caught, bugs=len(bugs)) + "".join(rows))
    sys.exit(caught != len(bugs))


if __name__ == "__main__":
    main()
