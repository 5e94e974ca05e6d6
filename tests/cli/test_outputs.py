"""Files and folders that commands write."""

import os

import click
import pytest

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
