"""``dpals blocks`` as people run it."""

import json
import resource
import signal

import polars as pl
import pytest
from tests.cli.conftest import refused, run, run_on_terminal, run_process
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


def test_a_full_disk_leaves_nothing_that_opens_and_can_be_resumed(table, tmp_path):
    def full():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, resource.RLIM_INFINITY))

    arguments = ("blocks", table, "-o", "blocks", *NAMES, *SCALE)
    result = run_process(*arguments, cwd=tmp_path, preexec_fn=full)
    assert result.returncode == 1
    assert "the disk is full" in result.stderr
    assert "Run the same command again to resume" in result.stderr
    assert "Traceback" not in result.stderr
    with pytest.raises(dpals.InputError, match=r"manifest\.json is missing"):
        dpals.open_blocks(tmp_path / "blocks")
    again = run(*arguments, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert dpals.open_blocks(tmp_path / "blocks").n_users == 80


def test_progress_appears_on_a_terminal(table, tmp_path):
    code, shown = run_on_terminal("blocks", table, "-o", "blocks", *NAMES, *SCALE, cwd=tmp_path)
    assert code == 0, shown
    for word in ("Reading", "Writing blocks", "left:"):
        assert word in shown
