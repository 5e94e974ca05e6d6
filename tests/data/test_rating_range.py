"""The rating range is declared and never inferred."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.data.tables import GOOD, write

from dpals import InputError, Ratings, read_ratings

BAD_ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "no range": ({"values": [1, 2]}, r"rating_range=\(lowest, highest\).*not inferred.*leak who is in it"),
    "range without ratings": (
        {"rating_range": (1, 5)},
        "there are no ratings, so rating_range has no meaning",
    ),
    "range upside down": ({"values": [1, 2], "rating_range": (5, 1)}, r"the lower one first, not \(5, 1\)"),
    "range not finite": ({"values": [1, 2], "rating_range": (0, float("inf"))}, "two finite numbers"),
    "range of one": ({"values": [1, 2], "rating_range": 5}, r"two numbers \(lowest, highest\), not 5"),
}


@pytest.mark.parametrize(("change", "message"), BAD_ARRAYS.values(), ids=list(BAD_ARRAYS))
def test_arrays_that_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Ratings.from_arrays(**({"users": [1, 2], "items": [1, 2]} | change))


def test_a_rating_column_of_a_file_needs_a_range(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"rating_range=\(lowest, highest\).*leak who is in it.*implicit=True"):
        read_ratings(write(tmp_path, GOOD))


def test_a_rating_column_of_a_frame_needs_a_range() -> None:
    with pytest.raises(InputError, match="rating_range"):
        Ratings.from_frame(pl.DataFrame({"user": [1], "item": [1], "rating": [1]}))
