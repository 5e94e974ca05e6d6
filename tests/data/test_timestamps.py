"""Timestamps as whole numbers, from numbers and dates."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from dpals import InputError, Ratings
from dpals.data.timestamps import timestamp_series


@pytest.mark.parametrize(
    ("value", "stamp"),
    [
        (1700000000000000001, 1700000000000000001),
        (np.int64(5), 5),
        (1.9, 1),
        (-1.1, -2),
        (Decimal("7.5"), 7),
        (date(1970, 1, 2), 86400),
        (datetime(1970, 1, 1, 0, 0, 7, 900_000), 7),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
        (datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC), -1),
        (np.datetime64("1970-01-02"), 86400),
        (2**63, None),
        (float("inf"), None),
        (2.0**53, None),
        (2.0**53 - 1, 2**53 - 1),
        (float("nan"), None),
        (None, None),
    ],
)
def test_a_time_in_a_list_is_read_by_itself(value: Any, stamp: int | None) -> None:
    others = [1700000000000000003, 1.5, None]
    assert timestamp_series([value, *others], "t").to_list() == [stamp, 1700000000000000003, 1, None]
    assert timestamp_series(np.array([value, *others], object), "t").to_list()[0] == stamp


def test_decimal_columns_have_no_times_that_are_not_exact() -> None:
    """pandas makes decimals of a column with a gap, and nanoseconds then tie."""
    stamps = np.array([1700000000000000001, np.nan, 5.9, -1.5, -(2.0**60), np.inf])
    assert timestamp_series(stamps, "t").to_list() == [None, None, 5, -2, None, None]


def test_dates_become_seconds() -> None:
    moments = [datetime(1970, 1, 1, 0, 1), datetime(1970, 1, 2)]
    ratings = Ratings.from_arrays([1, 2], [1, 1], timestamps=moments)
    assert ratings.timestamps is not None
    assert ratings.timestamps.tolist() == [60, 86400]


BAD_ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "time of text": ({"timestamps": ["a", "b"]}, "row 0 .*'timestamps': 'a' is not a number"),
    "typed time of text": (
        {"timestamps": np.array(["a", "b"])},
        "'timestamps' holds String values.*numbers or dates",
    ),
}


@pytest.mark.parametrize(("change", "message"), BAD_ARRAYS.values(), ids=list(BAD_ARRAYS))
def test_arrays_that_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Ratings.from_arrays(**({"users": [1, 2], "items": [1, 2]} | change))
