"""Every source gives the same kind of batches: rows of the same types, each with its place."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dpals.data.bad_rows import BadRows
from dpals.data.columns import ColumnOptions
from dpals.data.file_format import open_table
from dpals.data.frames import ArraySource, FrameSource
from dpals.data.sources import Source

TABLE = {"user": ["b", "a"], "item": ["x", "y"], "rating": [3.0, 4.5], "timestamp": [7, 8]}


def from_csv(folder: Path) -> Source:
    pl.DataFrame(TABLE).write_csv(folder / "r.csv")
    return open_table(folder / "r.csv", ColumnOptions())[0]


def from_parquet(folder: Path) -> Source:
    pl.DataFrame(TABLE).write_parquet(folder / "r.parquet")
    return open_table(folder / "r.parquet", ColumnOptions())[0]


SOURCES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "arrays": (lambda _: ArraySource(*TABLE.values()), "row 1 (counting from 0)"),
    "frame": (lambda _: FrameSource(pl.DataFrame(TABLE), ColumnOptions()), "row 1 (counting from 0)"),
    "text": (from_csv, "{folder}/r.csv, line 3"),
    "Parquet": (from_parquet, "{folder}/r.parquet, row 1 (counting from 0)"),
}


@pytest.mark.parametrize(("make", "place"), SOURCES.values(), ids=list(SOURCES))
def test_batches_are_alike(make: Callable[[Path], Source], place: str, tmp_path: Path) -> None:
    source = make(tmp_path)
    (batch,) = source.batches(BadRows("error"))
    assert batch.frame.schema == {"user": pl.String, "item": pl.String, "rating": pl.Float32, "timestamp": pl.Int64}
    assert batch.frame.rows() == list(zip(*TABLE.values(), strict=True))
    assert batch.place(1) == place.format(folder=tmp_path)
    assert list(source.columns.used()) == list(TABLE)
