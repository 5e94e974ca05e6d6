"""``dpals split`` as a process."""

import json
import os

import polars as pl
import pytest
from tests.cli.conftest import refused, run
from tests.same_ratings import assert_same_population

import dpals
from dpals.evaluation.splits import split_entries


@pytest.fixture
def rows(tmp_path):
    ratings = dpals.simulate.movielens_like(200, 100, 30, seed=2)
    table = pl.DataFrame(
        {"uid": ratings.users[ratings.rows], "film": ratings.items[ratings.indices], "stars": ratings.values}
    ).sample(fraction=1.0, shuffle=True, seed=1)
    table.write_csv(tmp_path / "all.csv")
    return table


NAMES = ("--user", "uid", "--item", "film")


def test_every_row_is_in_one_of_the_two(rows, tmp_path):
    result = run("split", "all.csv", "train.csv", "test.parquet", *NAMES, "--fraction", 0.3, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    text = {"user": pl.String, "item": pl.String}
    parts = [pl.read_csv(tmp_path / "train.csv", schema_overrides=text), pl.read_parquet(tmp_path / "test.parquet")]
    assert sum(part.height for part in parts) == rows.height
    both = pl.concat([part.cast({"rating": pl.Float64}) for part in parts])
    expected = rows.rename({"uid": "user", "film": "item", "stars": "rating"}).cast(both.schema)
    assert both.sort("user", "item").equals(expected.sort("user", "item"))
    assert parts[1].height == pytest.approx(0.3 * rows.height, rel=0.05)


def test_the_files_are_for_their_owner_alone(rows, tmp_path):  # noqa: ARG001
    assert run("split", "all.csv", "train.csv", "test.parquet", *NAMES, cwd=tmp_path).returncode == 0
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("train.csv", "test.parquet")} == {0o600}


def test_it_is_the_split_of_the_library(rows, tmp_path):
    told = run(
        "split", "all.csv", "a.csv", "b.csv", *NAMES, "--ids", "integer", "--seed", 7, "--json", cwd=tmp_path
    ).stdout
    ratings = dpals.Ratings.from_frame(rows, user="uid", item="film", rating="stars", rating_range=(0.5, 5))
    train, test = split_entries(ratings, (0.9, 0.1), seed=7)
    assert json.loads(told) == {"a.csv": train.n_ratings, "b.csv": test.n_ratings}
    assert pl.read_csv(tmp_path / "b.csv")["item"].to_list() == test.items[test.indices].tolist()


def test_ids_that_csv_would_change_are_refused(tmp_path):
    pl.DataFrame({"user": ["7", " 7"] * 50, "item": [*range(100)]}).write_parquet(tmp_path / "all.parquet")
    refused(run("split", "all.parquet", "a.csv", "b.csv", cwd=tmp_path), "' 7' has blanks around it", ".parquet")
    assert run("split", "all.parquet", "a.parquet", "b.parquet", cwd=tmp_path).returncode == 0


def test_clicks_and_text(tmp_path):
    (tmp_path / "clicks.csv").write_text("user,item\n" + "".join(f"u{n % 9},tea {n}\n" for n in range(200)))
    result = run("split", "clicks.csv", "train.csv", "test.csv", "--quiet", cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert pl.read_csv(tmp_path / "test.csv").columns == ["user", "item"]


@pytest.mark.usefixtures("rows")
def test_what_would_overwrite_or_cannot_be_written_is_refused(tmp_path):
    before = (tmp_path / "all.csv").read_bytes()
    refused(run("split", "all.csv", "all.csv", "b.csv", cwd=tmp_path), "three different places", code=2)
    refused(run("split", "all.csv", "a.csv", "b.txt", cwd=tmp_path), "must end in .csv or .parquet", code=2)
    refused(run("split", "all.csv", "a.csv", "b.csv", "--fraction", 1, cwd=tmp_path), "--fraction", code=2)
    refused(run("split", "all.csv", "a.csv", "missing/b.csv", cwd=tmp_path), "missing does not exist")
    assert (tmp_path / "all.csv").read_bytes() == before
    assert os.listdir(tmp_path) == ["all.csv"]


def test_blocks_are_split_into_blocks(rows, tmp_path):
    ratings = dpals.Ratings.from_frame(rows, user="uid", item="film", rating="stars", rating_range=(0.5, 5))
    dpals.write_blocks(ratings, tmp_path / "blocks", ratings_per_block=500)
    told = run("split", "blocks", "train", "test", "--fraction", 0.3, "--seed", 7, "--json", cwd=tmp_path).stdout
    parts = split_entries(ratings, (0.7, 0.3), seed=7)
    assert json.loads(told) == {"train": parts[0].n_ratings, "test": parts[1].n_ratings}
    for part, name in zip(parts, ("train", "test"), strict=True):
        assert_same_population(dpals.open_blocks(tmp_path / name), part)
        assert {path.stat().st_mode & 0o777 for path in (tmp_path / name).iterdir()} == {0o600}
    again = run("split", "blocks", "train", "test", cwd=tmp_path)
    assert again.returncode == 0, "what is there is replaced, as files are"
    assert again.stdout.startswith(f"{dpals.open_blocks(tmp_path / 'train').n_ratings:,} rows in train")
    refused(run("split", "blocks", "train", "test.csv", cwd=tmp_path), "must be a folder for blocks", code=2)
    refused(run("split", "blocks", "blocks", "test", cwd=tmp_path), "three different places", code=2)
