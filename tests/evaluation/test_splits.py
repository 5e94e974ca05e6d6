import numpy as np
import pytest
from scipy import stats

import dpals
from dpals.evaluation.metrics import rmse
from dpals.evaluation.splits import keep_entries, pairs, split_entries

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
    nothing = keep_entries(ratings, np.zeros(ratings.n_ratings, bool))
    assert nothing.n_ratings == 0
    assert nothing.n_users == ratings.n_users


@pytest.mark.parametrize("fractions", [(), (0.5,), (1.5, -0.5), (0.8, 0.1)])
def test_senseless_fractions_are_refused(ratings, fractions):
    with pytest.raises(ValueError, match="add up to 1"):
        split_entries(ratings, fractions)


def test_rmse_of_nothing_is_refused():
    with pytest.raises(ValueError, match="nothing to compare"):
        rmse([], [])
