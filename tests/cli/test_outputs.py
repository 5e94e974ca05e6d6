"""Files and folders that commands write."""

import os

import click
import numpy as np
import polars as pl
import pytest

import dpals
from dpals.cli import outputs


def writable(path):
    return outputs.writable(None, None, path)


def test_a_file_in_a_folder_can_be_written(tmp_path):
    assert writable(tmp_path / "a.csv") == tmp_path / "a.csv"
    assert writable(None) is None
    assert os.listdir(tmp_path) == []


def test_a_file_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="missing does not exist: create it first"):
        writable(tmp_path / "missing" / "a.csv")
    with pytest.raises(OSError, match="file is a file, not a folder"):
        writable(tmp_path / "file" / "a.csv")


def test_endings(tmp_path):
    outputs.check_ending(None, (".png",), "-o")
    outputs.check_ending(tmp_path / "a.csv", outputs.TABLES, "-o")
    with pytest.raises(click.BadParameter, match=r"'a.xlsx' must end in .csv or .parquet") as refusal:
        outputs.check_ending(tmp_path / "a.xlsx", outputs.TABLES, "TRAIN")
    assert refusal.value.param_hint == "TRAIN"


def test_folders_are_checked_and_not_made(tmp_path):
    outputs.check_folder(tmp_path / "new" / "model")
    assert os.listdir(tmp_path) == []
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file is a file, not a folder"):
        outputs.check_folder(tmp_path / "file" / "model")


def test_a_model_is_not_overwritten_by_accident(tmp_path):
    outputs.check_model_folder(tmp_path, overwrite=False)
    (tmp_path / "model.json").touch()
    with pytest.raises(click.UsageError, match="holds a model, for which budget was spent"):
        outputs.check_model_folder(tmp_path, overwrite=False)
    outputs.check_model_folder(tmp_path, overwrite=True)


def test_text_goes_to_a_file_or_to_standard_output(tmp_path, capsys):
    outputs.text_to(tmp_path / "a.txt", "hello")
    assert (tmp_path / "a.txt").read_text() == "hello\n"
    outputs.text_to(None, "hello")
    assert capsys.readouterr().out == "hello\n"


@pytest.mark.parametrize("ending", outputs.TABLES)
def test_ratings_are_read_back_as_they_were_written(tmp_path, ending):
    ratings = dpals.Ratings.from_arrays(["ann", "bob", "ann"], [7, 7, 8], [1, 2.5, 5], rating_range=(0.5, 5))
    path = tmp_path / f"ratings{ending}"
    outputs.write_ratings(ratings, path, 0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    table = pl.read_csv(path) if ending == ".csv" else pl.read_parquet(path)
    assert table.rows() == [("ann", 7, 1.0), ("ann", 8, 5.0), ("bob", 7, 2.5)]


def test_implicit_feedback_has_no_column_of_ratings(tmp_path):
    outputs.write_ratings(dpals.Ratings.from_arrays(np.arange(3), np.arange(3)), tmp_path / "clicks.csv")
    assert pl.read_csv(tmp_path / "clicks.csv").columns == ["user", "item"]


def test_ids_that_a_text_file_would_change_are_refused(tmp_path):
    ratings = dpals.Ratings.from_arrays(np.array(["7", " 7"]), [1, 2])
    with pytest.raises(dpals.InputError, match=r"' 7' has blanks around it, which CSV would lose: write a .parquet"):
        outputs.write_ratings(ratings, tmp_path / "clicks.csv")
    outputs.write_ratings(ratings, tmp_path / "clicks.parquet")
    assert pl.read_parquet(tmp_path / "clicks.parquet")["user"].to_list() == [" 7", "7"]
