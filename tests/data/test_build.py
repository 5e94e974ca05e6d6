"""Ratings from rows: the catalogue, users who lose rows, and no rows at all."""

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.tables import Row, as_dict, columns, few_rows, write

from dpals import InputError, Ratings, read_ratings


@given(few_rows())
def test_implicit(table: list[Row]) -> None:
    users, items, *_ = columns(table)
    ratings = Ratings.from_arrays(users, items)
    assert as_dict(ratings) == dict.fromkeys(zip(users, items, strict=True), (None, None))
    assert ratings.is_implicit


@given(few_rows(), st.randoms(use_true_random=False))
def test_catalogue_gives_the_order_and_decides_what_counts(table: list[Row], rng: random.Random) -> None:
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


@given(few_rows(), st.randoms(use_true_random=False))
def test_users_who_lose_unknown_items_stay(table: list[Row], rng: random.Random) -> None:
    users, items, *_ = columns(table)
    catalogue = rng.sample(sorted(set(items)), len(set(items)) // 2)
    kept = {(user, item) for user, item in zip(users, items, strict=True) if item in catalogue}
    dropped = sum(item not in catalogue for item in items)

    ratings = Ratings.from_arrays(users, items, catalogue=catalogue, on_unknown_items="drop")

    assert set(as_dict(ratings)) == kept
    assert ratings.users.tolist() == sorted(set(users))
    assert ratings.report.rows_read == len(items)
    assert ratings.report.rows_dropped == ({"item outside the catalogue": dropped} if dropped else {})


def test_no_rows_is_a_data_set_like_any_other() -> None:
    """With nobody in it, it is the neighbour of a data set of one user."""
    ratings = Ratings.from_arrays([], [], [], rating_range=(1, 5), catalogue=["tea", "rye"])
    assert (ratings.n_users, ratings.n_items, ratings.n_ratings) == (0, 2, 0)
    assert ratings.to_csr().shape == (0, 2)
    assert Ratings.from_arrays([], []).n_items == 0


def test_dropping_every_row_is_an_error() -> None:
    with pytest.raises(
        InputError, match=r"the arrays: no row is left: all 2 were dropped \(2 rating outside the range\)"
    ):
        Ratings.from_arrays([1, 2], [1, 2], [7, 8], rating_range=(1, 5), on_bad_rows="drop")


BAD_ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "catalogue": ({"catalogue": [1, 7]}, "row 1 .*column 'items': the item 2 is not in the catalogue"),
    "catalogue of integers": (
        {"items": ["1", "2"], "catalogue": [1, 2]},
        "'items' holds text and the catalogue integers",
    ),
}


@pytest.mark.parametrize(("change", "message"), BAD_ARRAYS.values(), ids=list(BAD_ARRAYS))
def test_arrays_that_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Ratings.from_arrays(**({"users": [1, 2], "items": [1, 2]} | change))


def test_catalogue_says_what_item_ids_are(tmp_path: Path) -> None:
    path = write(tmp_path, "user,item\n1,5\n1,7\n")
    assert read_ratings(path, catalogue=["7", "5"]).items.tolist() == ["7", "5"]
    assert read_ratings(path, catalogue=[7, 5]).items.tolist() == [7, 5]
    with pytest.raises(InputError, match=r"r\.csv, line 3, column 'item': the item 7 is not in the catalogue"):
        read_ratings(path, catalogue=[5, 6])
