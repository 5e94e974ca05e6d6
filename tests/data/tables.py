"""Small tables of ratings, as rows, as columns and as files."""

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from tests.same_ratings import assert_same_arrays

from dpals import InputError, Ratings, read_ratings

RANGE = (0.5, 5.0)
GOOD = "user,item,rating\n1,1,3\n"
MANY = "user,item,rating\n" + "".join(f"{row},1,3\n" for row in range(1000))
Table = dict[str, list[Any]]
Row = tuple[Any, Any, float, int]
"""User, item, rating and timestamp."""

visible_text = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\r\ufeff"), min_size=1, max_size=8
)
text_ids = visible_text.filter(lambda text: text.strip(" \t") != "")
integer_ids = st.integers(-(2**63), 2**63 - 1)
ids = st.one_of(
    st.lists(text_ids, min_size=1, max_size=6, unique=True),
    st.lists(integer_ids, min_size=1, max_size=6, unique=True),
)

half_stars = st.integers(1, 10).map(lambda stars: stars / 2)
text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
few_texts = st.lists(text, min_size=1, max_size=6, unique=True)
few_integers = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6, unique=True)
few_large_integers = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=6, unique=True)
some_ids = st.one_of(few_texts, few_integers, few_large_integers)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Columns as a file has them, of ids that survive a text file but for blanks around them."""
    users, items = draw(ids), draw(ids)
    stars = st.integers(1, 10).map(lambda number: number / 2)
    row = st.tuples(st.sampled_from(users), st.sampled_from(items), stars, st.integers(0, 2**40))
    rows = draw(st.lists(row, min_size=1, max_size=30))
    names = ("userId", "movieId", "rating", "timestamp")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


@st.composite
def few_rows(draw: st.DrawFn) -> list[Row]:
    """Rows of user, item, rating, timestamp with many duplicates."""
    users, items = draw(some_ids), draw(some_ids)
    row = st.tuples(st.sampled_from(users), st.sampled_from(items), half_stars, st.integers(-5, 5))
    return draw(st.lists(row, min_size=1, max_size=40))


def as_text(table: Table) -> Table:
    """Ids as a text file has them."""
    users, items = list(table)[:2]
    return table | {name: [str(one).strip(" \t") for one in table[name]] for name in (users, items)}


def from_table(table: Table, **arguments: Any) -> Ratings:
    users, items, values, stamps = table.values()
    return Ratings.from_arrays(users, items, values, timestamps=stamps, rating_range=RANGE, **arguments)


def columns(table: list[tuple[Any, ...]]) -> tuple[list[Any], ...]:
    """Rows as columns."""
    return tuple(list(column) for column in zip(*table, strict=True))


def as_dict(ratings: Ratings) -> dict[tuple[Any, Any], tuple[float | None, int | None]]:
    """Rating and timestamp of each user and item."""
    users, items = ratings.users.tolist(), ratings.items.tolist()
    entries = {}
    for user in range(ratings.n_users):
        for at in range(ratings.indptr[user], ratings.indptr[user + 1]):
            value = None if ratings.values is None else float(ratings.values[at])
            stamp = None if ratings.timestamps is None else int(ratings.timestamps[at])
            entries[users[user], items[ratings.indices[at]]] = (value, stamp)
    return entries


def assert_same(a: Ratings, b: Ratings) -> None:
    """The same arrays from the same number of rows."""
    assert_same_arrays(a, b)
    assert a.report == b.report


def assert_same_ratings(a: Ratings, b: Ratings) -> None:
    """The same arrays and declared facts, whatever the tables were that they came from."""
    assert_same_arrays(a, b)
    assert (a.rating_range, a.catalogue_declared) == (b.rating_range, b.catalogue_declared)


def write_csv(table: Table, path: Path, delimiter: str = ",", header: bool = True, end: str = "\n") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=end)
        if header:
            writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))


def write(folder: Path, content: str | bytes, name: str = "r.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(name: str, folder: Path, **arguments: Any) -> Ratings:
    return read_ratings(folder / name, **({"rating_range": RANGE} | arguments))


def check_refused(path: Path, message: str) -> None:
    """Read a file that must be refused, with a message that names it."""
    has_ratings = b"rating" in path.read_bytes() or path.read_bytes()[:2] == b"\x1f\x8b"
    with pytest.raises(InputError, match=message) as error:
        read_ratings(path, rating_range=RANGE if has_ratings else None)
    assert str(path) in str(error.value)
