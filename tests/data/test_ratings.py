"""Ratings as an object: whose arrays they are, public facts, hashes of users."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tests.data.tables import as_dict, assert_same, columns, few_rows

from dpals import InputError, Ratings
from dpals.kernels.hashing import id_hashes


class TestTheObject:
    ratings = Ratings.from_arrays([1, 1, 2], ["a", "b", "a"], [1, 2, 3], timestamps=[1, 2, 3], rating_range=(1, 5))

    def test_arrays_of_the_caller_stay_their_own(self) -> None:
        users, values = np.array([2, 1], np.int32), np.array([1, 2], np.float32)
        ratings = Ratings.from_arrays(users, [1, 1], values, rating_range=(1, 5))
        users[:], values[:] = 7, 7
        assert as_dict(ratings) == {(2, 1): (1.0, None), (1, 1): (2.0, None)}
        matrix = ratings.to_csr()
        matrix.data[:] = 0
        matrix.indices[:] = 0
        assert as_dict(ratings) == {(2, 1): (1.0, None), (1, 1): (2.0, None)}

    def test_catalogue_of_the_caller_stays_their_own(self) -> None:
        catalogue = np.array([3, 1])
        ratings = Ratings.from_arrays([1], [1], catalogue=catalogue)
        catalogue[:] = 0
        assert ratings.items.tolist() == [3, 1]

    def test_public_facts(self) -> None:
        assert self.ratings.public_facts() == [
            "Every rating lies between 1 and 5: declared by the caller.",
            "The catalogue has 2 items: taken from the data and thereby declared public by the caller.",
        ]
        implicit = Ratings.from_arrays([1], ["a"], catalogue=["a"])
        assert implicit.public_facts() == ["The catalogue has 1 item: given by the caller."]


class TestUserHashes:
    def test_they_are_those_of_ids(self) -> None:
        ratings = Ratings.from_arrays(["b", "a", "b"], [1, 1, 2])
        np.testing.assert_array_equal(ratings.user_hashes(), id_hashes(np.array(["a", "b"])))

    @given(
        st.lists(st.lists(st.sampled_from([0, 0, 1, 2, 5]), min_size=4, max_size=4), min_size=1, max_size=6),
        st.randoms(use_true_random=False),
    )
    def test_rows_without_ids_are_told_apart_by_what_is_in_them(
        self, rows: list[list[int]], rng: random.Random
    ) -> None:
        order = rng.sample(range(len(rows)), len(rows))
        some = order[: max(1, len(order) // 2)]
        facts: dict[str, Any] = {"rating_range": (1, 5), "items": ["a", "b", "c", "d"]}
        everyone = Ratings.from_csr(csr_array(np.array(rows)), **facts).user_hashes()
        others = Ratings.from_csr(csr_array(np.array(rows)[some]), **facts).user_hashes()
        assert everyone[some].tolist() == others.tolist()
        assert len(set(everyone.tolist())) == len({tuple(row) for row in rows})


@given(table=few_rows(), data=st.data(), implicit=st.booleans())
def test_taken_users_have_all_their_ratings(table: list[tuple[Any, ...]], data: st.DataObject, implicit: bool) -> None:
    users, items, values, stamps = columns(table)
    rated: dict[str, Any] = {} if implicit else {"values": values, "rating_range": (0.5, 5)}
    ratings = Ratings.from_arrays(users, items, timestamps=stamps, **rated)
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=ratings.n_users, max_size=ratings.n_users)), bool)
    taken = ratings.take_users(chosen)
    wanted = ratings.users[chosen].tolist()
    assert taken.users.tolist() == wanted
    assert as_dict(taken) == {key: entry for key, entry in as_dict(ratings).items() if key[0] in wanted}
    assert np.array_equal(taken.items, ratings.items)

    start, stop = (data.draw(st.integers(0, ratings.n_users + 1)) for _ in range(2))
    inside = (start <= np.arange(ratings.n_users)) & (np.arange(ratings.n_users) < stop)
    assert_same(ratings.take_users(slice(start, stop)), ratings.take_users(inside))


def test_a_slice_of_users_has_no_step():
    ratings = Ratings.from_arrays([1, 2, 3], [5, 5, 6])
    with pytest.raises(InputError, match="has no step"):
        ratings.take_users(slice(None, None, 2))
