"""Ratings from arrays, frames and matrices, against plain Python dictionaries."""

import dataclasses
import random
import subprocess
import sys
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import bsr_array, coo_array, csr_array
from tests.same_ratings import assert_same_arrays

from dpals import InputError, Ratings
from dpals.data.ratings import ReadingReport
from dpals.kernels.hashing import id_hashes

RANGE = (0.5, 5.0)
half_stars = st.integers(1, 10).map(lambda stars: stars / 2)
text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
few_texts = st.lists(text, min_size=1, max_size=6, unique=True)
few_integers = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6, unique=True)
few_large_integers = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=6, unique=True)
some_ids = st.one_of(few_texts, few_integers, few_large_integers)


@st.composite
def tables(draw: st.DrawFn) -> list[tuple[Any, Any, float, int]]:
    """Rows of user, item, rating, timestamp with many duplicates."""
    users, items = draw(some_ids), draw(some_ids)
    row = st.tuples(st.sampled_from(users), st.sampled_from(items), half_stars, st.integers(-5, 5))
    return draw(st.lists(row, min_size=1, max_size=40))


def columns(table: list[tuple[Any, ...]]) -> tuple[list[Any], ...]:
    return tuple(list(column) for column in zip(*table, strict=True))


def as_dict(ratings: Ratings) -> dict[tuple[Any, Any], tuple[float | None, int | None]]:
    users, items = ratings.users.tolist(), ratings.items.tolist()
    entries = {}
    for user in range(ratings.n_users):
        for at in range(ratings.indptr[user], ratings.indptr[user + 1]):
            value = None if ratings.values is None else float(ratings.values[at])
            stamp = None if ratings.timestamps is None else int(ratings.timestamps[at])
            entries[users[user], items[ratings.indices[at]]] = (value, stamp)
    return entries


def assert_same(a: Ratings, b: Ratings) -> None:
    assert_same_arrays(a, b)
    assert (a.rating_range, a.catalogue_declared) == (b.rating_range, b.catalogue_declared)


