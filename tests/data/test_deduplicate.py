"""Which of repeated rows stays, against plain Python dictionaries."""

import random
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.data.tables import RANGE, Row, as_dict, assert_same_ratings, columns, few_rows, read, write

from dpals import Ratings
from dpals.data.bad_rows import ReadingReport


@given(few_rows())
def test_latest_then_highest_row_wins_and_ids_are_sorted(table: list[Row]) -> None:
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


@given(few_rows())
def test_highest_row_wins_without_timestamps(table: list[Row]) -> None:
    users, items, values, _ = columns(table)
    ratings = Ratings.from_arrays(users, items, values, rating_range=RANGE)
    highest = sorted(table, key=lambda row: row[2])
    assert as_dict(ratings) == {(user, item): (value, None) for user, item, value, _ in highest}


@given(few_rows(), st.randoms(use_true_random=False))
def test_row_order_does_not_matter(table: list[Row], rng: random.Random) -> None:
    shuffled = rng.sample(table, len(table))
    made = []
    for rows in (table, shuffled):
        users, items, values, stamps = columns(rows)
        made.append(Ratings.from_arrays(users, items, values, timestamps=stamps, rating_range=RANGE))
    assert_same_ratings(*made)


def test_duplicates_are_counted_once(tmp_path: Path) -> None:
    write(tmp_path, "user,item,rating,timestamp\n1,1,3,5\n1,1,4,9\n1,1,5,9\n1,1,2,1\n")
    ratings = read("r.csv", tmp_path)
    assert ratings.values is not None
    assert ratings.values.tolist() == [5.0]
    assert ratings.report.duplicates_replaced == 3
