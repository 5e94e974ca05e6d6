"""Arrays that form a sparse matrix, checked and never changed."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.data.tables import GOOD, write

from dpals import InputError, Ratings, read_ratings


class TestTheObject:
    ratings = Ratings.from_arrays([1, 1, 2], ["a", "b", "a"], [1, 2, 3], timestamps=[1, 2, 3], rating_range=(1, 5))

    @pytest.mark.parametrize("field", ["indptr", "indices", "values", "timestamps", "users", "items"])
    def test_arrays_cannot_be_changed(self, field: str) -> None:
        array = getattr(self.ratings, field)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(self.ratings, field, array)

    @pytest.mark.parametrize(
        ("field", "value", "message"),
        [
            ("indices", np.array([1, 0, 0], np.int32), "strictly increase within each user"),
            ("indices", np.array([0, 0, 0], np.int32), "strictly increase within each user"),
            ("indices", np.array([0, 2, 0], np.int32), "between 0 and 1"),
            ("indices", np.array([0, 1, 0]), "indices must be int32 of length 3, not int64"),
            ("indptr", np.array([0, 2, 2]), "indptr must rise from 0"),
            ("indptr", np.array([0, 3]), "indptr must be int64 of length 3"),
            ("values", np.array([1, 2, 6], np.float32), "values must lie in the rating range"),
            ("values", np.array([1, 2, np.nan], np.float32), "values must lie in the rating range"),
            ("values", None, "values and rating_range go together"),
            ("users", np.array(["b", "b"]), "users must all be different"),
            ("items", np.array([4, 4]), "items must all be different"),
        ],
    )
    def test_constructor_refuses_what_is_not_a_matrix(self, field: str, value: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            dataclasses.replace(self.ratings, **{field: value})

    def test_users_without_ratings_are_allowed(self) -> None:
        indptr = np.array([0, 0, 2, 2, 3, 3])
        ratings = dataclasses.replace(self.ratings, indptr=indptr, users=np.arange(5))
        assert ratings.n_users == 5


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
