"""Ids, titles and names with characters that a terminal would obey, through every command that prints them."""

import ast
import json
import re
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.cli.conftest import refused, run, run_on_terminal

import dpals

HOSTILE = "film\x1b]0;mine\x07\x9b2J\u202e"
SOURCE = Path(dpals.__file__).parent


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A model, a history and a ledger that someone else has made."""
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    pairs = [(user, item) for user in range(40) for item in rng.permutation(12)[:6]]
    rows = [(f"{HOSTILE} {user}", f"{HOSTILE} {item}", float(rng.integers(1, 6))) for user, item in pairs]
    frame = pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row")
    frame.write_csv(folder / "history.csv")
    ratings = dpals.Ratings.from_frame(frame, rating_range=(1, 5))
    dpals.ALS(rank=2, steps=2).fit(ratings).save(folder / "model")
    ledger = dpals.Ledger(folder / "ledger.db")
    dpals.ItemMean(1.0, 1e-5).fit(ratings, ledger=ledger, dataset=HOSTILE).save(folder / "private")
    ledger.spend(HOSTILE, HOSTILE, cost=1)
    return folder


SEEN = {
    "similar": ("similar", "model", f"{HOSTILE} 3"),
    "recommend": ("recommend", "model", "--history", "history.csv", "-k", "2"),
    "recommend as JSON": ("recommend", "model", "--history", "history.csv", "-k", "2", "--json"),
    "statement": ("statement", "private"),
    "ledger": ("ledger", "show", "ledger.db"),
    "an error": ("similar", "model", HOSTILE),
    "a usage error": ("similar", HOSTILE, "3"),
    "a budget": ("ledger", "declare", "other.db", HOSTILE, "--epsilon", "1", "--delta", "1e-5"),
}


@pytest.mark.parametrize("arguments", SEEN.values(), ids=SEEN)
def test_a_terminal_obeys_nothing(home, arguments):
    _, seen = run_on_terminal(*arguments, cwd=home)
    assert "film" in seen
    assert "\\u001b]0;mine" in seen or "\\x1b]0;mine" in seen
    for obeyed in ("\x1b]", "\x07", "\x9b", "\u202e"):
        assert obeyed not in seen


@pytest.mark.parametrize("name", ["similar", "recommend", "ledger"])
def test_pipes_and_files_get_what_is_there(home, name):
    result = run(*SEEN[name], cwd=home)
    assert result.returncode == 0, result.stderr
    assert HOSTILE in result.stdout


def test_json_of_recommendations_is_the_same_for_both(home):
    _, seen = run_on_terminal(*SEEN["recommend as JSON"], cwd=home)
    shown = re.findall(r"{.*}", seen)
    piped = [json.loads(line) for line in run(*SEEN["recommend as JSON"], cwd=home).stdout.splitlines()]
    assert [json.loads(line) for line in shown] == piped


BUG = """
import dpals.cli, dpals.model.factor_model
def load(path):
    raise TypeError("\\x1b]mine")
dpals.model.factor_model.load = load
dpals.cli.main()
"""


def test_a_bug_shows_its_trace_and_nothing_else(home):
    code, seen = run_on_terminal("statement", "model", cwd=home, command=[sys.executable, "-c", BUG])
    assert code == 1
    assert "Traceback" in seen
    assert "TypeError: \\u001b]mine" in seen


def test_nothing_else_prints():
    """All output goes through `echo` and our Console, which know what a terminal may see."""
    for path in SOURCE.rglob("*.py"):
        if path in (SOURCE / "system" / "terminal.py", SOURCE / "system" / "console.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert name not in ("click.echo", "click.secho", "rich.print"), f"{path}: {name}"
            if isinstance(node, ast.ImportFrom):
                assert node.module != "rich.console", path


def test_errors_are_one_sentence_in_pipes(home):
    refused(run("similar", "model", "nothing", cwd=home), "the model has no item 'nothing'")
