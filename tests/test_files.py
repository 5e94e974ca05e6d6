import os

import pytest

from dpals.files import draft, write_whole


def test_a_file_appears_whole(tmp_path):
    path = tmp_path / "numbers"
    with draft(path) as place:
        place.write_bytes(b"12")
        assert not path.exists()
    assert path.read_bytes() == b"12"
    write_whole(path, b"345")
    assert path.read_bytes() == b"345"
    assert os.listdir(tmp_path) == ["numbers"]


def half_write(path, problem):
    with draft(path) as place:
        place.write_bytes(b"ne")
        raise problem


@pytest.mark.parametrize("problem", [OSError, KeyboardInterrupt])
def test_what_was_there_stays_where_writing_fails(tmp_path, problem):
    path = tmp_path / "numbers"
    path.write_bytes(b"old")
    with pytest.raises(problem):
        half_write(path, problem)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["numbers"]


def test_a_missing_folder_is_said(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "missing" / "numbers", b"12")
