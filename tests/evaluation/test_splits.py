import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.sparse import csr_array

import dpals
from dpals.evaluation.splits import (
    keep_items,
    liked,
    pairs,
    split_entries,
    split_users,
    top_items,
)

N_USERS, N_ITEMS = 300, 80


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(2)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < 0.4)
    values = rng.integers(1, 11, len(users)) / 2
    times = np.arange(len(users))
    return dpals.Ratings.from_arrays(users, items, values, timestamps=times, rating_range=(0.5, 5.0))


def entries(ratings):
    users, items = pairs(ratings)
    return set(zip(users.tolist(), items.tolist(), ratings.values.tolist(), ratings.timestamps.tolist(), strict=True))


@pytest.mark.parametrize("fractions", [(0.8, 0.1, 0.1), (0.98, 0.01, 0.01), (0.5, 0.5), (1.0,), (0.0, 1.0)])
def test_every_rating_is_in_one_part_of_about_the_right_size(ratings, fractions):
    parts = split_entries(ratings, fractions, seed=3)
    assert set.union(*map(entries, parts)) == entries(ratings)
    assert sum(part.n_ratings for part in parts) == ratings.n_ratings
    for part, fraction in zip(parts, fractions, strict=True):
        assert stats.binomtest(part.n_ratings, ratings.n_ratings, fraction).pvalue > 1e-4
        assert np.array_equal(part.users, ratings.users)
        assert np.array_equal(part.items, ratings.items)


def test_seeds_repeat_and_differ(ratings):
    test, again, other = (split_entries(ratings, seed=seed)[2] for seed in (1, 1, 2))
    assert entries(test) == entries(again)
    overlap = len(entries(test) & entries(other)) / test.n_ratings
    assert overlap == pytest.approx(0.1, abs=0.05), "another seed gives an independent split"


@pytest.mark.parametrize("as_text", [False, True])
def test_one_user_does_not_change_the_split_of_the_others(ratings, as_text):
    users, items = pairs(ratings)
    users = np.array([f"user {user}" for user in users]) if as_text else users

    def test_part(keep):
        columns = (users[keep], items[keep], ratings.values[keep])
        times = ratings.timestamps[keep]
        return entries(split_entries(dpals.Ratings.from_arrays(*columns, timestamps=times, rating_range=(0.5, 5)))[2])

    first = users == users[0]
    assert test_part(~first) == {entry for entry in test_part(users == users) if entry[0] != users[0]}


def test_no_user_or_item_falls_into_one_part_more_than_by_chance(ratings):
    test = split_entries(ratings, (0.5, 0.5), seed=5)[1]
    by_user = np.diff(test.indptr) - np.diff(ratings.indptr) / 2
    by_item = np.bincount(test.indices, minlength=N_ITEMS) - np.bincount(ratings.indices, minlength=N_ITEMS) / 2
    assert (by_user**2).sum() == pytest.approx(ratings.n_ratings / 4, rel=0.3)
    assert (by_item**2).sum() == pytest.approx(ratings.n_ratings / 4, rel=0.5)


def test_nothing_kept_is_an_empty_part(ratings):
    nothing = ratings.keep(np.zeros(ratings.n_ratings, bool))
    assert nothing.n_ratings == 0
    assert nothing.n_users == ratings.n_users


@pytest.mark.parametrize("fractions", [(), (0.5,), (1.5, -0.5), (0.8, 0.1)])
def test_senseless_fractions_are_refused(ratings, fractions):
    with pytest.raises(ValueError, match="add up to 1"):
        split_entries(ratings, fractions)


def parts_of(split):
    return split.train, split.validation.history, split.validation.target, split.test.history, split.test.target


def test_users_are_split_and_the_held_out_ones_split_again(ratings):
    split = split_users(ratings, held_out=101, seed=4)
    parts = parts_of(split)
    assert set.union(*map(entries, parts)) == entries(ratings)
    assert sum(part.n_ratings for part in parts) == ratings.n_ratings
    users = [set(part.users.tolist()) for part in (split.train, split.validation.history, split.test.history)]
    assert [len(group) for group in users] == [N_USERS - 101, 50, 51]
    assert set.union(*users) == set(ratings.users.tolist())
    for part in (split.validation, split.test):
        assert np.array_equal(part.history.users, part.target.users)
        size = np.diff(part.history.indptr) + np.diff(part.target.indptr)
        assert np.diff(part.target.indptr).tolist() == [n // 5 for n in size.tolist()], "a fifth, rounded down"
    assert all(np.array_equal(part.items, ratings.items) for part in parts)


def test_any_user_and_any_entry_may_be_held_out():
    full = dpals.Ratings.from_arrays(*np.divmod(np.arange(400 * 10), 10))
    held_out, targets = np.zeros(400), np.zeros(10)
    for seed in range(60):
        test = split_users(full, 80, validation_share=0, seed=seed).test
        held_out[test.history.users] += 1
        targets += np.bincount(test.target.indices, minlength=10)
    assert stats.chisquare(held_out).pvalue > 1e-4
    assert stats.chisquare(targets).pvalue > 1e-4
    assert split_users(full, 80, validation_share=0).validation.history.n_users == 0


def test_a_seed_repeats_the_split_of_users_and_another_does_not(ratings):
    first, again, other = (split_users(ratings, 100, seed=seed) for seed in (1, 1, 2))
    assert [entries(part) for part in parts_of(first)] == [entries(part) for part in parts_of(again)]
    common = np.isin(first.test.history.users, other.test.history.users).mean()
    assert common == pytest.approx(50 / N_USERS, abs=0.2)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (0.29, 29), (0.5, 50), (1.0, 100)])