class TestFromArrays:
    @given(tables())
    def test_latest_then_highest_row_wins_and_ids_are_sorted(self, table: list[tuple[Any, Any, float, int]]) -> None:
        expected: dict[tuple[Any, Any], tuple[float, int]] = {}
        for user, item, value, stamp in table:
            before = expected.get((user, item), (value, stamp))
            expected[user, item] = max(before, (value, stamp), key=lambda kept: (kept[1], kept[0]))
        users, items, values, stamps = columns(table)

        ratings = Ratings.from_arrays(users, items, values, timestamps=stamps, rating_range=RANGE)

        assert as_dict(ratings) == expected
        assert ratings.users.tolist() == sorted(set(users))
        assert ratings.items.tolist() == sorted(set(items))
        assert ratings.report == ReadingReport(len(table), len(table) - len(expected), {})

    @given(tables())
    def test_highest_row_wins_without_timestamps(self, table: list[tuple[Any, Any, float, int]]) -> None:
        users, items, values, _ = columns(table)
        ratings = Ratings.from_arrays(users, items, values, rating_range=RANGE)
        highest = sorted(table, key=lambda row: row[2])
        assert as_dict(ratings) == {(user, item): (value, None) for user, item, value, _ in highest}

    @given(tables(), st.randoms(use_true_random=False))
    def test_row_order_does_not_matter(self, table: list[tuple[Any, Any, float, int]], rng: random.Random) -> None:
        shuffled = rng.sample(table, len(table))
        made = []
        for rows in (table, shuffled):
            users, items, values, stamps = columns(rows)
            made.append(Ratings.from_arrays(users, items, values, timestamps=stamps, rating_range=RANGE))
        assert_same(*made)

    @given(tables())
    def test_implicit(self, table: list[tuple[Any, Any, float, int]]) -> None:
        users, items, *_ = columns(table)
        ratings = Ratings.from_arrays(users, items)
        assert as_dict(ratings) == dict.fromkeys(zip(users, items, strict=True), (None, None))
        assert ratings.is_implicit

    @given(tables(), st.randoms(use_true_random=False))
    def test_catalogue_gives_the_order_and_decides_what_counts(
        self, table: list[tuple[Any, Any, float, int]], rng: random.Random
    ) -> None:
        users, items, *_ = columns(table)
        catalogue = rng.sample(sorted(set(items)), len(set(items)))[: 1 + len(set(items)) // 2]
        kept = {(user, item) for user, item in zip(users, items, strict=True) if item in catalogue}
        dropped = sum(item not in catalogue for item in items)

        ratings = Ratings.from_arrays(users, items, catalogue=catalogue, on_bad_rows="drop")

        assert ratings.items.tolist() == catalogue
        assert ratings.catalogue_declared
        assert set(as_dict(ratings)) == kept
        assert ratings.users.tolist() == sorted({user for user, _ in kept})
        assert sum(ratings.report.rows_dropped.values()) == dropped

    @given(tables(), st.randoms(use_true_random=False))
    def test_users_who_lose_unknown_items_stay(
        self, table: list[tuple[Any, Any, float, int]], rng: random.Random
    ) -> None:
        users, items, *_ = columns(table)
        catalogue = rng.sample(sorted(set(items)), len(set(items)) // 2)
        kept = {(user, item) for user, item in zip(users, items, strict=True) if item in catalogue}
        dropped = sum(item not in catalogue for item in items)

        ratings = Ratings.from_arrays(users, items, catalogue=catalogue, on_unknown_items="drop")

        assert set(as_dict(ratings)) == kept
        assert ratings.users.tolist() == sorted(set(users))
        assert ratings.report.rows_read == len(items)
        assert ratings.report.rows_dropped == ({"item outside the catalogue": dropped} if dropped else {})

    def test_unknown_items_and_other_bad_rows_each_have_their_way(self) -> None:
        users, items = ["ann", "ann", "bob", "eve", "eve"], ["tea", None, "gin", None, "tea"]
        arguments: dict[str, Any] = {"rating_range": RANGE, "catalogue": ["tea"]}

        def made(**ways: Any) -> Ratings:
            return Ratings.from_arrays(users, items, [3, 4, 5, 1, 9], **arguments, **ways)

        with pytest.raises(InputError, match=r"row 1 .*the item id is missing.*on_bad_rows"):
            made(on_unknown_items="drop")
        with pytest.raises(InputError, match=r"row 2 .*the item 'gin' is not in the catalogue.*on_unknown_items"):
            made(on_bad_rows="drop", on_unknown_items="error")
        both = made(on_bad_rows="drop", on_unknown_items="drop")
        assert both.users.tolist() == ["ann", "bob"]
        assert both.report.rows_dropped == {
            "missing item id": 2,
            "rating outside the range": 1,
            "item outside the catalogue": 1,
        }
        assert made(on_bad_rows="drop").users.tolist() == ["ann"]
        with pytest.raises(InputError, match="on_unknown_items must be"):
            made(on_unknown_items="ignore")

    @pytest.mark.parametrize("n", [10, 3_000_000])
    @pytest.mark.parametrize("spread", [1, 10**12])
    def test_many_rows_against_numpy_unique(self, n: int, spread: int) -> None:
        rng = np.random.default_rng(0)
        users, items = rng.integers(-500, 500, n) * spread, rng.integers(0, 300, n)
        ratings = Ratings.from_arrays(users, items)
        pairs = np.unique(np.stack([users, items]), axis=1) if n < 100 else None
        np.testing.assert_array_equal(ratings.users, np.unique(users))
        np.testing.assert_array_equal(ratings.items, np.unique(items))
        if pairs is None:
            assert ratings.n_ratings == len(np.unique(users // spread * 1000 + items))
        else:
            rows = np.repeat(np.arange(ratings.n_users), np.diff(ratings.indptr))
            np.testing.assert_array_equal(ratings.users[rows], pairs[0])
            np.testing.assert_array_equal(ratings.items[ratings.indices], pairs[1])

    def test_types_of_ids(self) -> None:
        assert Ratings.from_arrays(np.array([1, 2], np.uint8), ["a", "b"]).users.dtype == np.int64
        assert Ratings.from_arrays([2**63, 1], ["a", "b"]).users.dtype == np.uint64
        ratings = Ratings.from_arrays(np.array([" a b", "é\u200b"]), np.array(["x", "x\0"], dtype=object))
        assert ratings.users.tolist() == [" a b", "é\u200b"]
        assert ratings.items.tolist() == ["x", "x\0"]

    def test_no_rows_is_a_data_set_like_any_other(self) -> None:
        """With nobody in it, it is the neighbour of a data set of one user."""
        ratings = Ratings.from_arrays([], [], [], rating_range=(1, 5), catalogue=["tea", "rye"])
        assert (ratings.n_users, ratings.n_items, ratings.n_ratings) == (0, 2, 0)
        assert ratings.to_csr().shape == (0, 2)
        assert Ratings.from_arrays([], []).n_items == 0

    def test_range_is_compared_in_the_precision_of_the_ratings(self) -> None:
        ratings = Ratings.from_arrays([1, 2], [1, 1], [0.3, 0.1], rating_range=(0.1, 0.3))  # float32(0.3) > 0.3
        assert ratings.n_ratings == 2

    def test_dates_become_seconds(self) -> None:
        moments = [datetime(1970, 1, 1, 0, 1), datetime(1970, 1, 2)]
        ratings = Ratings.from_arrays([1, 2], [1, 1], timestamps=moments)
        assert ratings.timestamps is not None
        assert ratings.timestamps.tolist() == [60, 86400]


BAD_ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "no range": ({"values": [1, 2]}, r"rating_range=\(lowest, highest\).*not inferred.*leak who is in it"),
    "range without ratings": (
        {"rating_range": (1, 5)},
        "there are no ratings, so rating_range has no meaning",
    ),
    "range upside down": ({"values": [1, 2], "rating_range": (5, 1)}, r"the lower one first, not \(5, 1\)"),
    "range not finite": ({"values": [1, 2], "rating_range": (0, float("inf"))}, "two finite numbers"),
    "range of one": ({"values": [1, 2], "rating_range": 5}, r"two numbers \(lowest, highest\), not 5"),
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
    "text rating": ({"values": ["a", "b"], "rating_range": (1, 5)}, "row 0 .*'values': 'a' is not a number"),
    "typed text rating": (
        {"values": np.array(["a", "b"]), "rating_range": (1, 5)},
        "'values' holds String values.*numbers",
    ),
    "one text rating": (
        {"values": [3, "b"], "rating_range": (1, 5)},
        "row 1 .*'values': 'b' is not a number",
    ),
    "missing user": ({"users": ["a", None]}, "row 1 .*column 'users': the user id is missing"),
    "empty user": ({"users": ["a", ""]}, "row 1 .*column 'users': the user id is missing"),
    "NaN among text": ({"users": np.array(["a", np.nan], object)}, "row 1 .*'users': the user id is missing"),
    "missing item": ({"items": [None, 2]}, "row 0 .*column 'items': the item id is missing"),
    "mixed": (
        {"users": [1, "b"]},
        "row 1 .*'users': mixed id types: 'b' is text but the ids before it are integers",
    ),
    "mixed objects": ({"users": np.array(["b", 1], object)}, "row 1 .*mixed id types: 1 is an integer"),
    "float ids": ({"users": [1.0, 2.0]}, "'users' holds decimal numbers .*Convert it to integers.*missing"),
    "bool ids": ({"users": [True, False]}, "'users' holds Boolean values, but ids are integers or text"),
    "too large": ({"users": [2**63, -1]}, "column 'users': these integers do not fit in 64 bits"),
    "two dimensions": (
        {"users": np.ones((2, 2), int)},
        r"'users': expected one dimension, not the shape \(2, 2\)",
    ),
    "a word": ({"users": "ab"}, "'users': expected a list or an array, not 'ab'"),
    "lengths": ({"users": [1, 2, 3]}, "different lengths: users has 3, items has 2"),
    "lengths of values": ({"values": [1], "rating_range": (1, 5)}, "different lengths: .*values has 1"),
    "catalogue": ({"catalogue": [1, 7]}, "row 1 .*column 'items': the item 2 is not in the catalogue"),
    "catalogue twice": ({"catalogue": [1, 2, 1]}, "'catalogue': the id 1 is there more than once"),
    "catalogue missing": ({"catalogue": [1, None]}, "row 1 .*'catalogue': the id is missing"),
    "catalogue of integers": (
        {"items": ["1", "2"], "catalogue": [1, 2]},
        "'items' holds text and the catalogue integers",
    ),
    "time missing": ({"timestamps": [1, None]}, "row 1 .*'timestamps': the timestamp is missing"),
    "time of text": ({"timestamps": ["a", "b"]}, "row 0 .*'timestamps': 'a' is not a number"),
    "typed time of text": (
        {"timestamps": np.array(["a", "b"])},
        "'timestamps' holds String values.*numbers or dates",
    ),
    "policy": ({"on_bad_rows": "ignore"}, 'on_bad_rows must be "error" or "drop", not \'ignore\''),
}


@pytest.mark.parametrize(("change", "message"), BAD_ARRAYS.values(), ids=list(BAD_ARRAYS))
def test_bad_arrays(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Ratings.from_arrays(**({"users": [1, 2], "items": [1, 2]} | change))


def test_bad_rows_can_be_dropped_and_are_counted_by_reason() -> None:
    ratings = Ratings.from_arrays(
        ["a", None, "", "d", "e", "f", "g"],
        [1, 2, 3, None, 5, 6, 7],
        [3, 3, 3, 3, float("nan"), 9, float("inf")],
        rating_range=(1, 5),
        on_bad_rows="drop",
    )
    assert ratings.users.tolist() == ["a"]
    assert ratings.items.tolist() == [1]
    assert ratings.report.rows_read == 7
    assert ratings.report.rows_dropped == {
        "missing user id": 2,
        "missing item id": 1,
        "missing rating": 1,
        "infinite rating": 1,
        "rating outside the range": 1,
    }
    assert "6 dropped (2 missing user id, 1 missing item id" in str(ratings.report)


def test_a_row_that_is_bad_twice_is_counted_once() -> None:
    with pytest.raises(InputError, match=r"all 2 were dropped \(2 missing user id\)"):
        Ratings.from_arrays([None, ""], [1, None], [7, 8], rating_range=(1, 5), on_bad_rows="drop")


def test_dropping_every_row_is_an_error() -> None:
    with pytest.raises(
        InputError, match=r"the arrays: no row is left: all 2 were dropped \(2 rating outside the range\)"
    ):
        Ratings.from_arrays([1, 2], [1, 2], [7, 8], rating_range=(1, 5), on_bad_rows="drop")


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


class TestFromFrame:
    @pytest.mark.parametrize("make", FRAMES.values(), ids=list(FRAMES))
    @pytest.mark.parametrize("users", [[3, 1, 3], ["é x", "a", "é x"]], ids=["integers", "text"])
    def test_every_kind_of_frame(self, make: Any, users: list[Any]) -> None:
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
        assert_same(ratings, expected)

    def test_pandas_without_pyarrow(self) -> None:
        code = (
            "import sys; sys.modules['pyarrow'] = None\n"
            "import pandas as pd; from dpals import Ratings\n"
            "frame = pd.DataFrame({'user': ['b', 'a'], 'item': [1, 2], 'rating': [1.0, 2.0]})\n"
            "ratings = Ratings.from_frame(frame, rating_range=(1, 5))\n"
            "print(ratings.users.tolist(), ratings.items.tolist(), ratings.values.tolist())"
        )
        output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert output.stdout == "['a', 'b'] [1, 2] [2.0, 1.0]\n"

    def test_index_of_a_pandas_frame_plays_no_part(self) -> None:
        frame = pd.DataFrame({"user": [1, 2, 3], "item": [1, 2, 3]}, index=[9, 9, 4])
        assert Ratings.from_frame(frame[frame.user > 1]).users.tolist() == [2, 3]

    def test_columns_are_recognised_or_named(self) -> None:
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

    def test_a_rating_column_needs_a_range(self) -> None:
        with pytest.raises(InputError, match="rating_range"):
            Ratings.from_frame(pl.DataFrame({"user": [1], "item": [1], "rating": [1]}))

    def test_pandas_ids_that_became_decimal(self) -> None:
        with pytest.raises(InputError, match="'user' holds decimal numbers"):
            Ratings.from_frame(pd.DataFrame({"user": [1, None], "item": [1, 2]}))

    def test_mixed_pandas_ids(self) -> None:
        with pytest.raises(InputError, match=r"row 1 .*'user': mixed id types"):
            Ratings.from_frame(pd.DataFrame({"user": pd.Series([1, "b"], dtype=object), "item": [1, 2]}))

    def test_not_a_frame(self) -> None:
        with pytest.raises(InputError, match="expected a pandas or polars frame or an Arrow table, not dict"):
            Ratings.from_frame({"user": [1], "item": [2]})


class TestFromCsr:
    def test_round_trip(self) -> None:
        rng = np.random.default_rng(0)
        dense = np.where(rng.random((30, 20)) < 0.2, rng.integers(1, 6, (30, 20)), 0)
        ratings = Ratings.from_csr(csr_array(dense), rating_range=(1, 5))
        np.testing.assert_array_equal(ratings.to_csr().toarray(), dense)
        np.testing.assert_array_equal(ratings.users, np.arange(30))
        assert ratings.catalogue_declared

    def test_stored_zeros_are_ratings(self) -> None:
        matrix = csr_array((np.array([0.0, 2.0]), np.array([1, 0]), np.array([0, 1, 2])), shape=(2, 2))
        ratings = Ratings.from_csr(matrix, rating_range=(0, 5))
        assert as_dict(ratings) == {(0, 1): (0.0, None), (1, 0): (2.0, None)}

    def test_unsorted_and_repeated_entries(self) -> None:
        matrix = coo_array(([3.0, 1.0, 4.0, 5.0], ([0, 0, 0, 1], [2, 0, 2, 1])), shape=(3, 3))
        ratings = Ratings.from_csr(matrix, users=["z", "b", "a"], items=[7, 5, 6], rating_range=(1, 5))
        assert as_dict(ratings) == {("z", 6): (4.0, None), ("z", 7): (1.0, None), ("b", 5): (5.0, None)}
        assert ratings.users.tolist() == ["z", "b", "a"]
        assert ratings.report.duplicates_replaced == 1
        assert ratings.user_index(["a", "b"]).tolist() == [2, 1]
        assert matrix.data.tolist() == [3.0, 1.0, 4.0, 5.0]

    def test_implicit_keeps_the_pattern(self) -> None:
        assert Ratings.from_csr(csr_array([[0, 9], [1, 0]]), implicit=True).to_csr().toarray().tolist() == [
            [0, 1],
            [1, 0],
        ]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({}, "rating_range"),
            ({"rating_range": (1, 5)}, r"matrix\[1, 0\] is 9, outside the declared rating_range 1 to 5"),
            ({"rating_range": (1, 9), "users": ["a"]}, r"users has 1 ids, but the matrix \(2, 2\) needs 2"),
            ({"rating_range": (1, 9), "items": [3, 3]}, "'items': the id 3 is there more than once"),
        ],
    )
    def test_errors(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(InputError, match=message):
            Ratings.from_csr(csr_array([[0, 2], [9, 0]]), **arguments)

    def test_blocks_are_refused_because_they_store_zeros_of_others(self) -> None:
        blocks = bsr_array(np.diag([5.0, 4, 3, 2]), blocksize=(2, 2))
        with pytest.raises(InputError, match="BSR matrix stores zeros for whole blocks of users"):
            Ratings.from_csr(blocks, implicit=True)

    def test_dense_is_refused(self) -> None:
        with pytest.raises(InputError, match="expected a SciPy sparse matrix of users by items, not ndarray"):
            Ratings.from_csr(np.eye(2), rating_range=(1, 5))


class TestUserHashes:
    def test_they_are_those_of_ids(self) -> None:
        ratings = Ratings.from_arrays(["b", "a", "b"], [1, 1, 2])
        np.testing.assert_array_equal(ratings.user_hashes(), id_hashes(np.array(["a", "b"])))

    @given(
        st.lists(st.lists(st.sampled_from([0, 0, 1, 2, 5]), min_size=4, max_size=4), min_size=1, max_size=6),
        st.randoms(use_true_random=False),
    )
    def test_rows_without_ids_are_told_apart_by_what_is_in_them(
        self, rows: list[list[int]], rng: random.Random
    ) -> None:
        order = rng.sample(range(len(rows)), len(rows))
        some = order[: max(1, len(order) // 2)]
        facts: dict[str, Any] = {"rating_range": (1, 5), "items": ["a", "b", "c", "d"]}
        everyone = Ratings.from_csr(csr_array(np.array(rows)), **facts).user_hashes()
        others = Ratings.from_csr(csr_array(np.array(rows)[some]), **facts).user_hashes()
        assert everyone[some].tolist() == others.tolist()
        assert len(set(everyone.tolist())) == len({tuple(row) for row in rows})


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


class TestTheObject:
    ratings = Ratings.from_arrays([1, 1, 2], ["a", "b", "a"], [1, 2, 3], timestamps=[1, 2, 3], rating_range=(1, 5))

    @pytest.mark.parametrize("field", ["indptr", "indices", "values", "timestamps", "users", "items"])
    def test_arrays_cannot_be_changed(self, field: str) -> None:
        array = getattr(self.ratings, field)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(self.ratings, field, array)

    def test_arrays_of_the_caller_stay_their_own(self) -> None:
        users, values = np.array([2, 1], np.int32), np.array([1, 2], np.float32)
        ratings = Ratings.from_arrays(users, [1, 1], values, rating_range=(1, 5))
        users[:], values[:] = 7, 7
        assert as_dict(ratings) == {(2, 1): (1.0, None), (1, 1): (2.0, None)}
        matrix = ratings.to_csr()
        matrix.data[:] = 0
        matrix.indices[:] = 0
        assert as_dict(ratings) == {(2, 1): (1.0, None), (1, 1): (2.0, None)}

    def test_catalogue_of_the_caller_stays_their_own(self) -> None:
        catalogue = np.array([3, 1])
        ratings = Ratings.from_arrays([1], [1], catalogue=catalogue)
        catalogue[:] = 0
        assert ratings.items.tolist() == [3, 1]

    def test_public_facts(self) -> None:
        assert self.ratings.public_facts() == [
            "Every rating lies between 1 and 5: declared by the caller.",
            "The catalogue has 2 items: taken from the data and thereby declared public by the caller.",
        ]
        implicit = Ratings.from_arrays([1], ["a"], catalogue=["a"])
        assert implicit.public_facts() == ["The catalogue has 1 item: given by the caller."]

    @pytest.mark.parametrize(
        ("field", "value", "message"),
        [
            ("indices", np.array([1, 0, 0], np.int32), "strictly increase within each user"),
            ("indices", np.array([0, 0, 0], np.int32), "strictly increase within each user"),
            ("indices", np.array([0, 2, 0], np.int32), "between 0 and 1"),
            ("indices", np.array([0, 1, 0]), "indices must be int32 of length 3, not int64"),
            ("indptr", np.array([0, 2, 2]), "indptr must rise from 0"),
            ("indptr", np.array([0, 3]), "indptr must be int64 of length 3"),
            ("values", np.array([1, 2, 6], np.float32), "values must lie in the rating range"),
            ("values", np.array([1, 2, np.nan], np.float32), "values must lie in the rating range"),
            ("values", None, "values and rating_range go together"),
            ("users", np.array(["b", "b"]), "users must all be different"),
            ("items", np.array([4, 4]), "items must all be different"),
        ],
    )
    def test_constructor_refuses_what_is_not_a_matrix(self, field: str, value: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            dataclasses.replace(self.ratings, **{field: value})

    def test_users_without_ratings_are_allowed(self) -> None:
        indptr = np.array([0, 0, 2, 2, 3, 3])
        ratings = dataclasses.replace(self.ratings, indptr=indptr, users=np.arange(5))
        assert ratings.n_users == 5


@given(table=tables(), data=st.data(), implicit=st.booleans())
def test_taken_users_have_all_their_ratings(table: list[tuple[Any, ...]], data: st.DataObject, implicit: bool) -> None:
    users, items, values, stamps = columns(table)
    rated: dict[str, Any] = {} if implicit else {"values": values, "rating_range": (0.5, 5)}
    ratings = Ratings.from_arrays(users, items, timestamps=stamps, **rated)
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=ratings.n_users, max_size=ratings.n_users)), bool)
    taken = ratings.take_users(chosen)
    wanted = ratings.users[chosen].tolist()
    assert taken.users.tolist() == wanted
    assert as_dict(taken) == {key: entry for key, entry in as_dict(ratings).items() if key[0] in wanted}
    assert np.array_equal(taken.items, ratings.items)

    start, stop = (data.draw(st.integers(0, ratings.n_users + 1)) for _ in range(2))
    inside = (start <= np.arange(ratings.n_users)) & (np.arange(ratings.n_users) < stop)
    assert_same(ratings.take_users(slice(start, stop)), ratings.take_users(inside))


@pytest.mark.parametrize("statement", ["import dpals", "from dpals import Ratings, read_ratings"])
def test_import_is_light(statement: str) -> None:
    heavy = ("polars", "numba", "scipy")
    code = f"import sys; {statement}; print([name for name in {heavy} if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout == "[]\n"
