"""The loops behind `release.sums` against dense numpy, in integers."""

import numpy as np
import pytest

from dpals.kernels.item_sums import add_symmetric, add_vectors, entries_by_item

N_USERS, N_ITEMS = 50, 9


@pytest.fixture
def rows():
    """A pattern with empty rows and an item that nobody has, as pointers and items, and as a table of booleans."""
    rng = np.random.default_rng(2)
    table = rng.random((N_USERS, N_ITEMS)) < 0.3
    table[:, 4] = table[7] = False
    indptr = np.r_[0, np.cumsum(table.sum(axis=1))]
    return indptr, np.nonzero(table)[1].astype(np.int32), table


@pytest.fixture
def numbers(rows):
    rng = np.random.default_rng(3)
    return rng.integers(-9, 10, len(rows[1]), np.int32), rng.integers(-9, 10, (N_USERS, 5), np.int32)


def dense(rows, coefficients):
    table = np.zeros((N_USERS, N_ITEMS), np.int64)
    table[rows[2]] = coefficients
    return table


def test_entries_are_ordered_by_item_and_then_by_row(rows):
    indptr, items, table = rows
    pointers, positions, users = entries_by_item(indptr, items, N_ITEMS)
    assert pointers.tolist() == [0, *np.cumsum(table.sum(axis=0))]
    assert positions.tolist() == np.argsort(items, kind="stable").tolist()
    assert users.tolist() == np.nonzero(table.T)[1].tolist()


@pytest.mark.parametrize("ranges", [[(0, 9)], [(0, 1), (1, 5), (5, 9)], [(0, 4), (4, 4), (4, 9)]])
def test_vectors_are_added_for_ranges_of_items(rows, numbers, ranges):
    coefficients, vectors = numbers
    sums = np.ones((N_ITEMS, 5), np.int64)
    for first, stop in ranges:
        before = sums.copy()
        add_vectors(sums, *rows[:2], coefficients, vectors, first, stop)
        others = np.r_[0:first, stop:N_ITEMS]
        assert np.array_equal(sums[others], before[others])
    assert np.array_equal(sums, 1 + dense(rows, coefficients).T @ vectors)


def test_only_some_of_the_users_are_added(rows, numbers):
    indptr, items, _ = rows
    coefficients, vectors = numbers
    sums = np.zeros((N_ITEMS, 5), np.int64)
    add_vectors(sums, indptr[10:31], items, coefficients, vectors[10:30], 0, N_ITEMS)
    assert np.array_equal(sums, dense(rows, coefficients)[10:30].T @ vectors[10:30])


@pytest.mark.parametrize("size", [1, 7, 40, 10_000])
def test_symmetric_products_of_any_ranges_add_up(rows, numbers, size):
    """The items at the ends of a range go to `ends`, all others to the sums."""
    coefficients, vectors = numbers
    pointers, positions, users = entries_by_item(*rows[:2], N_ITEMS)
    sums = np.zeros((N_ITEMS, 15), np.int64)
    for first in range(0, len(users), size):
        last = min(first + size, len(users))
        cut = np.searchsorted(pointers, [first, last - 1], side="right") - 1
        ends = np.zeros((2, 15), np.int64)
        entries = first, positions[first:last], users[first:last]
        add_symmetric(sums, ends, cut, pointers, *entries, coefficients, vectors)
        np.add.at(sums, cut, ends)
    expected = np.einsum("ij,ik,il->jkl", dense(rows, coefficients), vectors, vectors)
    assert np.array_equal(sums, expected[:, *np.triu_indices(5)])
