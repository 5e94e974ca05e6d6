"""Parquet files and folders of them, whole and damaged."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.data.tables import GOOD, RANGE, read, write

from dpals import InputError, read_ratings


class TestParquet:
    table = pl.DataFrame({"user": ["b", "a", "b"], "item": [1, 1, 2], "rating": [3.0, 4.0, 9.0]})

    def test_row_and_column_are_named(self, tmp_path: Path) -> None:
        self.table.write_parquet(tmp_path / "r.parquet")
        with pytest.raises(InputError, match=r"r\.parquet, row 2 .*column 'rating': 9 is outside"):
            read("r.parquet", tmp_path)
        assert read("r.parquet", tmp_path, on_bad_rows="drop").n_ratings == 2

    def test_row_of_a_later_slice(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dpals.data.parquet.BATCH_ROWS", 2)
        self.table.write_parquet(tmp_path / "r.parquet")
        with pytest.raises(InputError, match=r"r\.parquet, row 2 .*column 'rating': 9 is outside"):
            read("r.parquet", tmp_path)
        with pytest.raises(InputError, match=r"r\.parquet, row 2 .*column 'item': the item 2 is not in the catalogue"):
            read("r.parquet", tmp_path, rating_range=(1, 9), catalogue=[1])

    @pytest.mark.parametrize("keep", [0.0, 0.3, 0.6, 0.99])
    def test_cut_short(self, keep: float, tmp_path: Path) -> None:
        path = tmp_path / "r.parquet"
        self.table.write_parquet(path)
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * keep)])
        with pytest.raises(InputError, match=r"r\.parquet: (not a Parquet file, or damaged|the file is empty)"):
            read("r.parquet", tmp_path, on_bad_rows="drop")

    def test_damaged_inside(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "r.parquet"
        rng = np.random.default_rng(0)
        pl.DataFrame({"user": rng.integers(0, 99, 9999), "item": rng.integers(0, 99, 9999)}).write_parquet(path)
        content = bytearray(path.read_bytes())
        content[100:600] = b"\xff" * 500
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"r\.parquet: not a Parquet file, or damaged"):
            read_ratings(path)
        capfd.readouterr()

    def test_folder_without_parquet(self, tmp_path: Path) -> None:
        write(tmp_path, GOOD)
        with pytest.raises(InputError, match=r"there is no .parquet file in this folder"):
            read_ratings(tmp_path)

    def test_parts_with_different_columns(self, tmp_path: Path) -> None:
        self.table.write_parquet(tmp_path / "a.parquet")
        self.table.drop("rating").write_parquet(tmp_path / "b.parquet")
        with pytest.raises(InputError, match=r"b\.parquet: the columns user, item differ from those of a\.parquet"):
            read_ratings(tmp_path, rating_range=RANGE)

    def test_parts_with_different_ids(self, tmp_path: Path) -> None:
        self.table.write_parquet(tmp_path / "a.parquet")
        self.table.with_columns(user=pl.lit(1)).write_parquet(tmp_path / "b.parquet")
        with pytest.raises(InputError, match=r"b\.parquet, row 0 .*column 'user': mixed id types: 1 is an integer"):
            read_ratings(tmp_path, rating_range=(1, 9))
        assert read_ratings(tmp_path, rating_range=(1, 9), ids="string").users.tolist() == ["1", "a", "b"]

    def test_empty(self, tmp_path: Path) -> None:
        self.table[:0].write_parquet(tmp_path / "r.parquet")
        with pytest.raises(InputError, match="there are columns but no row of data"):
            read("r.parquet", tmp_path)

    def test_text_that_stands_for_integers(self, tmp_path: Path) -> None:
        pl.DataFrame({"user": ["10", "9"], "item": [1, 1]}).write_parquet(tmp_path / "r.parquet")
        assert read_ratings(tmp_path / "r.parquet").users.tolist() == ["10", "9"]
        assert read_ratings(tmp_path / "r.parquet", ids="integer").users.tolist() == [9, 10]

    def test_a_name_with_wildcards(self, tmp_path: Path) -> None:
        self.table.write_parquet(tmp_path / "r[1]*.parquet")
        assert read("r[1]*.parquet", tmp_path, rating_range=(1, 9)).n_ratings == 3
