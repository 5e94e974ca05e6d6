"""The command as a process, with real files."""

import os
import subprocess
import sys
import time

import click
import pytest
from tests.cli.conftest import run

import dpals
from dpals.cli import dpals as group

COMMANDS = group.list_commands(click.Context(group))


def test_help_names_every_command_in_a_sensible_order():
    result = run("--help")
    assert result.returncode == 0
    places = [result.stdout.index(f"\n  {name} ") for name in COMMANDS]
    assert places == sorted(places)
    assert [COMMANDS[0], COMMANDS[-1]] == ["quickstart", "completion"]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches(name):
    """Every command shows how it is called, and loads nothing heavy for that."""
    heavy = "('numpy', 'scipy', 'numba', 'polars')"
    code = (
        "import sys, dpals.cli\n"
        "try: dpals.cli.main()\n"
        f"finally: print([m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    )
    call = [sys.executable, "-c", code, name, "-h"]
    result = subprocess.run(call, capture_output=True, text=True, check=True)
    examples = [line for line in result.stdout.splitlines() if f"dpals {name}" in line and "Usage" not in line]
    assert examples
    assert result.stderr.strip() == "[]"


def test_help_is_quick():
    """The best of five, on a machine that may be busy."""
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        run("--help")
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.4


def test_a_misspelled_command_is_corrected():
    assert "Did you mean 'recommend'?" in run("recomend").stderr


def test_version():
    assert run("--version").stdout.strip() == f"dpals {dpals.__version__}"


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["quickstart", "--users", "3"],
        ["quickstart", "--epsilon", "much"],
        ["simulate", "ratings.xlsx"],
        ["simulate"],
        ["ledger", "show", "no-such-file"],
        ["reproduce"],
        ["reproduce", "everything"],
        ["reproduce", "rank", "--all"],
        ["plan", "--users", "100"],
        ["datasets", "get", "ml-2m"],
    ],
)
def test_a_wrong_command_exits_with_2_and_says_why(arguments, tmp_path):
    result = run(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert "Error" in result.stderr
    assert "Traceback" not in result.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["quickstart", "--epsilon", "-1"], "epsilon must be a positive number"),
        (["quickstart", "--delta", "0"], "delta must lie strictly between 0 and 1"),
        (["simulate", "missing/ratings.csv"], "missing"),
    ],
)
def test_work_that_cannot_be_done_exits_with_1_and_says_why(arguments, message, tmp_path):
    result = run(*arguments, cwd=tmp_path)
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert os.listdir(tmp_path) == []
