"""What a file is, whatever it is called."""

from pathlib import Path

import pytest
from tests.data.tables import GOOD, check_refused, write

from dpals import InputError, read_ratings

BAD: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", r"r\.csv: the file is empty"),
    "zip": (b"PK\x03\x04....", "this is a zip archive or a spreadsheet"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=list(BAD))
def test_files_that_are_refused(content: str | bytes, message: str, tmp_path: Path) -> None:
    check_refused(write(tmp_path, content), message)


def test_declared_text_may_begin_like_any_file(tmp_path: Path) -> None:
    for first in ("PK", "PAR1"):
        path = write(tmp_path, f"{first},a\nbob,a\n")
        assert read_ratings(path, columns=["user", "item"]).users.tolist() == [first, "bob"]


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.csv: No such file"):
        read_ratings(tmp_path / "nowhere.csv")


def test_text_called_parquet(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"r\.parquet: not a Parquet file, or damaged"):
        read_ratings(write(tmp_path, GOOD, "r.parquet"))
