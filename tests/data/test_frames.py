"""Frames of every kind against arrays."""

import subprocess
import sys
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.data.tables import RANGE, assert_same_ratings

from dpals import InputError, Ratings

FRAMES = {
    "polars": lambda data: pl.DataFrame(data),
    "lazy": lambda data: pl.LazyFrame(data),
    "pandas": lambda data: pd.DataFrame(data),
    "pandas categories": lambda data: pd.DataFrame(data).astype({"user": "category"}),
    "pandas objects": lambda data: pd.DataFrame(data).astype({"user": object, "rating": object}),
    "Arrow table": lambda data: pa.table(data),
    "Arrow batch": lambda data: pa.record_batch(data),
    "Arrow reader": lambda data: pa.table(data).to_reader(),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=list(FRAMES))
@pytest.mark.parametrize("users", [[3, 1, 3], ["é x", "a", "é x"]], ids=["integers", "text"])
def test_every_kind_of_frame(make: Any, users: list[Any]) -> None:
    data = {
        "other": [0, 0, 0],
        "user": users,
        "item": [5, 5, 6],
        "rating": [1.0, 2.5, 3.0],
        "timestamp": [7, 8, 9],
    }
    ratings = Ratings.from_frame(make(data), user="user", item="item", rating="rating", rating_range=RANGE)
    expected = Ratings.from_arrays(
        users, data["item"], data["rating"], timestamps=data["timestamp"], rating_range=RANGE
    )
    assert_same_ratings(ratings, expected)


def test_pandas_without_pyarrow() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import pandas as pd; from dpals import Ratings\n"
        "frame = pd.DataFrame({'user': ['b', 'a'], 'item': [1, 2], 'rating': [1.0, 2.0]})\n"
        "ratings = Ratings.from_frame(frame, rating_range=(1, 5))\n"
        "print(ratings.users.tolist(), ratings.items.tolist(), ratings.values.tolist())"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout == "['a', 'b'] [1, 2] [2.0, 1.0]\n"


def test_index_of_a_pandas_frame_plays_no_part() -> None:
    frame = pd.DataFrame({"user": [1, 2, 3], "item": [1, 2, 3]}, index=[9, 9, 4])
    assert Ratings.from_frame(frame[frame.user > 1]).users.tolist() == [2, 3]


def test_not_a_frame() -> None:
    with pytest.raises(InputError, match="expected a pandas or polars frame or an Arrow table, not dict"):
        Ratings.from_frame({"user": [1], "item": [2]})


BAD_ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "lengths": ({"users": [1, 2, 3]}, "different lengths: users has 3, items has 2"),
    "lengths of values": ({"values": [1], "rating_range": (1, 5)}, "different lengths: .*values has 1"),
}


@pytest.mark.parametrize(("change", "message"), BAD_ARRAYS.values(), ids=list(BAD_ARRAYS))
def test_arrays_that_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Ratings.from_arrays(**({"users": [1, 2], "items": [1, 2]} | change))
