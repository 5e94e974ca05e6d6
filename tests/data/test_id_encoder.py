"""Ids numbered in sorted order, and integers in text, each by itself."""

from pathlib import Path

import numpy as np
import pytest
from tests.data.tables import write

from dpals import InputError, Ratings, read_ratings


@pytest.mark.parametrize("n", [10, 1_200_000])
@pytest.mark.parametrize("spread", [1, 10**12])
def test_many_rows_against_numpy_unique(n: int, spread: int) -> None:
    rng = np.random.default_rng(0)
    users, items = rng.integers(-500, 500, n) * spread, rng.integers(0, 300, n)
    ratings = Ratings.from_arrays(users, items)
    pairs = np.unique(np.stack([users, items]), axis=1) if n < 100 else None
    np.testing.assert_array_equal(ratings.users, np.unique(users))
    np.testing.assert_array_equal(ratings.items, np.unique(items))
    if pairs is None:
        assert ratings.n_ratings == len(np.unique(users // spread * 1000 + items))
    else:
        rows = np.repeat(np.arange(ratings.n_users), np.diff(ratings.indptr))
        np.testing.assert_array_equal(ratings.users[rows], pairs[0])
        np.testing.assert_array_equal(ratings.items[ratings.indices], pairs[1])


def test_ids_that_are_declared_integers(tmp_path: Path) -> None:
    path = write(tmp_path, "user,item\n 20,5\n9223372036854775807,5\n-5,5\n")
    assert read_ratings(path, ids="integer").users.tolist() == [-5, 20, 2**63 - 1]


@pytest.mark.parametrize("odd", ["b", "007", "+7", "9223372036854775808", "18446744073709551615", "7.0", "\u0667"])
def test_each_id_is_an_integer_by_itself(odd: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"user,item\n{odd},5\n{odd},6\n{odd},7\n1,5\n")
    with pytest.raises(InputError, match=r"line 2, column 'user': .* is not a plain 64-bit integer"):
        read_ratings(path, ids="integer")
    dropped = read_ratings(path, ids="integer", on_bad_rows="drop")
    assert dropped.users.tolist() == [1]
    assert dropped.report.rows_dropped == {"user id that is not an integer": 3}
