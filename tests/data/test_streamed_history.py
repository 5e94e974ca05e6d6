"""Parts against the whole: what `read_ratings` makes of the same file at once."""

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.same_ratings import assert_same_arrays

from dpals import InputError, Ratings, read_ratings
from dpals.data.bad_rows import BadRows
from dpals.data.columns import ColumnOptions
from dpals.data.streamed_history import stream_history

CATALOGUE = [10, 20, 30, 40]
STARS = (0.5, 5.0)


def parts_of(path, rows_at_once, *, policy="error", wanted=None, **more):
    facts = {"rating_range": STARS, "catalogue": np.array(CATALOGUE), "bad": BadRows(policy, "drop"), **more}
    with stream_history(Path(path), wanted or ColumnOptions(), **facts, rows_at_once=rows_at_once) as parts:
        return list(parts), parts.report


def joined(parts):
    """All parts as one, users in the order in which they come."""
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    return Ratings(
        indptr=np.concatenate([[0], np.cumsum(lengths)]),
        indices=np.concatenate([part.indices for part in parts]),
        values=np.concatenate([part.values for part in parts]),
        timestamps=None if parts[0].timestamps is None else np.concatenate([part.timestamps for part in parts]),
        users=np.concatenate([part.users for part in parts]),
        items=parts[0].items,
        rating_range=parts[0].rating_range,
        catalogue_declared=True,
        report=parts[0].report,
    )


def check(path, rows_at_once, policy="error", columns=None):
    parts, report = parts_of(path, rows_at_once, policy=policy, wanted=ColumnOptions(columns=columns))
    facts = {"rating_range": STARS, "catalogue": CATALOGUE, "columns": columns}
    whole = read_ratings(path, **facts, on_bad_rows=policy, on_unknown_items="drop")
    assert_same_arrays(joined(parts), whole)
    assert report == whole.report
    return parts


users = st.one_of(
    st.integers(-5, 30),
    st.sampled_from([2**31, 2**40, -(2**62)]),
)
texts = st.sampled_from(["ann", "Bob", "élan", "\U0001f600", "zoé", "a b", "7", "07"])
rows = st.tuples(st.sampled_from([*CATALOGUE, 50]), st.sampled_from([0.5, 3.0, 4.5]), st.integers(0, 3))


@settings(max_examples=50)
@given(st.data(), st.sampled_from([users, texts]), st.integers(1, 12), st.sampled_from(["csv", "parquet", "folder"]))
def test_the_same_as_at_once(tmp_path_factory, data, ids, rows_at_once, kind):
    """Any order of rows, duplicates with and without a later time, unknown items, users with nothing else."""
    table = data.draw(st.lists(st.tuples(ids, rows), min_size=1, max_size=40))
    frame = pl.DataFrame(
        [(user, *row) for user, row in table], schema=["user", "item", "rating", "timestamp"], orient="row"
    )
    folder = tmp_path_factory.mktemp("data")
    if kind == "csv":
        path = folder / "h.csv"
        frame.write_csv(path)
    elif kind == "parquet":
        path = folder / "h.parquet"
        frame.write_parquet(path)
    else:
        path = folder
        half = frame.height // 2
        frame.head(half + 1).write_parquet(folder / "a.parquet")
        frame.slice(half + 1).write_parquet(folder / "b.parquet")
    check(path, rows_at_once)