def test_target_share_is_met_despite_rounding(share, expected):
    full = dpals.Ratings.from_arrays(*np.divmod(np.arange(3 * 100), 100))
    target = split_users(full, 2, target_share=share).test.target
    assert np.diff(target.indptr).tolist() == [expected]


def test_train_items_only_leaves_out_items_that_nobody_trains_on():
    users, items = np.divmod(np.arange(30 * 20), 20)
    held_out = split_users(dpals.Ratings.from_arrays(users, items), 10, seed=6).test.history.users
    only_there = (items == 7) & ~np.isin(users, held_out)
    gappy = dpals.Ratings.from_arrays(users[~only_there], items[~only_there], catalogue=np.arange(25))
    split = split_users(gappy, 10, train_items_only=True, seed=6)
    for part in parts_of(split):
        assert part.items.tolist() == [item for item in range(20) if item != 7]
        assert not part.catalogue_declared
    assert np.array_equal(split.test.history.users, held_out)
    assert np.diff(split.test.target.indptr).tolist() == [19 // 5] * 5, "split after the items are gone"


@pytest.mark.parametrize("held_out", [-1, N_USERS, N_USERS + 1])
def test_more_held_out_users_than_there_are_is_refused(ratings, held_out):
    with pytest.raises(dpals.InputError, match=f"there are {N_USERS}"):
        split_users(ratings, held_out)


@pytest.mark.parametrize("shares", [{"target_share": 1.2}, {"validation_share": -0.1}])
def test_senseless_shares_are_refused(ratings, shares):
    with pytest.raises(ValueError, match="between 0 and 1"):
        split_users(ratings, 10, **shares)


def test_liked_keeps_high_ratings_of_users_with_enough_of_them(ratings):
    table = ratings.to_csr().toarray()
    high = table >= 4.5
    kept = liked(ratings, threshold=4.5, min_items=7)
    expected = high[high.sum(axis=1) >= 7]
    assert 0 < len(expected) < N_USERS, "the test needs users on both sides"
    assert kept.is_implicit
    assert kept.rating_range is None
    assert np.array_equal(kept.to_csr().toarray(), expected)
    assert kept.users.tolist() == np.flatnonzero(high.sum(axis=1) >= 7).tolist()
    assert np.array_equal(kept.items, ratings.items)
    assert set(kept.timestamps.tolist()) <= set(ratings.timestamps.tolist())


def test_liked_refuses_what_has_no_ratings_or_cannot_be_reached(ratings):
    with pytest.raises(dpals.InputError, match="implicit feedback already"):
        liked(liked(ratings))
    with pytest.raises(dpals.InputError, match="no rating reaches 6"):
        liked(ratings, threshold=6)


@pytest.mark.parametrize("n", [1, 3, N_ITEMS])
def test_top_items_are_those_with_the_most_ratings(ratings, n):
    users, items = pairs(ratings)
    rare = dpals.Ratings.from_arrays(users[items % 3 == 0], items[items % 3 == 0], catalogue=np.arange(N_ITEMS))
    matrix = rare.to_csr().toarray()
    by_count = sorted(range(N_ITEMS), key=lambda item: (-matrix[:, item].sum(), item))
    chosen = sorted(by_count[:n])
    best = top_items(rare, n)
    assert best.items.tolist() == chosen
    expected = matrix[:, chosen]
    assert np.array_equal(best.to_csr().toarray(), expected[expected.any(axis=1)])
    assert best.users.tolist() == rare.users[expected.any(axis=1)].tolist()


def test_top_items_says_that_the_catalogue_comes_from_the_data(ratings):
    declared = dpals.Ratings.from_arrays([1, 2], [5, 6], catalogue=[5, 6, 7])
    assert "given" in declared.public_facts()[0]
    assert "taken from the data" in top_items(declared, 2).public_facts()[0]
    with pytest.raises(dpals.InputError, match="between 1 and the number of items"):
        top_items(ratings, N_ITEMS + 1)


@given(st.integers(0, 2**32), st.integers(0, 6), st.integers(0, 6))
def test_keeping_users_and_items_is_choosing_rows_and_columns(seed, n_users, n_items):
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((n_users, n_items)) < 0.4, rng.integers(1, 6, (n_users, n_items)), 0)
    ratings = dpals.Ratings.from_csr(csr_array(dense), rating_range=(1, 5))
    some_users, some_items = rng.random(n_users) < 0.5, rng.random(n_items) < 0.5
    kept = keep_items(ratings.take_users(some_users), some_items)
    assert np.array_equal(kept.to_csr().toarray(), dense[some_users][:, some_items])
    assert kept.users.tolist() == np.flatnonzero(some_users).tolist()
    assert kept.items.tolist() == np.flatnonzero(some_items).tolist()
