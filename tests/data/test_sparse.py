"""Ratings from sparse matrices."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import bsr_array, coo_array, csr_array
from tests.data.tables import as_dict

from dpals import InputError, Ratings


def test_round_trip() -> None:
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((30, 20)) < 0.2, rng.integers(1, 6, (30, 20)), 0)
    ratings = Ratings.from_csr(csr_array(dense), rating_range=(1, 5))
    np.testing.assert_array_equal(ratings.to_csr().toarray(), dense)
    np.testing.assert_array_equal(ratings.users, np.arange(30))
    assert ratings.catalogue_declared


def test_stored_zeros_are_ratings() -> None:
    matrix = csr_array((np.array([0.0, 2.0]), np.array([1, 0]), np.array([0, 1, 2])), shape=(2, 2))
    ratings = Ratings.from_csr(matrix, rating_range=(0, 5))
    assert as_dict(ratings) == {(0, 1): (0.0, None), (1, 0): (2.0, None)}


def test_unsorted_and_repeated_entries() -> None:
    matrix = coo_array(([3.0, 1.0, 4.0, 5.0], ([0, 0, 0, 1], [2, 0, 2, 1])), shape=(3, 3))
    ratings = Ratings.from_csr(matrix, users=["z", "b", "a"], items=[7, 5, 6], rating_range=(1, 5))
    assert as_dict(ratings) == {("z", 6): (4.0, None), ("z", 7): (1.0, None), ("b", 5): (5.0, None)}
    assert ratings.users.tolist() == ["z", "b", "a"]
    assert ratings.report.duplicates_replaced == 1
    assert ratings.user_index(["a", "b"]).tolist() == [2, 1]
    assert matrix.data.tolist() == [3.0, 1.0, 4.0, 5.0]


def test_implicit_keeps_the_pattern() -> None:
    assert Ratings.from_csr(csr_array([[0, 9], [1, 0]]), implicit=True).to_csr().toarray().tolist() == [
        [0, 1],
        [1, 0],
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "rating_range"),
        ({"rating_range": (1, 5)}, r"matrix\[1, 0\] is 9, outside the declared rating_range 1 to 5"),
        ({"rating_range": (1, 9), "users": ["a"]}, r"users has 1 ids, but the matrix \(2, 2\) needs 2"),
        ({"rating_range": (1, 9), "items": [3, 3]}, "'items': the id 3 is there more than once"),
    ],
)
def test_errors(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Ratings.from_csr(csr_array([[0, 2], [9, 0]]), **arguments)


def test_blocks_are_refused_because_they_store_zeros_of_others() -> None:
    blocks = bsr_array(np.diag([5.0, 4, 3, 2]), blocksize=(2, 2))
    with pytest.raises(InputError, match="BSR matrix stores zeros for whole blocks of users"):
        Ratings.from_csr(blocks, implicit=True)


def test_dense_is_refused() -> None:
    with pytest.raises(InputError, match="expected a SciPy sparse matrix of users by items, not ndarray"):
        Ratings.from_csr(np.eye(2), rating_range=(1, 5))
