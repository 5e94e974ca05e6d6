"""Errors of the libraries below, in one sentence; bugs keep their trace."""

import zlib

import polars as pl
import pytest
from safetensors import SafetensorError

from dpals.cli.problems import in_one_sentence


@pytest.mark.parametrize(
    "problem",
    [
        OSError(28, "No space left on device", "a.csv"),
        OSError("No space left on device (os error 28)"),
        pl.exceptions.ComputeError("parquet: underlying IO error: File too large (os error 27)"),
    ],
)
def test_a_full_disk(problem):
    assert in_one_sentence(problem).startswith("the disk is full")


@pytest.mark.parametrize(
    "problem", [pl.exceptions.ComputeError("odd\nmore"), SafetensorError("odd"), zlib.error("odd"), RuntimeError("odd")]
)
def test_errors_of_libraries(problem):
    assert in_one_sentence(problem) == "odd"


def test_memory_and_bugs():
    assert "does not fit in memory" in in_one_sentence(MemoryError())
    for bug in (TypeError("x"), KeyError("x"), AssertionError("x"), AttributeError("x")):
        assert in_one_sentence(bug) is None


def test_words_of_the_command():
    text = 'say rating_range=(lowest, highest), for example rating_range=(0.5, 5.0). on_bad_rows="drop"'
    assert in_one_sentence(ValueError(text)) == (
        "say --rating-range LOW HIGH, for example --rating-range 0.5 5.0. --on-bad-rows drop"
    )
    text = "Say which it is with item=... Columns found: 'a'"
    assert in_one_sentence(ValueError(text)) == "Say which it is with --item COLUMN. Columns found: 'a'"
