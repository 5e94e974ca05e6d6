"""``dpals quickstart`` as a process."""

import json
import os

import pytest
from matplotlib.image import imread
from tests.cli.conftest import run

import dpals


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quickstart")
    result = run("quickstart", "--users", 600, cwd=folder)
    assert result.returncode == 0, result.stderr
    return folder, result


def test_compares_the_methods_in_one_table(finished):
    _, result = finished
    for word in ("user mean", "private biases", "DPALS", "PooledDPALS", "ALS, not private", "RMSE", "Recall@20"):
        assert word in result.stdout
    assert "600 simulated users" in result.stdout
    assert "recognises at most" in result.stdout


def test_recommends_titles_to_three_users(finished):
    _, result = finished
    assert "might like" in result.stdout
    assert result.stdout.count("(") >= 3 * 2 * 5


def test_leaves_a_model_a_picture_a_statement_and_commands(finished):
    folder, _ = finished
    home = folder / "quickstart"
    assert sorted(os.listdir(home)) == ["COMMANDS.md", "frontier.png", "model", "ratings.parquet", "statement.html"]
    model = dpals.load(home / "model")
    assert model.privacy.is_private
    assert model.privacy.epsilon <= 1
    assert "epsilon = 1 at delta = 1e-06" in (home / "statement.html").read_text()
    assert min(imread(home / "frontier.png").shape[:2]) > 400
    assert "dpals fit ratings.csv -o model --implicit --epsilon 1 --delta 1e-06" in (home / "COMMANDS.md").read_text()


def test_its_ratings_are_a_history_for_its_model(finished):
    folder, _ = finished
    model = dpals.load(folder / "quickstart" / "model")
    history = model.read_history(folder / "quickstart" / "ratings.parquet")
    assert history.n_users == 600
    assert not history.report.rows_dropped
    ids, _ = model.recommend(history, k=3)
    assert set(ids.ravel().tolist()) <= set(model.items.tolist())


def test_json_and_nothing_else(tmp_path):
    result = run("quickstart", "--users", 200, "--epsilon", 2, "-o", "here", "--json", "--quiet", cwd=tmp_path)
    assert result.returncode == 0
    assert result.stderr == ""
    told = json.loads(result.stdout)
    assert told["simulated"] is True
    assert {entry["epsilon"] for entry in told["results"]} == {None, 0.5, 2.0, 8.0}
    assert len(told["recommendations"]) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", "-1"], "epsilon must be a positive number"),
        (["--delta", "0"], "delta must lie strictly between 0 and 1"),
    ],
)
def test_impossible_budgets_are_refused_before_any_work(arguments, message, tmp_path):
    result = run("quickstart", *arguments, cwd=tmp_path)
    assert result.returncode == 1
    assert message in result.stderr
    assert os.listdir(tmp_path) == []
