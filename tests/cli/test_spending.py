"""What ``dpals fit`` may spend: refused, announced, held by interrupted runs, and given up."""

import json
import os
import signal
import sqlite3

from tests.cli.conftest import FIT, SMALL, interrupted_fit
from tests.cli.conftest import run as dpals_command

import dpals
from dpals.ledger import transactions
from dpals.release.accounting import Budget

BUDGET = Budget(1.0, 1e-6)


def run(*arguments, **options):
    return dpals_command("fit", *arguments, **options)


def spent(folder, dataset="ratings"):
    return dpals.Ledger(folder / "dpals-ledger.db").spent(dataset)


def test_a_dry_run_spends_nothing_and_leaves_nothing(ratings_file, tmp_path):
    result = run(ratings_file, "-o", "model", *FIT, "--dry-run", cwd=tmp_path)
    assert result.returncode == 0
    assert "Nothing was spent" in result.stderr
    told = json.loads(run(ratings_file, "-o", "model", *FIT, "--dry-run", "--json", cwd=tmp_path).stdout)
    assert (told["epsilon"], told["dataset"], told["ledger"]) == (1.0, "ratings", "dpals-ledger.db")
    assert os.listdir(tmp_path) == []


def test_a_budget_that_is_too_small_is_refused_before_the_data_is_read(tmp_path):
    (tmp_path / "ratings.csv").write_text("this is no table of ratings")
    dpals.Ledger(tmp_path / "dpals-ledger.db").declare("ratings", 0.5, 1e-6)
    result = run("ratings.csv", "-o", "model", *FIT, cwd=tmp_path)
    assert result.returncode == 1
    assert "'training PooledDPALS' would bring what is spent on 'ratings' to epsilon 1 at delta 1e-06" in result.stderr
    assert "its budget is epsilon 0.5 at delta 1e-06 (mu 0.1241)" in result.stderr
    assert "nothing was spent" in result.stderr
    assert spent(tmp_path) == 0


def test_a_ledger_that_another_process_holds_is_said(ratings_file, tmp_path, monkeypatch):
    monkeypatch.setitem(transactions._OPEN, "timeout", 0.2)
    path = tmp_path / "dpals-ledger.db"
    dpals.Ledger(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    result = run(ratings_file, "-o", "model", *FIT, cwd=tmp_path)
    other.close()
    assert result.returncode == 1
    assert "another process holds it. Try again when that is done" in result.stderr
    assert spent(tmp_path) == 0


def test_starting_over_is_possible_and_costs_again(ratings_file, tmp_path):
    interrupted_fit(ratings_file, tmp_path, signal.SIGKILL, 3)
    before = spent(tmp_path)
    result = run(ratings_file, "-o", "model", *FIT, *SMALL, "--fresh", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "resuming" not in result.stderr
    assert before == BUDGET.cost, "some of it was released, and its costs are adaptive"
    assert spent(tmp_path) == 2 * BUDGET.cost
    assert dpals.Ledger(tmp_path / "dpals-ledger.db").open_runs() == []


def test_starting_over_gives_back_what_was_not_spent(ratings_file, tmp_path):
    """With a budget that has room for one whole run and a little."""
    ledger = dpals.Ledger(tmp_path / "dpals-ledger.db")
    ledger.declare("ratings", 1.2, 1e-6)
    method = ("--method", "sgd", "--set", "steps=20")
    interrupted_fit(ratings_file, tmp_path, signal.SIGKILL, 3, *method)
    (held,) = ledger.open_runs()
    assert ledger.spent("ratings") == BUDGET.cost > 2 * held.spent
    result = run(ratings_file, "-o", "model", *FIT, *SMALL, *method, "--fresh", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    releases = dpals.load(tmp_path / "model").privacy.releases
    assert ledger.spent("ratings") == held.spent + sum(release.cost for release in releases)


def test_an_interrupted_run_holds_its_budget_until_it_is_released(ratings_file, tmp_path):
    ledger = dpals.Ledger(tmp_path / "dpals-ledger.db")
    ledger.declare("ratings", 1.2, 1e-6)
    interrupted_fit(ratings_file, tmp_path, signal.SIGKILL, 3, "--method", "sgd", "--set", "steps=20")
    (held,) = ledger.open_runs()
    other = (ratings_file, "-o", "other", *FIT, "--method", "item-mean")
    refused = run(*other, cwd=tmp_path)
    assert refused.returncode == 1
    assert "Runs that have not ended hold" in refused.stderr
    shown = dpals_command("ledger", "show", "dpals-ledger.db", cwd=tmp_path).stdout
    assert f"dpals ledger release dpals-ledger.db {held.name}" in shown
    released = dpals_command("ledger", "release", "dpals-ledger.db", held.name, cwd=tmp_path)
    assert released.returncode == 0, released.stderr
    assert ledger.spent("ratings") == held.spent
    assert run(*other, cwd=tmp_path).returncode == 0


def test_the_same_people_under_another_name_are_noticed(ratings_file, tmp_path):
    (tmp_path / "copy.csv").write_bytes(ratings_file.read_bytes())
    method = ("--method", "item-mean")
    assert "many users" not in run(ratings_file, "-o", "first", *FIT, *method, cwd=tmp_path).stderr
    for last in (("--dry-run",), ("--quiet",)):
        result = run("copy.csv", "-o", "second", *FIT, *method, *last, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert "Warning: many users of 'copy' are in this ledger as 'ratings' already" in result.stderr


def test_the_same_people_in_blocks_are_noticed(ratings_file, blocks_folder, tmp_path):
    method = ("--method", "item-mean")
    assert run(ratings_file, "-o", "first", *FIT, *method, cwd=tmp_path).returncode == 0
    before = (tmp_path / "dpals-ledger.db").read_bytes()
    second = (blocks_folder, "-o", "second", "--epsilon", 1, *method, "--dataset", "copy")
    dry = run(*second, "--dry-run", "--json", cwd=tmp_path)
    assert json.loads(dry.stdout)["epsilon"] == 1
    assert (tmp_path / "dpals-ledger.db").read_bytes() == before
    for result in (dry, run(*second, cwd=tmp_path)):
        assert result.returncode == 0, result.stderr
        assert "Warning: many users of 'copy' are in this ledger as 'ratings' already" in result.stderr


def test_a_full_dry_run_leaves_the_ledger_alone(ratings_file, tmp_path):
    path = tmp_path / "dpals-ledger.db"
    dpals.Ledger(path).note_users("other", range(5))
    before = path.read_bytes()
    assert run(ratings_file, "-o", "model", *FIT, "--dry-run", cwd=tmp_path).returncode == 0
    assert path.read_bytes() == before


def test_it_says_what_was_spent_before_and_on_what_else(ratings_file, tmp_path):
    ledger = dpals.Ledger(tmp_path / "dpals-ledger.db")
    ledger.declare("ratings", 2.0, 1e-6)
    ledger.spend("books", "counts", cost=1)
    shown = run(ratings_file, "-o", "model", *FIT, "--dry-run", cwd=tmp_path).stderr
    assert "Spent on 'ratings' before: epsilon 0 at delta 1e-06 (mu 0); its budget is epsilon 2 at delta" in shown
    assert "The ledger also has 'books'. If one of these is about the same people, pass its name as --dataset" in shown


def test_a_known_seed_is_announced(ratings_file, tmp_path):
    shown = run(ratings_file, "-o", "model", *FIT, "--set", "insecure_seed=1", "--dry-run", cwd=tmp_path).stderr
    assert "Noise from insecure_seed can be removed: the model will NOT be private." in shown
