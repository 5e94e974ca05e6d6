"""``dpals fit`` as a process: what it trains, what it says, and how an interrupted run resumes."""

import json
import os
import resource
import signal
import subprocess

import numpy as np
import pytest
from tests.cli.conftest import FIT, SMALL, interrupted_fit, run_on_terminal, run_process
from tests.cli.conftest import run as dpals_command

import dpals
from dpals.release.accounting import Budget

BUDGET = Budget(1.0, 1e-6)


def run(*arguments, **options):
    return dpals_command("fit", *arguments, **options)


def spent(folder, dataset="ratings"):
    return dpals.Ledger(folder / "dpals-ledger.db").spent(dataset)


def test_trains_saves_and_records(ratings_file, tmp_path):
    result = run(ratings_file, "-o", "model", *FIT, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Will spend: at most epsilon 1 at delta 1e-06 (mu 0.2368) on the data set 'ratings'" in result.stderr
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


def test_json_holds_the_result_and_nothing_else_is_printed(ratings_file, tmp_path):
    settings = ("--set", "rank=2", "--set", "steps=2", "--dataset", "films", "--ledger", "book.db")
    result = run(ratings_file, "-o", "model", *FIT, *settings, "--json", "--quiet", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    told = json.loads(result.stdout)
    assert (told["method"], told["rank"], told["private"], told["dataset"]) == ("PooledDPALS", 2, True, "films")
    assert told["epsilon"] <= 1
    assert dpals.Ledger(tmp_path / "book.db").verify() == told["ledger_head"]
    assert (told["dataset_epsilon"], told["dataset_delta"], told["dataset_searches"]) == (1.0, 1e-6, [])


def test_implicit_feedback_with_a_catalogue(ratings_file, tmp_path):
    catalogue = [str(item) for item in range(300)]
    (tmp_path / "items.txt").write_text("\n".join(catalogue) + "\n")
    arguments = ("--epsilon", 2, "--implicit", "--catalogue", "items.txt", "--method", "popularity")
    result = run(ratings_file, "-o", "model", *arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    model = dpals.load(tmp_path / "model")
    assert model.rating_range is None
    assert model.items.tolist() == list(range(300))
    assert any("given by the caller" in fact for fact in model.privacy.assumptions)


def test_a_method_that_is_not_private_says_so_and_needs_no_epsilon(ratings_file, tmp_path):
    result = run(
        ratings_file, "-o", "model", "--method", "als", "--rating-range", 0.5, 5, "--set", "rank=2", cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert "NOT private" in result.stderr
    assert dpals.load(tmp_path / "model").privacy is None
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rating-range", 0.5, 5], "say how much privacy to spend with --epsilon"),
        (["--epsilon", 1], "--rating-range LOW HIGH"),
        ([*FIT, "--method", "magic"], "'magic' is not one of"),
        ([*FIT, "--method", "als"], "als is not private"),
        ([*FIT, "--set", "rank"], "--set takes NAME=VALUE"),
        ([*FIT, "--set", "epsilon=3"], "give epsilon as --epsilon 3"),
        ([*FIT, "--dataset", ""], "the data set needs a name"),
        ([*FIT, "--set", "ranc=3"], "PooledDPALS has no parameter 'ranc'"),
        (["--epsilon", "little", "--rating-range", 0.5, 5], "'little' is not a valid float"),
    ],
)
def test_a_wrong_command_exits_with_2_before_anything_happens(ratings_file, tmp_path, arguments, message):
    result = run(ratings_file, "-o", "model", *arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", 0, "--rating-range", 0.5, 5], "epsilon must be a positive number"),
        ([*FIT, "--delta", 2], "delta must lie strictly between 0 and 1"),
        (["--epsilon", 1, "--rating-range", 1, 4], "is outside the declared rating_range 1 to 4"),
        ([*FIT, "--set", "rank=900"], "rank 900 is more than the number of items"),
        ([*FIT, "--set", "clip=-1"], "clip must be"),
        ([*FIT, "--method", "popularity"], "Popularity is for implicit feedback"),
    ],
)
def test_what_cannot_be_done_exits_with_1_before_anything_is_spent(ratings_file, tmp_path, arguments, message):
    result = run(ratings_file, "-o", "model", *arguments, cwd=tmp_path)
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert os.listdir(tmp_path) == []


def test_a_model_that_was_paid_for_is_not_overwritten_by_accident(ratings_file, tmp_path):
    arguments = (ratings_file, "-o", "model", *FIT, "--method", "item-mean")
    assert run(*arguments, cwd=tmp_path).returncode == 0
    before = (tmp_path / "model" / "model.json").read_bytes()
    refused = run(*arguments, cwd=tmp_path)
    assert refused.returncode == 2
    assert "holds a model, for which budget was spent" in refused.stderr
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
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_spent(ratings_file, tmp_path, places):
    (tmp_path / "occupied").write_text("a file")
    result = run(ratings_file, *places, *FIT, cwd=tmp_path)
    assert result.returncode == 1
    assert "occupied is a file, not a folder" in result.stderr
    assert "Traceback" not in result.stderr
    assert os.listdir(tmp_path) == ["occupied"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_training_resumes_without_paying_twice(ratings_file, tmp_path, how):
    """With a budget that is just enough, so that paying twice for anything would be refused."""
    dpals.Ledger(tmp_path / "dpals-ledger.db").declare("ratings", 1.0, 1e-6)
    code, errors = interrupted_fit(ratings_file, tmp_path, how, after=7)
    assert code == (-signal.SIGKILL if how == signal.SIGKILL else 1), errors
    if how != signal.SIGKILL:
        assert "Run the same command again to resume without paying twice" in errors
        assert "Traceback" not in errors
    kept = {path.name: path.read_bytes() for path in tmp_path.glob("model/checkpoint/release-*.safetensors")}
    assert len(kept) == 7
    assert not (tmp_path / "model" / "model.json").exists()
    result = run(ratings_file, "-o", "model", *FIT, *SMALL, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert f"resuming with {len(kept)} releases" in result.stderr
    assert spent(tmp_path) == BUDGET.cost
    assert not (tmp_path / "model" / "checkpoint").exists()
    assert [path.name for path in tmp_path.rglob("*.part")] == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_training_on_blocks_resumes_like_any_other(blocks_folder, tmp_path, how):
    dpals.Ledger(tmp_path / "dpals-ledger.db").declare("ratings", 1.0, 1e-6)
    code, errors = interrupted_fit(blocks_folder, tmp_path, how, after=7)
    assert code == (-signal.SIGKILL if how == signal.SIGKILL else 1), errors
    result = run(blocks_folder, "-o", "model", "--epsilon", 1, *SMALL, "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "resuming with 7 releases" in result.stderr
    assert json.loads(result.stdout)["dataset_epsilon"] == 1.0
    assert spent(tmp_path) == BUDGET.cost
    assert not (tmp_path / "model" / "checkpoint").exists()


@pytest.mark.parametrize("method", [("pooled", "rank=3", "steps=2"), ("item-mean",)])
def test_blocks_train_the_model_of_the_file(ratings_file, blocks_folder, tmp_path, method):
    """With noise that can be repeated; files and blocks are one data set if they have one name."""
    name, *settings = method
    same = ("--epsilon", 1, "--method", name, *(f"--set={one}" for one in (*settings, "insecure_seed=5")))
    from_file = run(ratings_file, "-o", "file", *same, "--rating-range", 0.5, 5, cwd=tmp_path)
    from_blocks = run(blocks_folder, "-o", "blocks", *same, cwd=tmp_path)
    assert (from_file.returncode, from_blocks.returncode) == (0, 0), from_blocks.stderr
    assert f"Opened: {dpals.open_blocks(blocks_folder)}" in from_blocks.stderr
    assert "Spent on 'ratings' before: epsilon 1 " in from_blocks.stderr
    one, other = (dpals.load(tmp_path / name) for name in ("file", "blocks"))
    assert one.item_factors.tobytes() == other.item_factors.tobytes()
    assert one.item_biases.tobytes() == other.item_biases.tobytes()
    assert one.privacy.assumptions == other.privacy.assumptions
    for command in (("statement", "blocks"), ("recommend", "blocks", "--history", blocks_folder, "-k", 1)):
        assert dpals_command(*command, cwd=tmp_path).returncode == 0


def test_a_method_that_needs_the_whole_matrix_does_not_take_blocks(blocks_folder, tmp_path):
    result = run(blocks_folder, "-o", "model", "--method", "trace-norm", cwd=tmp_path)
    assert result.returncode == 1
    assert "cannot be trained on blocks: train on the file" in result.stderr


def test_als_trains_on_blocks(blocks_folder, tmp_path):
    result = run(blocks_folder, "-o", "model", "--method", "als", "--set", "rank=2", "--set", "steps=1", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    similar = dpals_command("similar", "model", dpals.load(tmp_path / "model").items[3], cwd=tmp_path)
    assert similar.returncode == 0, similar.stderr


def test_other_arguments_do_not_resume_a_run_by_accident(ratings_file, tmp_path):
    interrupted_fit(ratings_file, tmp_path, signal.SIGKILL, 3)
    before = spent(tmp_path)
    result = run(ratings_file, "-o", "model", *FIT, cwd=tmp_path)
    assert result.returncode == 1
    assert "was 4 and is now None" in result.stderr or "was 3 and is now None" in result.stderr
    assert "--fresh" in result.stderr
    assert spent(tmp_path) == before


def test_a_full_disk_loses_nothing(ratings_file, tmp_path):
    """Files may not grow beyond a limit that the releases fit into, and the model does not."""
    arguments = (
        ratings_file,
        "-o",
        "model",
        *FIT,
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

    result = run_process("fit", *arguments, cwd=tmp_path, preexec_fn=full)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "Run the same command again" in result.stderr
    assert list(tmp_path.rglob("*.part")) == []
    again = run(*arguments, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    model = dpals.load(tmp_path / "model")
    assert spent(tmp_path) == sum(release.cost for release in model.privacy.releases)


def test_progress_appears_on_a_terminal(ratings_file, tmp_path):
    arguments = ("fit", ratings_file, "-o", "model", *FIT, *SMALL)
    code, shown = run_on_terminal(*arguments, cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert code == 0, shown
    for word in ("Training", "left:", "100%"):
        assert word in shown


@pytest.mark.parametrize("name", ["[/b]", "[red]films", ":smile:", "a\x1b[31mb"])
def test_a_data_set_may_have_any_name(ratings_file, tmp_path, name):
    """Brackets mean nothing to rich, in messages, notes and results."""
    arguments = ("fit", ratings_file, *FIT, "--method", "global-mean", "--dataset", name)
    piped = dpals_command(*arguments, "-o", "a[/b]", cwd=tmp_path)
    assert piped.returncode == 0, piped.stderr
    assert f"on the data set {name!r}" in piped.stderr
    code, shown = run_on_terminal(*arguments, "-o", "b[/b]", cwd=tmp_path)
    assert code == 0, shown
    assert f"Spent on {name!r} before" in shown
    assert "dpals statement b[/b]" in shown
    assert "\x1b[31m" not in shown


def test_the_same_model_as_in_python_apart_from_the_noise(ratings_file, tmp_path):
    """With so much budget that there is hardly any noise."""
    arguments = ("--epsilon", 1e6, "--rating-range", 0.5, 5, "--method", "item-mean")
    assert run(ratings_file, "-o", "model", *arguments, cwd=tmp_path).returncode == 0
    ratings = dpals.read_ratings(ratings_file, rating_range=(0.5, 5.0))
    expected = dpals.ItemMean(1e6, 1e-6).fit(ratings).model_
    model = dpals.load(tmp_path / "model")
    assert np.array_equal(model.items, expected.items)
    np.testing.assert_allclose(model.item_biases, expected.item_biases, atol=0.01)
