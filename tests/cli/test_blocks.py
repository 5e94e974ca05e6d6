"""``dpals blocks`` as people run it."""

import json

import polars as pl
import pytest
from tests.cli.conftest import refused, run
from tests.same_ratings import assert_same_population

import dpals


@pytest.fixture
def table(tmp_path):
    ratings = dpals.simulate.movielens_like(80, 100, 30, seed=2)
    pl.DataFrame(
        {"uid": ratings.users[ratings.rows], "film": ratings.items[ratings.indices], "stars": ratings.values}
    ).write_csv(tmp_path / "all.csv")
    return tmp_path / "all.csv"


NAMES = ("--user", "uid", "--item", "film")
SCALE = ("--rating-range", 0.5, 5)


def test_it_writes_what_the_library_writes(table, tmp_path):
    result = run("blocks", table, "-o", "blocks", *NAMES, *SCALE, "--ratings-per-block", 300, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    blocks = dpals.open_blocks(tmp_path / "blocks")
    assert len(blocks.blocks) > 3
    assert result.stdout == f"{blocks!r} in blocks\n"
    expected = dpals.read_ratings(table, user="uid", item="film", rating_range=(0.5, 5))
    assert_same_population(blocks, expected)


def test_json_and_quiet(table, tmp_path):
    result = run("blocks", table, "-o", "blocks", *NAMES, *SCALE, "--json", cwd=tmp_path)
    told = json.loads(result.stdout)
    assert (told["blocks"], told["users"], told["folder"]) == (1, 80, "blocks")
    quiet = run("blocks", table, "-o", "blocks", *NAMES, *SCALE, "--overwrite", "-q", cwd=tmp_path)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")


def test_a_catalogue_and_clicks(table, tmp_path):
    (tmp_path / "items.txt").write_text("1\n2\n")
    given = ("--implicit", "--ids", "integer", "--catalogue", "items.txt", "--on-bad-rows", "drop")
    result = run("blocks", table, "-o", "blocks", *NAMES, *given, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    blocks = dpals.open_blocks(tmp_path / "blocks")
    assert (blocks.items.tolist(), blocks.is_implicit, blocks.catalogue_declared) == ([1, 2], True, True)
    assert "item outside the catalogue" in result.stderr


def test_what_is_wrong_is_said_in_the_words_of_the_command(table, tmp_path):
    refused(run("blocks", table, "-o", "blocks", *NAMES, cwd=tmp_path), "--rating-range LOW HIGH", code=2)
    refused(run("blocks", table, "-o", "blocks", *SCALE, cwd=tmp_path), "--item COLUMN")
    refused(run("blocks", table, "-o", "all.csv", *NAMES, *SCALE, cwd=tmp_path), "all.csv", code=2)
    assert not (tmp_path / "blocks").exists()
    assert run("blocks", table, "-o", "blocks", *NAMES, *SCALE, cwd=tmp_path).returncode == 0
    again = run("blocks", table, "-o", "blocks", *NAMES, *SCALE, cwd=tmp_path)
    refused(again, "holds blocks", "--overwrite")
