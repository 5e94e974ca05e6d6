"""Ratings in single precision."""

import struct
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpals import InputError, Ratings
from dpals.data.rating_values import parse_ratings, rating_series

MIDDLE = "1.00000005960464477540"


def bits(numbers: pl.Series) -> list[bytes | None]:
    return [None if one is None else struct.pack("d", one) for one in numbers.to_list()]


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


BAD_ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "text rating": ({"values": ["a", "b"], "rating_range": (1, 5)}, "row 0 .*'values': 'a' is not a number"),
    "typed text rating": (
        {"values": np.array(["a", "b"]), "rating_range": (1, 5)},
        "'values' holds String values.*numbers",
    ),
    "one text rating": (
        {"values": [3, "b"], "rating_range": (1, 5)},
        "row 1 .*'values': 'b' is not a number",
    ),
}


@pytest.mark.parametrize(("change", "message"), BAD_ARRAYS.values(), ids=list(BAD_ARRAYS))
def test_arrays_that_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Ratings.from_arrays(**({"users": [1, 2], "items": [1, 2]} | change))
