"""Ratings in files."""

import numpy as np
import polars as pl
import pytest

import dpals
from dpals.data.write import write_ratings


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_ratings_are_read_back_as_they_were_written(tmp_path, ending):
    ratings = dpals.Ratings.from_arrays(["ann", "bob", "ann"], [7, 7, 8], [1, 2.5, 5], rating_range=(0.5, 5))
    path = tmp_path / f"ratings{ending}"
    write_ratings(ratings, path, 0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    table = pl.read_csv(path) if ending == ".csv" else pl.read_parquet(path)
    assert table.rows() == [("ann", 7, 1.0), ("ann", 8, 5.0), ("bob", 7, 2.5)]


def test_implicit_feedback_has_no_column_of_ratings(tmp_path):
    write_ratings(dpals.Ratings.from_arrays(np.arange(3), np.arange(3)), tmp_path / "clicks.csv")
    assert pl.read_csv(tmp_path / "clicks.csv").columns == ["user", "item"]


def test_ids_that_a_text_file_would_change_are_refused(tmp_path):
    ratings = dpals.Ratings.from_arrays(np.array(["7", " 7"]), [1, 2])
    with pytest.raises(dpals.InputError, match=r"' 7' has blanks around it, which CSV would lose: write to a .parquet"):
        write_ratings(ratings, tmp_path / "clicks.csv")
    write_ratings(ratings, tmp_path / "clicks.parquet")
    assert pl.read_parquet(tmp_path / "clicks.parquet")["user"].to_list() == [" 7", "7"]
