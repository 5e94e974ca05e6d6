"""``dpals simulate`` as a process."""

import json
import os

import polars as pl
import pytest
from tests.cli.conftest import refused, run

import dpals


@pytest.mark.parametrize("name", ["ratings.csv", "ratings.parquet"])
def test_simulated_ratings_can_be_read_back(tmp_path, name):
    result = run("simulate", name, "--users", 300, "--items", 100, "--mean-ratings", 25, "--seed", 4, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "simulated ratings" in result.stdout
    ratings = dpals.read_ratings(tmp_path / name, rating_range=(0.5, 5.0), catalogue=range(100), ids="integer")
    expected = dpals.simulate.movielens_like(300, 100, 25, seed=4)
    assert ratings.values.tolist() == expected.values.tolist()
    assert ratings.indices.tolist() == expected.indices.tolist()
    assert os.listdir(tmp_path) == [name]


def test_titles_json_and_quiet(tmp_path):
    size = ("--users", 50, "--items", 100, "--mean-ratings", 25)
    result = run("simulate", "a.csv", *size, "--titles", "--json", cwd=tmp_path)
    facts = json.loads(result.stdout)
    table = pl.read_csv(tmp_path / "a.csv")
    assert (facts["simulated"], facts["ratings"]) == (True, table.height)
    expected = dpals.simulate.movielens_like(50, 100, 25, titles=True)
    assert table["item"].to_list() == [expected.items[at] for at in expected.indices]
    result = run("simulate", "b.csv", *size, "--quiet", cwd=tmp_path)
    assert (result.stdout, result.stderr) == ("", "")


def test_what_cannot_be_written(tmp_path):
    refused(run("simulate", "missing/a.csv", cwd=tmp_path), "missing does not exist: create it first")
    assert os.listdir(tmp_path) == []
