"""``dpals fit`` as a process: what it spends, what it says, and what is left when it is broken off."""

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from tests.cli.conftest import COMMAND, run_on_terminal
from tests.cli.conftest import run as dpals_command

import dpals
from dpals.release.accounting import Budget

BUDGET = Budget(1.0, 1e-6)
ARGUMENTS = ("--epsilon", "1", "--rating-range", "0.5", "5")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "ratings.csv"
    subprocess.run([COMMAND, "simulate", path, "--users", "2000", "--items", "200", "--mean-ratings", "30"], check=True)
    return path


def run(*arguments, **options):
    return dpals_command("fit", *arguments, **options)


def spent(folder, dataset="ratings"):
    return dpals.Ledger(folder / "dpals-ledger.db").spent(dataset)


def test_trains_saves_and_records(file, tmp_path):
    result = run(file, "-o", "model", *ARGUMENTS, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Will spend: at most epsilon 1 at delta 1e-06 (mu 0.2368) of the data set 'ratings'" in result.stderr
    assert "PooledDPALS" in result.stderr
    model = dpals.load(tmp_path / "model")
    assert model.privacy.is_private
    assert model.privacy.dataset == "ratings"
    assert model.rating_range == (0.5, 5.0)
    assert sum(release.cost for release in model.privacy.releases) <= BUDGET.cost
    assert spent(tmp_path) == BUDGET.cost, "costs of this method depend on its releases"
    assert "All runs on 'ratings' together: epsilon 1 at delta 1e-06 (mu 0.2368)." in result.stdout
    assert "epsilon 1 at delta 1e-06)" in result.stdout
    assert sorted(os.listdir(tmp_path)) == ["dpals-ledger.db", "model"]
    assert not (tmp_path / "model" / "checkpoint").exists()


def test_json_holds_the_result_and_nothing_else_is_printed(file, tmp_path):
    settings = ("--set", "rank=2", "--set", "steps=2", "--dataset", "films", "--ledger", "book.db")
    result = run(file, "-o", "model", *ARGUMENTS, *settings, "--json", "--quiet", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    told = json.loads(result.stdout)
    assert (told["method"], told["rank"], told["private"], told["dataset"]) == ("PooledDPALS", 2, True, "films")
    assert told["epsilon"] <= 1
    assert dpals.Ledger(tmp_path / "book.db").verify() == told["ledger_head"]
    assert (told["dataset_epsilon"], told["dataset_delta"], told["dataset_searches"]) == (1.0, 1e-6, [])


def test_a_dry_run_spends_nothing_and_leaves_nothing(file, tmp_path):
    result = run(file, "-o", "model", *ARGUMENTS, "--dry-run", cwd=tmp_path)
    assert result.returncode == 0
    assert "Nothing was spent" in result.stderr
    told = json.loads(run(file, "-o", "model", *ARGUMENTS, "--dry-run", "--json", cwd=tmp_path).stdout)
    assert (told["epsilon"], told["dataset"], told["ledger"]) == (1.0, "ratings", "dpals-ledger.db")
    assert os.listdir(tmp_path) == []


def test_implicit_feedback_with_a_catalogue(file, tmp_path):
    catalogue = [str(item) for item in range(300)]
    (tmp_path / "items.txt").write_text("\n".join(catalogue) + "\n")
    arguments = ("--epsilon", 2, "--implicit", "--catalogue", "items.txt", "--method", "popularity")
    result = run(file, "-o", "model", *arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    model = dpals.load(tmp_path / "model")
    assert model.rating_range is None
    assert model.items.tolist() == list(range(300))
    assert any("given by the caller" in fact for fact in model.privacy.assumptions)


def test_a_method_that_is_not_private_says_so_and_needs_no_epsilon(file, tmp_path):
    result = run(file, "-o", "model", "--method", "als", "--rating-range", 0.5, 5, "--set", "rank=2", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "NOT private" in result.stderr
    assert dpals.load(tmp_path / "model").privacy is None
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rating-range", 0.5, 5], "say how much privacy to spend with --epsilon"),
        (["--epsilon", 1], "--rating-range LOW HIGH"),
        ([*ARGUMENTS, "--method", "magic"], "'magic' is not one of"),
        ([*ARGUMENTS, "--method", "als"], "als is not private"),
        ([*ARGUMENTS, "--set", "rank"], "--set takes NAME=VALUE"),
        ([*ARGUMENTS, "--set", "epsilon=3"], "give epsilon as --epsilon 3"),
        ([*ARGUMENTS, "--dataset", ""], "the data set needs a name"),
        ([*ARGUMENTS, "--set", "ranc=3"], "PooledDPALS has no parameter 'ranc'"),
        (["--epsilon", "little", "--rating-range", 0.5, 5], "'little' is not a valid float"),
    ],
)
def test_a_wrong_command_exits_with_2_before_anything_happens(file, tmp_path, arguments, message):
    result = run(file, "-o", "model", *arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", 0, "--rating-range", 0.5, 5], "epsilon must be a positive number"),
        ([*ARGUMENTS, "--delta", 2], "delta must lie strictly between 0 and 1"),
        (["--epsilon", 1, "--rating-range", 1, 4], "is outside the declared rating_range 1 to 4"),
        ([*ARGUMENTS, "--set", "rank=900"], "rank 900 is more than the number of items"),
        ([*ARGUMENTS, "--set", "clip=-1"], "clip must be"),
        ([*ARGUMENTS, "--method", "popularity"], "Popularity is for implicit feedback"),
    ],
)
def test_what_cannot_be_done_exits_with_1_before_anything_is_spent(file, tmp_path, arguments, message):
    result = run(file, "-o", "model", *arguments, cwd=tmp_path)
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert os.listdir(tmp_path) == []


def test_a_budget_that_is_too_small_is_refused_before_the_data_is_read(tmp_path):
    (tmp_path / "ratings.csv").write_text("this is no table of ratings")
    dpals.Ledger(tmp_path / "dpals-ledger.db").declare("ratings", 0.5, 1e-6)
    result = run("ratings.csv", "-o", "model", *ARGUMENTS, cwd=tmp_path)
    assert result.returncode == 1
    assert "'training PooledDPALS' would bring what is spent on 'ratings' to epsilon 1 at delta 1e-06" in result.stderr
    assert "its budget is epsilon 0.5 at delta 1e-06 (mu 0.1241)" in result.stderr
    assert "nothing was spent" in result.stderr
    assert spent(tmp_path) == 0


def test_a_model_that_was_paid_for_is_not_overwritten_by_accident(file, tmp_path):
    arguments = (file, "-o", "model", *ARGUMENTS, "--method", "item-mean")
    assert run(*arguments, cwd=tmp_path).returncode == 0
    before = (tmp_path / "model" / "model.json").read_bytes()
    refused = run(*arguments, cwd=tmp_path)
    assert refused.returncode == 2
    assert "holds a model that was paid for" in refused.stderr
    assert (tmp_path / "model" / "model.json").read_bytes() == before
    assert run(*arguments, "--overwrite", cwd=tmp_path).returncode == 0
    assert (tmp_path / "model" / "model.json").read_bytes() != before


@pytest.mark.parametrize(
    "places",
    [
        ("-o", "occupied/model"),
        ("-o", "model", "--ledger", "occupied/ledger.db"),
        ("-o", "model", "--checkpoint", "occupied/checkpoint"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_spent(file, tmp_path, places):
    (tmp_path / "occupied").write_text("a file")
    result = run(file, *places, *ARGUMENTS, cwd=tmp_path)
    assert result.returncode == 1
    assert "occupied is a file, not a folder" in result.stderr
    assert "Traceback" not in result.stderr
    assert os.listdir(tmp_path) == ["occupied"]


def test_a_ledger_that_another_process_holds_is_said(file, tmp_path):
    path = tmp_path / "dpals-ledger.db"
    dpals.Ledger(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    result = run(file, "-o", "model", *ARGUMENTS, cwd=tmp_path)
    other.close()
    assert result.returncode == 1
    assert "another process holds it. Try again when that is done" in result.stderr
    assert spent(tmp_path) == 0


SMALL = ("--set", "rank=4", "--set", "steps=3")


INTERRUPTED = """
import os, sys
from dpals.ledger.checkpoint import Checkpoint
from dpals.cli import main

how, after = int(sys.argv.pop(1)), int(sys.argv.pop(1))
save = Checkpoint.save

def interrupted(self, number, record, table):
    save(self, number, record, table)
    if number == after:
        os.kill(os.getpid(), how)

Checkpoint.save = interrupted
main()
"""


def interrupted(file, folder, how, after, *more):
    """Train, and get a signal when the checkpoint has some releases."""
    arguments = ["fit", file, "-o", "model", *ARGUMENTS, *SMALL, *more]
    command = [sys.executable, "-c", INTERRUPTED, *map(str, (int(how), after, *arguments))]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_goes_on_after_it_was_broken_off_without_paying_twice(file, tmp_path, how):
    """With a budget that is just enough, so that paying twice for anything would be refused."""
    dpals.Ledger(tmp_path / "dpals-ledger.db").declare("ratings", 1.0, 1e-6)
    code, errors = interrupted(file, tmp_path, how, after=7)
    assert code == (-signal.SIGKILL if how == signal.SIGKILL else 1), errors
    if how != signal.SIGKILL:
        assert "Run the same command again to go on without paying twice" in errors
        assert "Traceback" not in errors
    kept = {path.name: path.read_bytes() for path in tmp_path.glob("model/checkpoint/release-*.safetensors")}
    assert len(kept) == 7
    assert not (tmp_path / "model" / "model.json").exists()
    result = run(file, "-o", "model", *ARGUMENTS, *SMALL, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert f"resuming with {len(kept)} releases" in result.stderr
    assert spent(tmp_path) == BUDGET.cost
    assert not (tmp_path / "model" / "checkpoint").exists()
    assert [path.name for path in tmp_path.rglob("*.part")] == []


def test_starting_over_is_possible_and_costs_again(file, tmp_path):
    interrupted(file, tmp_path, signal.SIGKILL, 3)
    before = spent(tmp_path)
    result = run(file, "-o", "model", *ARGUMENTS, *SMALL, "--fresh", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "going on" not in result.stderr
    assert before == BUDGET.cost, "some of it was released, and its costs are adaptive"
    assert spent(tmp_path) == 2 * BUDGET.cost
    assert dpals.Ledger(tmp_path / "dpals-ledger.db").open_runs() == []


def test_starting_over_gives_back_what_was_not_spent(file, tmp_path):
    """With a budget that has room for one whole run and a little."""
    ledger = dpals.Ledger(tmp_path / "dpals-ledger.db")
    ledger.declare("ratings", 1.2, 1e-6)
    method = ("--method", "sgd", "--set", "steps=20")
    interrupted(file, tmp_path, signal.SIGKILL, 3, *method)
    (held,) = ledger.open_runs()
    assert ledger.spent("ratings") == BUDGET.cost > 2 * held.spent
    result = run(file, "-o", "model", *ARGUMENTS, *SMALL, *method, "--fresh", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    releases = dpals.load(tmp_path / "model").privacy.releases
    assert ledger.spent("ratings") == held.spent + sum(release.cost for release in releases)


def test_a_run_that_was_broken_off_holds_its_budget_until_it_is_released(file, tmp_path):
    ledger = dpals.Ledger(tmp_path / "dpals-ledger.db")
    ledger.declare("ratings", 1.2, 1e-6)
    interrupted(file, tmp_path, signal.SIGKILL, 3, "--method", "sgd", "--set", "steps=20")
    (held,) = ledger.open_runs()
    other = (file, "-o", "other", *ARGUMENTS, "--method", "item-mean")
    refused = run(*other, cwd=tmp_path)
    assert refused.returncode == 1
    assert "Runs that have not ended hold" in refused.stderr
    shown = dpals_command("ledger", "show", "dpals-ledger.db", cwd=tmp_path).stdout
    assert f"dpals ledger release dpals-ledger.db {held.name}" in shown
    released = dpals_command("ledger", "release", "dpals-ledger.db", held.name, cwd=tmp_path)
    assert released.returncode == 0, released.stderr
    assert ledger.spent("ratings") == held.spent
    assert run(*other, cwd=tmp_path).returncode == 0


def test_the_same_people_under_another_name_are_noticed(file, tmp_path):
    (tmp_path / "copy.csv").write_bytes(file.read_bytes())
    method = ("--method", "item-mean")
    assert "many users" not in run(file, "-o", "first", *ARGUMENTS, *method, cwd=tmp_path).stderr
    for last in (("--dry-run",), ("--quiet",)):
        result = run("copy.csv", "-o", "second", *ARGUMENTS, *method, *last, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert "Note: many users of 'copy' are in this ledger as 'ratings' already" in result.stderr


def test_a_full_dry_run_leaves_the_ledger_alone(file, tmp_path):
    path = tmp_path / "dpals-ledger.db"
    dpals.Ledger(path).note_users("other", range(5))
    before = path.read_bytes()
    assert run(file, "-o", "model", *ARGUMENTS, "--dry-run", cwd=tmp_path).returncode == 0
    assert path.read_bytes() == before


def test_other_arguments_do_not_go_on_with_a_run_by_accident(file, tmp_path):
    interrupted(file, tmp_path, signal.SIGKILL, 3)
    before = spent(tmp_path)
    result = run(file, "-o", "model", *ARGUMENTS, cwd=tmp_path)
    assert result.returncode == 1
    assert "was 4 and is now None" in result.stderr or "was 3 and is now None" in result.stderr
    assert "--fresh" in result.stderr
    assert spent(tmp_path) == before


def test_a_full_disk_loses_nothing(file, tmp_path):
    """Files may not grow beyond a limit that the releases fit into, and the model does not."""
    arguments = (
        file,
        "-o",
        "model",
        *ARGUMENTS,
        "--method",
        "dpals",
        "--set",
        "rank=16",
        "--set",
        "frequent_fraction=1.0",
    )
    limit = 150_000

    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    result = run(*arguments, cwd=tmp_path, preexec_fn=full)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "Run the same command again" in result.stderr
    assert list(tmp_path.rglob("*.part")) == []
    again = run(*arguments, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    model = dpals.load(tmp_path / "model")
    assert spent(tmp_path) == sum(release.cost for release in model.privacy.releases)


def test_progress_appears_on_a_terminal(file, tmp_path):
    arguments = ("fit", file, "-o", "model", *ARGUMENTS, *SMALL)
    code, shown = run_on_terminal(*arguments, cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert code == 0, shown
    for word in ("Training", "left:", "100%"):
        assert word in shown


@pytest.mark.parametrize("name", ["[/b]", "[red]films", ":smile:", "a\x1b[31mb"])
def test_a_data_set_may_have_any_name(file, tmp_path, name):
    """Brackets mean nothing to rich, in messages, notes and results."""
    arguments = ("fit", file, *ARGUMENTS, "--method", "global-mean", "--dataset", name)
    piped = dpals_command(*arguments, "-o", "a[/b]", cwd=tmp_path)
    assert piped.returncode == 0, piped.stderr
    assert f"of the data set {name!r}" in piped.stderr
    code, shown = run_on_terminal(*arguments, "-o", "b[/b]", cwd=tmp_path)
    assert code == 0, shown
    assert f"Spent on {name!r} before" in shown
    assert "dpals statement b[/b]" in shown
    assert "\x1b[31m" not in shown


def test_the_same_model_as_in_python_apart_from_the_noise(file, tmp_path):
    """With so much budget that there is hardly any noise."""
    arguments = ("--epsilon", 1e6, "--rating-range", 0.5, 5, "--method", "item-mean")
    assert run(file, "-o", "model", *arguments, cwd=tmp_path).returncode == 0
    ratings = dpals.read_ratings(file, rating_range=(0.5, 5.0))
    expected = dpals.ItemMean(1e6, 1e-6).fit(ratings).model_
    model = dpals.load(tmp_path / "model")
    assert np.array_equal(model.items, expected.items)
    np.testing.assert_allclose(model.item_biases, expected.item_biases, atol=0.01)
