"""What a file is, whatever it is called."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.data.tables import GOOD, MANY, RANGE, check_refused, read, write

from dpals import InputError, read_ratings
from dpals.data import parquet as parquet_module
from dpals.data import text_file as text_module
from dpals.data.bad_rows import BadRows

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


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"9,1,3\n")


def touch_up(path: Path) -> None:
    """Another rating in place of one, the same size."""
    with path.open("r+b") as file:
        file.seek(-2, os.SEEK_END)
        file.write(b"5")


def replace_by_another(path: Path) -> None:
    """The same size and time: only the inode differs."""
    facts = path.stat()
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    other.replace(path)


CHANGES = {
    "grown": grow,
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "same size": touch_up,
    "replaced": replace_by_another,
    "gone": Path.unlink,
}


CHANGED = "changed while it was read: wait until it is complete, or read a copy of it"


def change_while_reading(patch: pytest.MonkeyPatch, module: str, change: Callable[[], object]) -> None:
    """Have the change happen after the first of several batches."""
    kind = {"text": text_module.TextSource, "parquet": parquet_module.ParquetSource}[module]
    batches = kind.batches

    def interleaved(source: Any, bad: BadRows) -> Iterator[Any]:
        for number, batch in enumerate(batches(source, bad)):
            yield batch
            if number == 0:
                change()

    patch.setattr(kind, "batches", interleaved)
    patch.setattr(text_module, "CHUNK_BYTES", 1000)
    patch.setattr(parquet_module, "BATCH_ROWS", 100)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]) -> None:
    path = write(tmp_path, MANY)
    os.utime(path, (1, 1))  # long ago, for the clock of a file system may be coarse
    change_while_reading(monkeypatch, "text", lambda: change(path))
    with pytest.raises(InputError, match=CHANGED) as error:
        read("r.csv", tmp_path, on_bad_rows="drop")
    assert str(path) in str(error.value)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("in_folder", [False, True])
def test_parquet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], in_folder: bool
) -> None:
    frame = pl.DataFrame({"user": np.arange(1000), "item": 1, "rating": 3.0})
    paths = [tmp_path / "part-0.parquet", tmp_path / "part-1.parquet"]
    for path in paths:
        frame.write_parquet(path)
        os.utime(path, (1, 1))
    change_while_reading(monkeypatch, "parquet", lambda: change(paths[in_folder]))
    with pytest.raises(InputError, match=CHANGED):
        read_ratings(tmp_path if in_folder else paths[0], rating_range=RANGE)


def test_another_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"user": np.arange(1000), "item": 1})
    frame.write_parquet(tmp_path / "part-0.parquet")
    change_while_reading(monkeypatch, "parquet", lambda: frame.write_parquet(tmp_path / "part-1.parquet"))
    with pytest.raises(InputError, match=CHANGED):
        read_ratings(tmp_path)
    monkeypatch.undo()
    assert read_ratings(tmp_path).n_ratings == 1000


def test_other_files_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, MANY)
    change_while_reading(monkeypatch, "text", (tmp_path / "other.csv").touch)
    assert read("r.csv", tmp_path).n_ratings == 1000
    assert path.exists()
