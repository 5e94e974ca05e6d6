"""Rows that cannot be used, and where they are."""

from pathlib import Path
from typing import Any

import pytest
from tests.data.tables import GOOD, MANY, check_refused, write

from dpals import InputError, Ratings

BAD: dict[str, tuple[str | bytes, str]] = {
    "NaN": (GOOD + "2,2,NaN\n", "line 3, column 'rating': the rating is missing"),
    "no rating": (GOOD + "2,2,\n", "line 3, column 'rating': the rating is missing"),
    "infinite": (GOOD + "2,2,-inf\n", "line 3, column 'rating': the rating is infinite"),
    "out of range": (GOOD + "2,2,7.5\n", "line 3, column 'rating': 7.5 is outside .* 0.5 to 5"),
    "out of range far down": (MANY + "2,2,7.5\n", "line 1002, column 'rating': 7.5"),
    "missing user": (GOOD + ",2,3\n", "line 3, column 'user': the user id is missing"),
    "missing quoted item": (GOOD + '2,"",3\n', "line 3, column 'item': the item id is missing"),
    "no time": ("user,item,timestamp\n1,1,5\n1,2,\n", "line 3, column 'timestamp': the timestamp is missing"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=list(BAD))
def test_files_that_are_refused(content: str | bytes, message: str, tmp_path: Path) -> None:
    check_refused(write(tmp_path, content), message)


BAD_ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "NaN": (
        {"values": [1, float("nan")], "rating_range": (1, 5)},
        "row 1 .*column 'values': the rating is missing",
    ),
    "null": ({"values": [1, None], "rating_range": (1, 5)}, "row 1 .*column 'values': the rating is missing"),
    "infinite": (
        {"values": [1, float("inf")], "rating_range": (1, 5)},
        "row 1 .*'values': the rating is infinite",
    ),
    "too high": ({"values": [1, 5.5], "rating_range": (1, 5)}, "row 1 .*'values': 5.5 is outside .* 1 to 5"),
    "too low": ({"values": [0, 5], "rating_range": (1, 5)}, "row 0 .*'values': 0 is outside .* 1 to 5"),
    "missing user": ({"users": ["a", None]}, "row 1 .*column 'users': the user id is missing"),
    "empty user": ({"users": ["a", ""]}, "row 1 .*column 'users': the user id is missing"),
    "missing item": ({"items": [None, 2]}, "row 0 .*column 'items': the item id is missing"),
    "time missing": ({"timestamps": [1, None]}, "row 1 .*'timestamps': the timestamp is missing"),
}


@pytest.mark.parametrize(("change", "message"), BAD_ARRAYS.values(), ids=list(BAD_ARRAYS))
def test_arrays_that_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Ratings.from_arrays(**({"users": [1, 2], "items": [1, 2]} | change))


def test_range_is_compared_in_the_precision_of_the_ratings() -> None:
    ratings = Ratings.from_arrays([1, 2], [1, 1], [0.3, 0.1], rating_range=(0.1, 0.3))  # float32(0.3) > 0.3
    assert ratings.n_ratings == 2


def test_a_row_that_is_bad_twice_is_counted_once() -> None:
    with pytest.raises(InputError, match=r"all 2 were dropped \(2 missing user id\)"):
        Ratings.from_arrays([None, ""], [1, None], [7, 8], rating_range=(1, 5), on_bad_rows="drop")
