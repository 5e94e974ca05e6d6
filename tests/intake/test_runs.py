"""Tables that come out merged, against one sort of everything."""

import os

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpals.intake.runs import Runs


@settings(max_examples=50)
@given(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=8), st.integers(1, 10))
def test_merged_tables_are_one_sorted_table(tables, rows_at_once):
    """Users in order, each in one part only, and their rows in the order in which they were added."""
    frames = [pl.DataFrame({"user": users, "table": [at] * len(users)}) for at, users in enumerate(tables)]
    frames = [frame.with_columns(pl.all().cast(pl.Int64), row=pl.int_range(pl.len())) for frame in frames]
    with Runs(None, rows_at_once) as runs:
        for frame in frames:
            runs.add(frame, pl.Int64)
        assert runs.n_rows == sum(map(len, tables))
        parts = [part.rows() for part in runs.merged(pl.Int64)]
    expected = sorted((row for frame in frames for row in frame.rows()), key=lambda row: row[0])
    assert [row for part in parts for row in part] == expected
    owners = [{user for user, _, _ in part} for part in parts]
    assert all(owners)
    assert sum(map(len, owners)) == len(set().union(*owners))


def test_files_are_gone_after_an_interruption(tmp_path):
    with pytest.raises(KeyboardInterrupt), Runs(tmp_path, 2) as runs:  # noqa: PT012
        for start in range(4):
            runs.add(pl.DataFrame({"user": np.arange(start, start + 3)}), pl.Int64)
        assert len(os.listdir(tmp_path)) == 1
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []
