"""A Parquet file written in pieces, read back by polars; and what happens when writing stops."""

import resource
import signal
import threading

import numpy as np
import polars as pl
import pytest

from dpals.model.parquet_writer import GrowingParquet


def test_tables_come_back_in_order(tmp_path):
    tables = [pl.DataFrame({"n": np.arange(start, start + 999), "text": ["é"] * 999}) for start in range(0, 9_990, 999)]
    with GrowingParquet(tmp_path / "all.parquet") as file:
        for table in tables:
            file.write(table)
    assert pl.read_parquet(tmp_path / "all.parquet").equals(pl.concat(tables))


def test_an_empty_table_keeps_its_columns(tmp_path):
    with GrowingParquet(tmp_path / "none.parquet") as file:
        file.write(pl.DataFrame(schema={"user": pl.String, "score": pl.Float32}))
    assert pl.read_parquet(tmp_path / "none.parquet").schema == {"user": pl.String, "score": pl.Float32}


@pytest.mark.parametrize("problem", [ValueError, KeyboardInterrupt])
def test_an_error_ends_the_other_thread(tmp_path, problem):
    before = threading.active_count()
    with pytest.raises(problem, match="mine"), GrowingParquet(tmp_path / "half.parquet") as file:  # noqa: PT012
        file.write(pl.DataFrame({"n": [1]}))
        raise problem("mine")
    assert threading.active_count() <= before


def test_a_table_of_another_kind_is_refused(tmp_path):
    with pytest.raises(ValueError, match="does not fit"), GrowingParquet(tmp_path / "odd.parquet") as file:  # noqa: PT012
        file.write(pl.DataFrame({"n": [1]}))
        file.write(pl.DataFrame({"m": ["x"]}))


def test_a_disk_that_is_full_is_reported(tmp_path):
    """The writer must not wait for ever for a thread that has ended."""
    old, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    rng = np.random.default_rng(0)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, old[1]))
        with pytest.raises(Exception, match="File too large"), GrowingParquet(tmp_path / "full.parquet") as file:  # noqa: PT012
            for _ in range(50):
                file.write(pl.DataFrame({"n": rng.random(200_000)}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
