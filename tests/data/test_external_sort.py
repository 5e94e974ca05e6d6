"""Tables that come out merged, against one sort of everything."""

import os
import resource
import signal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpals.data.external_sort import ExternalSort


@settings(max_examples=50)
@given(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=8), st.integers(1, 10))
def test_merged_tables_are_one_sorted_table(tables, rows_at_once):
    """Users in order, each in one part only, and their rows in the order in which they were added."""
    frames = [pl.DataFrame({"user": users, "table": [at] * len(users)}) for at, users in enumerate(tables)]
    frames = [frame.with_columns(pl.all().cast(pl.Int64), row=pl.int_range(pl.len())) for frame in frames]
    with ExternalSort(None, rows_at_once) as runs:
        for frame in frames:
            runs.add(frame, pl.Int64)
        assert runs.n_rows == sum(map(len, tables))
        parts = [part.rows() for part in runs.merged(pl.Int64)]
    expected = sorted((row for frame in frames for row in frame.rows()), key=lambda row: row[0])
    assert [row for part in parts for row in part] == expected
    owners = [{user for user, _, _ in part} for part in parts]
    assert all(owners)
    assert sum(map(len, owners)) == len(set().union(*owners))


def test_what_is_put_aside_has_no_name(tmp_path):
    """So nobody else can open it, and nothing is left where the process is killed."""
    with ExternalSort(tmp_path, 2) as runs:
        for start in range(4):
            runs.add(pl.DataFrame({"user": np.arange(start, start + 3)}), pl.Int64)
        kept = os.fstat(runs._file.fileno())
        assert kept.st_size > 0
        assert kept.st_nlink == 0
        assert os.listdir(tmp_path) == []
        assert sum(part.height for part in runs.merged(pl.Int64)) == 12
    assert runs._file.closed


def add_too_much(runs):
    for seed in range(9):
        users = np.random.default_rng(seed).integers(0, 1 << 60, 2_000)
        runs.add(pl.DataFrame({"user": users}), pl.Int64)


def test_a_full_disk_is_said_and_ends_the_block(tmp_path):
    old, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    said = pytest.raises(OSError, match=r"cannot be written to .*File too large.*Free some space")
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, old[1]))
        with said, ExternalSort(tmp_path, 2_000) as runs:
            add_too_much(runs)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert runs._file.closed
