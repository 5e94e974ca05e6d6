"""Plant bugs that would break the promise, one at a time, and see that some test catches each.

Run by ``make mutants``, after ``dpals audit --level 5``, which does the same with the audit. The bugs are those of
``dpals/audit/bugs.toml``: each changes a copy of the source, and the tests named beside it must then fail (and pass on
the unchanged copy). A bug that survives fails the run.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dpals.audit.planted_bugs import Bug, copy_with, known_bugs

PROJECT = Path(__file__).resolve().parents[2]
UNCHANGED = Bug("unchanged", "", (), ())


def tested(bug: Bug, tests: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """pytest on a copy of the project. Exit code 0: passed, 1: failed, others: did not run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_with(bug, folder / "src")
        shutil.copytree(PROJECT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        for part in ("pyproject.toml", "README.md"):
            shutil.copy(PROJECT / part, folder / part)
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *tests],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder / "src"), "CI": "true"},
            capture_output=True,
            text=True,
            check=False,
        )


def main() -> None:
    bugs = known_bugs()
    unchanged = tested(UNCHANGED, sorted({test for bug in bugs for test in bug.tests}))
    if unchanged.returncode != 0:
        sys.exit(f"{unchanged.stdout}\nthe tests do not pass without any bug: mend them first")
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda bug: tested(bug, bug.tests).returncode, bugs)
        caught = 0
        for bug, result in zip(bugs, results, strict=True):
            caught += result == 1
            verdict = {0: "SURVIVED", 1: "caught"}.get(result, f"DID NOT RUN ({result})")
            print(f"{verdict:12}  {bug.name}", flush=True)
    print(f"{caught} of {len(bugs)} bugs caught")
    sys.exit(caught != len(bugs))


if __name__ == "__main__":
    main()
