"""The command as a process, with real files."""

import os
import subprocess
import sys

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


HEAVY = """
import sys, dpals.cli
try:
    dpals.cli.main()
finally:
    print([name for name in ("numpy", "scipy", "numba", "polars", "rich") if name in sys.modules], file=sys.stderr)
"""


def loading(*arguments):
    """Run the command; its output, and which heavy modules it has loaded."""
    call = [sys.executable, "-c", HEAVY, *arguments]
    result = subprocess.run(call, capture_output=True, text=True, check=True)
    return result.stdout, result.stderr.strip()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches(name):
    """Every command shows how it is called, and loads nothing heavy for that."""
    text, loaded = loading(name, "-h")
    assert [line for line in text.splitlines() if f"dpals {name}" in line and "Usage" not in line]
    assert loaded == "[]"


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_loads_nothing_heavy(option):
    """So it is quick: `benchmarks/run.py` measures how quick."""
    assert loading(option)[1] == "[]"


def test_the_package_is_the_command():
    result = subprocess.run([sys.executable, "-m", "dpals", "--help"], capture_output=True, text=True, check=True)
    assert result.stdout == run("--help").stdout
    wrong = subprocess.run([sys.executable, "-m", "dpals", "nothing"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("Usage: dpals ")


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
