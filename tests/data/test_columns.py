"""Which column is which: named by the caller, or by a usual name."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.data.tables import RANGE, check_refused, write

from dpals import InputError, Ratings, read_ratings


@pytest.mark.parametrize("columns", ["user,item", ["user"], [1, 2]])
def test_columns_are_names(columns: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="columns must be a list of the names of all columns"):
        read_ratings(write(tmp_path, "1,10\n"), columns=columns)


@pytest.mark.parametrize("separator", ["", ",,", "a", '"', "\n"])
def test_separators_are_separators(separator: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="separator must be one of"):
        read_ratings(write(tmp_path, "user,item\n1,10\n"), separator=separator)


def test_named_columns(tmp_path: Path) -> None:
    path = write(tmp_path, "who,what,how\nann,tea,3\n")
    assert read_ratings(path, user="who", item="what", rating="how", rating_range=RANGE).n_ratings == 1
    with pytest.raises(InputError, match=r"r\.csv: no column looks like the user.*user=.*'who', 'what', 'how'"):
        read_ratings(path, rating_range=RANGE)


def test_implicit_leaves_out_the_ratings(tmp_path: Path) -> None:
    path = write(tmp_path, "user,item,rating\n1,2,bad\n")
    assert read_ratings(path, implicit=True).is_implicit


def test_columns_are_recognised_or_named() -> None:
    frame = pl.DataFrame({"User ID": [1], "film": [2], "stars": [3]})
    with pytest.raises(InputError, match=r"no column looks like the item.*item=.*'User ID', 'film', 'stars'"):
        Ratings.from_frame(frame, rating_range=RANGE)
    assert Ratings.from_frame(frame, item="film", rating_range=RANGE).n_ratings == 1
    assert Ratings.from_frame(frame, item="film", implicit=True).is_implicit
    with pytest.raises(InputError, match=r"there is no column 'movie' \(item=...\). Columns found: 'User ID'"):
        Ratings.from_frame(frame, item="movie")
    with pytest.raises(InputError, match="one column cannot play two roles"):
        Ratings.from_frame(frame, user="film", item="film", implicit=True)
    with pytest.raises(InputError, match=r"implicit=True leaves out the ratings"):
        Ratings.from_frame(frame, item="film", rating="stars", implicit=True)
    with pytest.raises(InputError, match=r"'uid' and 'user' both look like the user. Say which with user="):
        Ratings.from_frame(pl.DataFrame({"uid": [1], "user": [1], "item": [1]}))


BAD: dict[str, tuple[str | bytes, str]] = {
    "two users": ("user,uid,item\n1,2,3\n", "'user' and 'uid' both look like the user"),
    "same name twice": ("user,user,item\n1,2,3\n", "'user' and 'user' both look like the user"),
    "unknown header": ("who,what\n1,2\n", r"no column looks like the user.*user=.*'who', 'what'"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=list(BAD))
def test_files_that_are_refused(content: str | bytes, message: str, tmp_path: Path) -> None:
    check_refused(write(tmp_path, content), message)
