"""``dpals evaluate`` against the metrics of the library."""

import json

import polars as pl
import pytest
from tests.cli.conftest import refused, run

import dpals
from dpals.evaluation.metrics import ndcg_at_k, recall_at_k, rmse

NAMES = ("--user", "uid", "--item", "film", "--rating", "stars")


@pytest.fixture
def arguments(files):
    return ("evaluate", files.private, "--history", files.history, "--test", files.test, *NAMES)


def test_numbers_are_those_of_the_library(files, arguments):
    """One history for all: newcomers are users without a known item."""
    model = dpals.load(files.private)
    facts = {"user": "uid", "item": "film", "rating": "stars", "rating_range": model.rating_range}
    both = [
        dpals.read_ratings(path, **facts, catalogue=model.items, on_unknown_items="drop")
        for path in (files.history, files.test)
    ]
    pairs = {}
    for name, ratings in zip(("history", "test"), both, strict=True):
        rows = zip(ratings.users[ratings.rows].tolist(), ratings.items[ratings.indices].tolist(), strict=True)
        pairs[name] = dict(zip(rows, ratings.values.tolist(), strict=True))
    users = [user for user, _ in pairs["history"]]
    values = list(pairs["history"].values())
    items = [item for _, item in pairs["history"]]
    wanted = {"rating_range": model.rating_range, "catalogue": model.items}
    newcomers = [user for user in both[1].users.tolist() if user not in set(users)]
    known = dpals.Ratings.from_arrays(
        users + newcomers,
        items + [9999] * len(newcomers),
        values + [3.0] * len(newcomers),
        **wanted,
        on_unknown_items="drop",
    )
    result = run(*arguments, "-k", 5, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    test_users, test_items = (list(column) for column in zip(*pairs["test"], strict=True))
    expected = rmse(model.predict(known, test_users, test_items), list(pairs["test"].values()))
    assert found["RMSE"] == pytest.approx(expected, rel=1e-6)
    order = known.user_index(both[1].users)
    recommended = model.recommend(known, 5)[0][order]
    assert found["Recall@5"] == pytest.approx(recall_at_k(recommended, both[1], 5))
    assert found["NDCG@5"] == pytest.approx(ndcg_at_k(recommended, both[1], 5))
    assert found["newcomers"] == len(newcomers) == 3
    assert found["private"] is False
    assert "item outside the catalogue" in result.stderr


def test_it_says_that_the_numbers_are_for_the_owner(arguments):
    result = run(*arguments, "--quiet")
    assert result.stderr == ""
    for word in ("RMSE", "Recall@20", "NDCG@20", "3 of them without a history", "for your eyes only"):
        assert word in result.stdout


def test_implicit_feedback_has_no_rmse(files, arguments):
    result = run("evaluate", files.implicit, *arguments[2:])
    assert result.returncode == 0, result.stderr
    assert "RMSE" not in result.stdout
    assert "Recall@20" in result.stdout


def test_test_rows_in_the_history_are_a_warning(files, arguments):
    result = run(*arguments[:4], "--test", files.history, *NAMES)
    assert result.returncode == 0
    assert "test rows are in the history as well" in result.stderr


def test_what_cannot_be_evaluated(arguments, tmp_path):
    pl.DataFrame({"uid": [1], "film": [1], "stars": [3.0]}).write_parquet(tmp_path / "test.parquet")
    refused(
        run(*arguments[:4], "--test", tmp_path / "test.parquet", *NAMES, "-q"), "text in the history and integers in"
    )
    (tmp_path / "test.csv").write_text("uid,film,stars\n1,9999,3\n")
    refused(run(*arguments[:4], "--test", tmp_path / "test.csv", *NAMES, "-q"), "nothing to predict")
    refused(run(*arguments[:4]), "--test", code=2)


@pytest.fixture
def in_blocks(files, tmp_path):
    """History and test data of the first model in blocks."""
    model = dpals.load(files.private)
    facts = {"user": "uid", "item": "film", "rating": "stars", "rating_range": model.rating_range}
    known = {"catalogue": model.items, "on_unknown_items": "drop", "ratings_per_block": 900}
    for path, name in ((files.history, "history"), (files.test, "test")):
        dpals.write_blocks(path, tmp_path / name, **facts, **known)
    return tmp_path / "history", tmp_path / "test"


def test_blocks_are_evaluated_like_files(files, arguments, in_blocks):
    expected = json.loads(run(*arguments, "--json").stdout)
    history, test = in_blocks
    for known, wanted in ((history, test), (files.history, test), (history, files.test)):
        names = NAMES if (known, wanted) != (history, test) else ()
        result = run("evaluate", files.private, "--history", known, "--test", wanted, "--json", *names)
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout) == pytest.approx(expected)
    both = ("evaluate", files.private, "--history", history, "--test", test)
    refused(run(*both, "--user", "uid"), "--user is for reading a file", code=2)


def test_blocks_of_another_catalogue_are_refused(files, in_blocks, tmp_path):
    facts = {"user": "uid", "item": "film", "rating": "stars", "rating_range": (0.5, 5)}
    dpals.write_blocks(files.history, tmp_path / "others", **facts)
    result = run("evaluate", files.private, "--history", tmp_path / "others", "--test", in_blocks[1])
    refused(result, "the items of the history are text", "Give the file that the blocks were written from")
    result = run("evaluate", files.private, "--history", in_blocks[0], "--test", tmp_path / "others")
    refused(result, "the items of the test data are text")
    dpals.write_blocks(files.history, tmp_path / "more", **facts, ids="integer")
    result = run("recommend", files.private, "--history", tmp_path / "more")
    refused(result, "the history has 20 items that the model does not know", "(--catalogue FILE)")
    result = run("recommend", files.implicit, "--history", in_blocks[0])
    refused(result, "made for implicit feedback", "(--implicit)")
