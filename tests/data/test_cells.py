"""Cells one by one: what a cell is read as does not depend on the cells beside it."""

import struct
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpals import InputError, Ratings
from dpals.data.rating_values import parse_ratings, rating_series
from dpals.data.timestamps import parse_timestamps, timestamp_series

MIDDLE = "1.00000005960464477540"


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


@pytest.mark.parametrize("value", ["4", True, b"4", [4], "1970-01-02"])
@pytest.mark.parametrize("convert", [rating_series, timestamp_series])
def test_what_is_no_number_is_named(value: Any, convert: Any) -> None:
    for values in ([value], [3, value], [value, 3.5]):
        with pytest.raises(InputError, match=r"row \d .*column 'c': .* is not a number"):
            convert(values, "c")


BAD_ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "two dimensions": (
        {"users": np.ones((2, 2), int)},
        r"'users': expected one dimension, not the shape \(2, 2\)",
    ),
    "a word": ({"users": "ab"}, "'users': expected a list or an array, not 'ab'"),
}


@pytest.mark.parametrize(("change", "message"), BAD_ARRAYS.values(), ids=list(BAD_ARRAYS))
def test_arrays_that_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Ratings.from_arrays(**({"users": [1, 2], "items": [1, 2]} | change))