def test_parts_are_small_and_files_are_temporary(tmp_path):
    """Many users in random order: no part has much more than it should, and nothing is left behind."""
    rng = np.random.default_rng(0)
    order = rng.permutation(6_000)
    frame = pl.DataFrame({"user": (order // 3), "item": np.array(CATALOGUE)[order % 3], "rating": [3.0] * 6_000})
    home = tmp_path / "home"
    home.mkdir()
    frame.write_csv(tmp_path / "h.csv")
    facts = {"rating_range": STARS, "catalogue": np.array(CATALOGUE), "bad": BadRows("error", "drop")}
    read = []
    with stream_history(
        tmp_path / "h.csv", ColumnOptions(), **facts, rows_at_once=500, folder=home, progress=read.append
    ) as parts:
        assert list(home.iterdir()) == []  # what is there has no name
        sizes = [part.n_ratings for part in parts]
    assert read[-1] == sum(sizes) == 6_000
    assert max(sizes) <= 1_000
    assert len(sizes) >= 6
    assert list(home.iterdir()) == []


def test_a_small_history_needs_no_files(tmp_path):
    file = tmp_path / "h.csv"
    file.write_text("user,item,rating\n1,10,3\n2,20,4\n")
    nowhere = tmp_path / "missing"
    parts, _ = parts_of(file, 2, folder=nowhere)
    assert [part.users.tolist() for part in parts] == [["1", "2"]]


def test_an_error_leaves_no_files(tmp_path):
    file = tmp_path / "h.csv"
    file.write_text("user,item,rating\n" + "1,10,3\n2,20,4\n" * 20 + "3,10,much\n")
    with pytest.raises(InputError, match="line 42, column 'rating': 'much' is not a number"):
        parts_of(file, 4, folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["h.csv"]


def test_no_room_for_temporary_files(tmp_path):
    file = tmp_path / "h.csv"
    file.write_text("user,item,rating\n" + "1,10,3\n2,20,4\n" * 20)
    with pytest.raises(OSError, match=r"temporary files cannot be written to .*missing.* Free some space"):
        parts_of(file, 4, folder=tmp_path / "missing")


def test_no_id_decides_for_the_whole_file(tmp_path):
    file = tmp_path / "h.csv"
    file.write_text("user,item,rating\n7,10,3\n" + "8,20,4\n" * 9 + "ann,20,4\n")
    assert [user for part in check(file, 2) for user in part.users.tolist()] == ["7", "8", "ann"]
    with pytest.raises(InputError, match=r"line 12.*'ann' is not a plain 64-bit integer"):
        parts_of(file, 2, user_ids="integer")
    parts, _ = parts_of(file, 2, user_ids="integer", policy="drop")
    assert [user for part in parts for user in part.users.tolist()] == [7, 8]


def test_large_unsigned_ids_are_numbers_of_one_type(tmp_path):
    table = pl.DataFrame({"user": [7, 8, 9, 2**64 - 1], "item": [10, 20, 20, 30], "rating": [3.0, 4.0, 4.0, 5.0]})
    table.with_columns(pl.col("user").cast(pl.UInt64)).write_parquet(tmp_path / "a.parquet")
    assert {part.users.dtype for part in check(tmp_path, 1)} == {np.dtype(np.uint64)}
    table.with_columns(user=pl.Series([-7, 8, 9, 10])).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match="do not fit in 64 bits"):
        parts_of(tmp_path, 1)


def test_integers_in_one_file_and_text_in_another(tmp_path):
    for name, user in (("a", 7), ("b", "ann")):
        pl.DataFrame({"user": [user], "item": [10], "rating": [3.0]}).write_parquet(tmp_path / f"{name}.parquet")
    for rows_at_once in (1, 10):
        with pytest.raises(InputError, match="mixed id types"):
            parts_of(tmp_path, rows_at_once)


def test_pieces_without_a_usable_row(tmp_path):
    file = tmp_path / "h.csv"
    file.write_text("user,item,rating\n" + "7,10,9\n" * 8 + "8,20,4\n")
    check(file, 2, policy="drop")
    file.write_text("user,item,rating\n" + "7,10,9\n" * 8)
    with pytest.raises(InputError, match="no row is left: all 8 were dropped"):
        parts_of(file, 2, policy="drop")
    file.write_text("user,item,rating\n")
    with pytest.raises(InputError, match="no row of data"):
        parts_of(file, 2)


def test_other_formats(tmp_path):
    lines = "".join(f"{user}::{item}::3::{user}\n" for item in CATALOGUE for user in (3, 1, 2))
    (tmp_path / "ratings.dat").write_text(lines)
    check(tmp_path / "ratings.dat", 5)
    (tmp_path / "ratings.tsv.gz").write_bytes(gzip.compress(lines.replace("::", "\t").encode()))
    check(tmp_path / "ratings.tsv.gz", 5, columns=["user", "item", "rating", "timestamp"])


@pytest.mark.parametrize("rows_at_once", [1, 100])
def test_some_users_only(tmp_path, rows_at_once):
    file = tmp_path / "h.csv"
    file.write_text("user,item,rating\n" + "".join(f"{user},{item},3\n" for item in CATALOGUE for user in (3, 1, 2)))
    parts, _ = parts_of(file, rows_at_once, only=("3", "1", "3"))
    assert [(user, 4) for user in ("1", "3")] == [
        (user, n) for part in parts for user, n in zip(part.users.tolist(), np.diff(part.indptr), strict=True)
    ]
    with pytest.raises(InputError, match=r"the users '9', 'ann' are not in .*h\.csv"):
        parts_of(file, rows_at_once, only=("9", "1", "ann"))


def test_a_user_with_more_rows_than_fit(tmp_path):
    file = tmp_path / "h.csv"
    rng = np.random.default_rng(1)
    crowd = [(1, item) for item in rng.choice(CATALOGUE, 200)] + [(user, 10) for user in range(2, 40)]
    rng.shuffle(crowd)
    file.write_text("user,item,rating\n" + "".join(f"{user},{item},3\n" for user, item in crowd))
    check(file, 8)
