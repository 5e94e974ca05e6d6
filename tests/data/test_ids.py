"""Ids that are integers or text, and how they are found."""

import random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.tables import some_ids

from dpals import InputError, Ratings


def test_types_of_ids() -> None:
    assert Ratings.from_arrays(np.array([1, 2], np.uint8), ["a", "b"]).users.dtype == np.int64
    assert Ratings.from_arrays([2**63, 1], ["a", "b"]).users.dtype == np.uint64
    ratings = Ratings.from_arrays(np.array([" a b", "é\u200b"]), np.array(["x", "x\0"], dtype=object))
    assert ratings.users.tolist() == [" a b", "é\u200b"]
    assert ratings.items.tolist() == ["x", "x\0"]


BAD_ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "NaN among text": ({"users": np.array(["a", np.nan], object)}, "row 1 .*'users': the user id is missing"),
    "mixed": (
        {"users": [1, "b"]},
        "row 1 .*'users': mixed id types: 'b' is text but the ids before it are integers",
    ),
    "mixed objects": ({"users": np.array(["b", 1], object)}, "row 1 .*mixed id types: 1 is an integer"),
    "float ids": ({"users": [1.0, 2.0]}, "'users' holds decimal numbers .*Convert it to integers.*missing"),
    "bool ids": ({"users": [True, False]}, "'users' holds Boolean values, but ids are integers or text"),
    "too large": ({"users": [2**63, -1]}, "column 'users': these integers do not fit in 64 bits"),
    "catalogue twice": ({"catalogue": [1, 2, 1]}, "'catalogue': the id 1 is there more than once"),
    "catalogue missing": ({"catalogue": [1, None]}, "row 1 .*'catalogue': the id is missing"),
}


@pytest.mark.parametrize(("change", "message"), BAD_ARRAYS.values(), ids=list(BAD_ARRAYS))
def test_arrays_that_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Ratings.from_arrays(**({"users": [1, 2], "items": [1, 2]} | change))


def test_pandas_ids_that_became_decimal() -> None:
    with pytest.raises(InputError, match="'user' holds decimal numbers"):
        Ratings.from_frame(pd.DataFrame({"user": [1, None], "item": [1, 2]}))


def test_mixed_pandas_ids() -> None:
    with pytest.raises(InputError, match=r"row 1 .*'user': mixed id types"):
        Ratings.from_frame(pd.DataFrame({"user": pd.Series([1, "b"], dtype=object), "item": [1, 2]}))


class TestLookup:
    def test_integers_find_text(self) -> None:
        ratings = Ratings.from_arrays(["7", "07", "x"], ["a", "a", "a"])
        assert ratings.user_index([7, 8], unknown_ok=True).tolist() == [ratings.users.tolist().index("7"), -1]

    @given(some_ids, st.randoms(use_true_random=False))
    def test_finds_what_a_list_finds(self, ids: list[Any], rng: random.Random) -> None:
        known = rng.sample(ids, max(1, len(ids) // 2))
        ratings = Ratings.from_arrays([1] * len(known), known, catalogue=known)
        expected = [known.index(wanted) if wanted in known else -1 for wanted in ids]
        assert ratings.item_index(ids, unknown_ok=True).tolist() == expected

    def test_signed_and_unsigned_ids_are_not_confused(self) -> None:
        assert Ratings.from_arrays([-1, 5], [1, 1]).user_index([2**64 - 1, 5], unknown_ok=True).tolist() == [-1, 1]
        assert Ratings.from_arrays([2**64 - 1, 5], [1, 1]).user_index([-1, 5], unknown_ok=True).tolist() == [-1, 0]

    def test_unknown_ids_are_named(self) -> None:
        ratings = Ratings.from_arrays([1, 2], ["a", "b"])
        with pytest.raises(InputError, match=r"7 unknown user ids: 3, 4, 5, 6, 7, \.\.\."):
            ratings.user_index([1, *range(3, 10)])
        with pytest.raises(InputError, match="user ids are integers here, and these are text: 'a'"):
            ratings.user_index(["a"])
        with pytest.raises(InputError, match="expected a list or an array, not 'a'"):
            ratings.item_index("a")
        assert ratings.user_index([]).tolist() == []
