"""Runs hold the whole table, sorted, and are made once."""

import numpy as np
import polars as pl
import pytest

from dpals import Ratings
from dpals.data.bad_rows import BadRows
from dpals.data.blocks import runs as sorted_runs
from dpals.data.blocks.runs import finished_runs, sort_population, sort_table
from dpals.data.blocks.user_rows import UserRows, is_sorted
from dpals.data.columns import ColumnOptions
from dpals.data.frames import FrameSource

FRAME = pl.DataFrame({"user": [f"u{n % 7}" for n in range(50)], "item": [n % 11 for n in range(50)]})


def sort(folder, rows_at_once=8, frame=FRAME, **facts):
    given = {"rating_range": None, "catalogue": None, "bad": BadRows("drop"), "ids": "given", **facts}
    source = FrameSource(frame, ColumnOptions())
    return sort_table(folder, source, **given, rows_at_once=rows_at_once, progress=lambda _: None)


def pairs(rows, items):
    owners = np.repeat(rows.users, np.diff(rows.indptr)).tolist()
    return set(zip(owners, items[rows.indices].tolist(), strict=True))


@pytest.mark.parametrize("rows_at_once", [3, 8, 100])
def test_runs_are_sorted_and_hold_everything(tmp_path, rows_at_once):
    runs = sort(tmp_path, rows_at_once)
    assert runs.n_runs == -(-50 // rows_at_once)
    parts = runs.rows("")
    assert all(is_sorted(part.hashes, part.users) for part in parts)
    assert set().union(*(pairs(part, runs.items) for part in parts)) == set(FRAME.rows())
    assert runs.size == sum(part.n_ratings for part in parts)
    assert runs.items.tolist() == [*range(11)]


def test_ranges_share_out_the_users(tmp_path):
    runs = sort(tmp_path)
    whole = UserRows.merged(runs.rows(""))
    halves = [UserRows.merged(runs.rows(prefix)) for prefix in "01"]
    assert [user for half in halves for user in half.users.tolist()] == whole.users.tolist()


def test_runs_that_are_there_are_not_made_again(tmp_path, monkeypatch):
    first = sort(tmp_path)
    (tmp_path / "reading.json").unlink()
    (tmp_path / "run-000002.safetensors").unlink()
    made = []
    real = sorted_runs._write_run
    monkeypatch.setattr(sorted_runs, "_write_run", lambda file, *rest: made.append(file.name) or real(file, *rest))
    again = sort(tmp_path)
    assert made == ["run-000002.safetensors"]
    assert (again.report, again.facts, again.size) == (first.report, first.facts, first.size)


def test_what_was_dropped_is_counted_once(tmp_path):
    frame = FRAME.with_columns(user=pl.when(pl.col("item") == 3).then(None).otherwise("user"))
    expected = Ratings.from_frame(frame, on_bad_rows="drop").report
    assert sort(tmp_path, frame=frame).report.rows_dropped == expected.rows_dropped
    (tmp_path / "reading.json").unlink()
    (tmp_path / "run-000005.safetensors").unlink()
    again = sort(tmp_path, frame=frame).report
    assert (again.rows_read, again.rows_dropped) == (expected.rows_read, expected.rows_dropped)


def test_finished_runs_are_known_without_reading(tmp_path):
    assert finished_runs(tmp_path) is None
    runs = sort(tmp_path)
    found = finished_runs(tmp_path)
    assert (found.n_runs, found.size, found.facts, found.report) == (
        runs.n_runs,
        runs.size,
        runs.facts,
        runs.report,
    )
    assert found.items.tolist() == runs.items.tolist()


def test_ratings_in_memory_become_runs_of_whole_users(tmp_path):
    ratings = Ratings.from_frame(FRAME)
    runs = sort_population(tmp_path, ratings, 10, lambda _: None)
    parts = runs.rows("")
    assert len(parts) > 1
    assert sum(part.n_users for part in parts) == ratings.n_users
    assert set().union(*(pairs(part, ratings.items) for part in parts)) == set(FRAME.rows())
    assert runs.report == ratings.report


def test_progress_counts_rows(tmp_path):
    seen = []
    source = FrameSource(FRAME, ColumnOptions())
    facts = {"rating_range": None, "catalogue": None, "bad": BadRows("error"), "ids": "given"}
    sort_table(tmp_path, source, **facts, rows_at_once=20, progress=seen.append)
    assert seen == [20, 40, 50]
