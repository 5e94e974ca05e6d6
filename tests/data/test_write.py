"""Ratings written to files and read again."""

import os
from pathlib import Path

import pytest
from tests.same_ratings import assert_same_arrays

from dpals import InputError, Ratings, read_ratings
from dpals.data.write import write_ratings
from dpals.system.files import OWNER_ONLY

USERS, ITEMS, STARS = ["b", "a, c", '5" disk'], ["x", "é", "x"], [0.1, 4.5, 3.0]


@pytest.mark.parametrize("name", ["r.csv", "r.parquet"])
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    for values, rating_range in ((STARS, (0.1, 5.0)), (None, None)):
        ratings = Ratings.from_arrays(USERS, ITEMS, values, rating_range=rating_range)
        write_ratings(ratings, tmp_path / name, OWNER_ONLY)
        assert_same_arrays(read_ratings(tmp_path / name, rating_range=rating_range), ratings)
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).stat().st_mode & 0o777 == OWNER_ONLY


@pytest.mark.parametrize("odd", [" 7", "7\t", "\ufeff7"])
def test_ids_that_csv_would_change_are_refused(odd: str, tmp_path: Path) -> None:
    for users, items in ((["7", odd], ["x", "x"]), (["u", "u"], ["7", odd])):
        ratings = Ratings.from_arrays(users, items)
        with pytest.raises(InputError, match=r"has blanks around it, which CSV would lose: write to a \.parquet file"):
            write_ratings(ratings, tmp_path / "r.csv")
        write_ratings(ratings, tmp_path / "r.parquet")
        assert_same_arrays(read_ratings(tmp_path / "r.parquet"), ratings)
    assert os.listdir(tmp_path) == ["r.parquet"]
