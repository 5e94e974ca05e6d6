"""Numbers cell by cell: what a cell is read as does not depend on the cells beside it."""

import struct
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpals import InputError
from dpals.data.rating_values import parse_ratings, rating_series
from dpals.data.timestamps import parse_timestamps, timestamp_series

MIDDLE = "1.00000005960464477540"
"""Just above the middle between two single-precision numbers, and in double precision the middle itself."""

spellings = st.one_of(
    st.floats(width=64).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.from_regex(r"[ +-]?[0-9]{0,3}[.]?[0-9]{0,4}(e[+-]?[0-9]{1,3})? ?", fullmatch=True),
    st.sampled_from(["1_0", "0x1", "\u0664", "nan", "-Infinity", "1970-01-02", "1970-01-01T00:00:07.9+01:00", MIDDLE]),
)


def bits(numbers: pl.Series) -> list[bytes | None]:
    return [None if one is None else struct.pack("d", one) for one in numbers.to_list()]


@pytest.mark.parametrize("read", [parse_ratings, parse_timestamps])
@given(cells=st.lists(spellings, max_size=6))
def test_a_cell_of_text_is_read_by_itself(read: Any, cells: list[str]) -> None:
    numbers, unreadable = read(pl.Series(cells, dtype=pl.String))
    alone = [read(pl.Series([cell])) for cell in cells]
    assert bits(numbers) == [bits(one)[0] for one, _ in alone]
    assert unreadable.to_list() == [is_bad[0] for _, is_bad in alone]


@example(MIDDLE)
@example("-0.0")
@given(st.floats(allow_nan=False, allow_infinity=False).map(repr))
def test_a_rating_is_rounded_twice(text: str) -> None:
    with np.errstate(over="ignore"):
        expected = np.float32(np.float64(text)) + np.float32(0)
    (found,) = parse_ratings(pl.Series([text]))[0].to_list()
    assert struct.pack("f", found) == struct.pack("f", expected)
    assert bits(rating_series([float(text)], "r")) == bits(rating_series(np.array([float(text)]), "r"))
    assert rating_series([float(text)], "r").to_list() == [found]


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


@pytest.mark.parametrize("value", ["4", True, b"4", [4], "1970-01-02"])
@pytest.mark.parametrize("convert", [rating_series, timestamp_series])
def test_what_is_no_number_is_named(value: Any, convert: Any) -> None:
    for values in ([value], [3, value], [value, 3.5]):
        with pytest.raises(InputError, match=r"row \d .*column 'c': .* is not a number"):
            convert(values, "c")


def test_decimal_columns_have_no_times_that_are_not_exact() -> None:
    """pandas makes decimals of a column with a gap, and nanoseconds then tie."""
    stamps = np.array([1700000000000000001, np.nan, 5.9, -1.5, -(2.0**60), np.inf])
    assert timestamp_series(stamps, "t").to_list() == [None, None, 5, -2, None, None]
