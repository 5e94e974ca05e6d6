"""The command as a process, with real files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpals

COMMAND = Path(sys.executable).with_name("dpals")


def run(*arguments, cwd=None):
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "120"},
    )


def test_help_names_every_command():
    result = run("--help")
    assert result.returncode == 0
    for name in ("datasets", "doctor", "ledger", "plan", "quickstart", "reproduce", "simulate"):
        assert name in result.stdout
        assert run(name, "--help").returncode == 0


def test_version():
    assert run("--version").stdout.strip() == f"dpals {dpals.__version__}"


def test_help_loads_nothing_heavy():
    code = "import sys, dpals.cli; print([m for m in ('numpy', 'scipy', 'numba', 'polars') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


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


def test_quickstart_trains_compares_and_states(tmp_path):
    result = run("quickstart", "--users", 2_000, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    for word in (
        "simulated",
        "global mean",
        "user mean",
        "PrivateBiases, epsilon 1",
        "PooledDPALS, epsilon 1",
        "Privacy statement",
        "Not covered",
    ):
        assert word in result.stdout
    page = (tmp_path / "quickstart" / "privacy.html").read_text()
    assert "epsilon = 1 at delta = 1e-06" in page
    assert "NOT PRIVATE" not in page


@pytest.mark.parametrize("name", ["ratings.csv", "ratings.parquet"])
def test_simulated_ratings_can_be_read_back(tmp_path, name):
    result = run("simulate", name, "--users", 300, "--items", 100, "--mean-ratings", 25, "--seed", 4, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "simulated ratings" in result.stdout
    ratings = dpals.read_ratings(tmp_path / name, rating_range=(0.5, 5.0), catalogue=range(100))
    expected = dpals.simulate.movielens_like(300, 100, 25, seed=4)
    assert ratings.values.tolist() == expected.values.tolist()
    assert ratings.indices.tolist() == expected.indices.tolist()
    assert os.listdir(tmp_path) == [name]


@pytest.fixture
def ledger(tmp_path):
    ledger = dpals.Ledger(tmp_path / "ledger.db")
    ledger.declare("films", epsilon=1.0, delta=1e-6)
    ledger.spend("films", "item counts", cost=10**17)
    return ledger


def test_ledger_show(ledger):
    text = run("ledger", "show", ledger.path).stdout
    for word in ("films: item counts", "spent in all", "allowed", "epsilon 1.0, delta 1e-06"):
        assert word in text
    entries = json.loads(run("ledger", "show", ledger.path, "--json").stdout)
    assert [entry["kind"] for entry in entries] == ["budget", "spend"]
    assert entries[1]["cost"] == 10**17


def test_ledger_verify(ledger):
    assert ledger.verify() in run("ledger", "verify", ledger.path).stdout
    ledger.path.write_bytes(b"scribble")
    for action in ("verify", "show"):
        result = run("ledger", action, ledger.path)
        assert result.returncode == 1
        assert "cannot be trusted" in result.stderr


def test_doctor_finds_this_installation_well():
    result = run("doctor")
    assert result.returncode == 0
    assert "a release works" in result.stdout


def test_reproduce_lists_its_names():
    shown = run("reproduce", "--list").stdout
    assert "frontier" in shown
    assert "tradeoff-synthetic" in shown


def test_reproduce_writes_what_it_found_and_remembers_it(tmp_path):
    for said in ("", "12 of 12 cells were measured before"):
        result = run("reproduce", "accounting", "-o", "out", cwd=tmp_path)
        assert result.returncode == 0
        assert "keep what is printed" in result.stdout
        assert said in result.stdout
    assert sorted(path.name for path in (tmp_path / "out" / "accounting").iterdir()) == [
        "README.md",
        "accounting.png",
        "table.csv",
    ]


def test_reproduce_on_a_file_of_ones_own(tmp_path):
    """It is used where it can be; where not, the command says so; a range that is missing ends it before anything."""
    assert run("simulate", "own.csv", "--users", 300, "--items", 200, cwd=tmp_path).returncode == 0
    result = run("reproduce", "count-distribution", "--data", "own.csv", cwd=tmp_path)
    assert result.returncode == 1
    assert "need rating_range" in result.stderr
    own = ("--data", "own.csv", "--rating-range", 0.5, 5)
    result = run("reproduce", "count-distribution", "accounting", *own, cwd=tmp_path)
    assert result.returncode == 0
    assert "own.csv: the top tenth" in result.stdout
    assert "accounting has data of its own" in result.stdout
    assert "count-distribution has data of its own" not in result.stdout
    page = (tmp_path / "results" / "count-distribution" / "README.md").read_text()
    assert "`dpals reproduce count-distribution --data own.csv --rating-range 0.5 5.0`" in page


def test_plan_prints_a_table_and_draws(tmp_path):
    size = ("--users", 800, "--items", 100, "--ratings", 20_000)
    result = run("plan", *size, "--epsilon", 5, "-o", "plan.png", cwd=tmp_path)
    assert result.returncode == 0
    assert "PooledDPALS" in result.stdout
    assert "simulated" in result.stdout
    assert (tmp_path / "plan.png").stat().st_size > 10_000
