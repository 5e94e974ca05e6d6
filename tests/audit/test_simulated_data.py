"""Simulated users are as odd as the audit needs them."""

import numpy as np
import pytest

import dpals
from dpals.audit.simulated_data import CATALOGUE_SIZES, accepts_ratings, four_users, odd_users, smallest_catalogue


def test_odd_users_have_many_few_extreme_and_repeated_ratings():
    rows = odd_users(40, 40, implicit=False)
    counts = np.bincount(rows.users)
    assert counts.min() <= 2
    assert counts.max() > 30
    pairs = set(zip(rows.users.tolist(), rows.items.tolist(), strict=True))
    assert len(pairs) < len(rows.users)
    for extreme in (0.5, 5.0):
        assert len(np.unique(rows.users[rows.values == extreme])) == 1
    assert odd_users(40, 40, implicit=True).values is None


def test_names_are_in_the_order_of_numbers():
    rows = odd_users(12, 40, implicit=False)
    named, numbered = rows.ratings(with_names=True), rows.ratings()
    assert np.array_equal(named.indices, numbered.indices)
    assert np.array_equal(named.indptr, numbered.indptr)


def test_without_any_of_four_users_everything_looks_different():
    rows = four_users(40, implicit=False)
    whole = rows.ratings()
    for user in range(4):
        values = rows.ratings(rows.users != user).values
        assert np.median(values) != np.median(whole.values)
        assert values.mean() != whole.values.mean()


def test_methods_are_given_data_that_they_accept():
    assert accepts_ratings(dpals.ItemMean(1.0))
    assert not accepts_ratings(dpals.Popularity(1.0))
    size = smallest_catalogue(
        dpals.DPALS(1.0, rank=60, frequent_fraction=1.0), lambda n: four_users(n, False).ratings()
    )
    assert size == CATALOGUE_SIZES[1]
    with pytest.raises(dpals.InputError):
        smallest_catalogue(dpals.Popularity(1.0), lambda n: four_users(n, False).ratings())
