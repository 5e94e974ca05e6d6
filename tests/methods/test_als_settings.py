"""What ALS chooses where the caller gives no ridge, and that it suits ratings of any scale and shape."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from tests.methods.every_method import data
from tests.methods.test_blocks import InBlocks

import dpals
from dpals.evaluation.metrics import recall_at_k, rmse
from dpals.evaluation.splits import pairs, split_entries
from dpals.methods import als
from dpals.methods.als_settings import _SPLIT_SEED

CHOSEN = ("rank_", "ridge_", "bias_ridge_")


def ratings_of(n_users, n_items, share, noise, *, taste=1.0, seed=0):
    """From -10 to 10: biases, three tastes and noise."""
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((n_users, n_items)) < share)
    biases = rng.normal(size=n_users)[users] + rng.normal(size=n_items)[items]
    tastes = np.einsum("ek,ek->e", rng.normal(size=(n_users, 3))[users], rng.normal(size=(n_items, 3))[items])
    values = biases + taste * tastes + noise * rng.normal(size=len(users))
    return dpals.Ratings.from_arrays(users, items, np.clip(values, -10, 10), rating_range=(-10, 10))


@pytest.fixture(scope="module")
def noisy():
    return ratings_of(600, 50, 0.3, noise=2.0)


def scaled(ratings, factor, shift=0.0):
    low, high = ratings.rating_range
    values = (ratings.values.astype(np.float64) * factor + shift).astype(np.float32)
    limits = tuple(float(np.float32(limit * factor + shift)) for limit in (low, high))
    return replace(ratings, values=values, rating_range=limits)


def predictions(method, ratings, known=None):
    known = ratings if known is None else known
    users, items = np.repeat(known.users, known.n_items), np.tile(known.items, known.n_users)
    return method.fit(ratings).predict(known, users, items)


def score(method, train, test):
    return rmse(method.fit(train).predict(train, *pairs(test)), test.values)


@pytest.mark.parametrize("n_blocks", [None, 3])
@pytest.mark.parametrize("factor", [2.0, 0.25, 2.0**20, 2.0**-21])
def test_ratings_times_a_power_of_two_give_the_same_predictions_to_the_last_bit(noisy, factor, n_blocks):
    found = {}
    for ratings in (noisy, scaled(noisy, factor)):
        whole = ratings if n_blocks is None else InBlocks(ratings, public=n_blocks)
        found[ratings.rating_range] = predictions(dpals.ALS(steps=3), whole, ratings)
    before, after = found.values()
    assert np.array_equal(before * np.float32(factor), after)


@pytest.mark.parametrize("method", [dpals.ALS(), dpals.StagewiseALS()], ids=lambda method: type(method).__name__)
@pytest.mark.parametrize(("factor", "shift"), [(3.0, 0.0), (1.0, 100.0), (0.1, 0.5), (50_000.0, 500_000.0)])
def test_other_factors_and_shifts_make_no_difference_but_for_rounding(noisy, method, factor, shift):
    before = predictions(method, noisy)
    after = predictions(method, scaled(noisy, factor, shift))
    np.testing.assert_allclose((after - shift) / factor, before, atol=1e-3 * np.ptp(before))


@pytest.mark.parametrize("noise", [0.3, 2.0, 4.0])
@pytest.mark.parametrize("share", [0.05, 0.4])
def test_the_default_is_about_as_good_as_the_best_of_many_ridges(noise, share):
    train, test = split_entries(ratings_of(1500, 100, share, noise), (0.8, 0.2))
    default = score(dpals.ALS(), train, test)
    grid = itertools.product([8, 32], np.geomspace(1, 300, 8), [2.0, 10.0])
    best = min(score(dpals.ALS(rank=rank, ridge=r, bias_ridge=b), train, test) for rank, r, b in grid)
    assert default < 1.02 * best


def test_without_tastes_it_is_as_good_as_biases_and_with_them_better():
    for taste, largest in ((0.0, 1.01), (1.0, 0.95)):
        train, test = split_entries(ratings_of(1000, 60, 0.3, noise=2.0, taste=taste), (0.8, 0.2))
        assert score(dpals.ALS(), train, test) < largest * score(dpals.ALS(rank=1, ridge=1e6), train, test)


def test_less_noise_means_less_ridge_and_a_low_rank_is_found():
    clean, noisy = (dpals.ALS().fit(ratings_of(1000, 60, 0.4, noise)) for noise in (0.1, 4.0))
    assert clean.ridge_ < noisy.ridge_ / 4
    assert 3 <= clean.rank_ <= 11


def test_what_is_given_is_kept(noisy, monkeypatch):
    method = dpals.ALS(rank=7, bias_ridge=3.5).fit(noisy)
    assert (method.rank_, method.bias_ridge_) == (7, 3.5)
    assert dpals.ALS(biases=False).fit(noisy).bias_ridge_ is None
    assert method.get_params()["ridge"] is None
    monkeypatch.delattr(als, "choose")  # with a ridge nothing is chosen
    method = dpals.ALS(ridge=3.0, steps=2).fit(noisy)
    assert [getattr(method, name) for name in CHOSEN] == [32, 3.0, 5.0]
    method = dpals.ALS.from_paper("ml-10m", rank=4, steps=2).fit(noisy)
    assert [getattr(method, name) for name in CHOSEN] == [4, 70.0, None]


@pytest.fixture(scope="module")
def visits():
    """Most of what a user has is of one of 30 themes, as in a large catalogue."""
    rng = np.random.default_rng(3)
    users = np.repeat(np.arange(1500), 12)
    themes = np.where(rng.random(len(users)) < 0.8, users % 30, rng.integers(0, 30, len(users)))
    return dpals.Ratings.from_arrays(users, themes * 20 + rng.integers(0, 20, len(users)))


def test_lists_are_about_as_good_as_with_the_best_of_many_settings(visits):
    train, test = split_entries(visits, (0.8, 0.2))

    def found(method):
        return recall_at_k(method.fit(train).recommend(train, k=20)[0], test)

    grid = itertools.product((0.3, 1.0, 3.0, 10.0), (0.003, 0.03, 0.3))
    best = max(found(dpals.ALS(ridge=ridge, unseen_weight=weight)) for ridge, weight in grid)
    assert found(dpals.ALS()) > 0.95 * best
    assert found(dpals.ALS(ridge=12.0)) < 0.8 * best, "the setting to begin with"


def test_what_is_given_for_implicit_feedback_is_kept(visits, monkeypatch):
    method = dpals.ALS(steps=1, unseen_weight=0.5, rank=4).fit(visits)
    assert (method.rank_, method.unseen_weight_, method.bias_ridge_) == (4, 0.5, None)
    monkeypatch.delattr(als, "choose_for_lists")  # with a ridge nothing is chosen
    method = dpals.ALS(steps=1, ridge=3.0).fit(visits)
    assert (method.rank_, method.ridge_, method.unseen_weight_) == (64, 3.0, 0.1)


def test_the_choice_for_lists_is_the_same_for_users_in_blocks(visits):
    in_memory, in_blocks = dpals.ALS(rank=8).fit(visits), dpals.ALS(rank=8).fit(InBlocks(visits, public=5))
    assert (in_memory.ridge_, in_memory.unseen_weight_) == (in_blocks.ridge_, in_blocks.unseen_weight_)


@pytest.mark.parametrize("settings", [{}, {"biases": False}, {"rank": 3}], ids=str)
def test_the_choice_is_the_same_for_users_in_blocks(noisy, settings):
    in_memory, in_blocks = dpals.ALS(**settings).fit(noisy), dpals.ALS(**settings).fit(InBlocks(noisy, public=5))
    assert in_memory.rank_ == in_blocks.rank_
    assert in_memory.bias_ridge_ == in_blocks.bias_ridge_
    assert in_memory.ridge_ == pytest.approx(in_blocks.ridge_, rel=1e-4)


def test_ratings_that_the_caller_has_split_are_split_once_more():
    """The same seed would leave nothing to hold out."""
    for seed in range(5):
        train = split_entries(data(), (0.8, 0.2), seed)[0]
        assert split_entries(train, (0.9, 0.1), _SPLIT_SEED)[1].n_ratings > 0.05 * train.n_ratings


ODD = {
    "one rating": ([1], [1], [0.5]),
    "two ratings": ([1, 2], [1, 1], [0.0, 1.0]),
    "one item": (range(200), [0] * 200, np.linspace(0, 1, 200)),
    "one user": ([0] * 200, range(200), np.linspace(0, 1, 200)),
    "one rating per user": (range(300), np.arange(300) % 7, np.arange(300) % 5 / 4),
    "constant": (np.arange(300) // 10, np.arange(300) % 10, [0.1] * 300),
}


@pytest.mark.parametrize("method", [dpals.ALS(), dpals.StagewiseALS()], ids=lambda method: type(method).__name__)
@pytest.mark.parametrize(("users", "items", "values"), ODD.values(), ids=ODD)
@pytest.mark.parametrize("factor", [1.0, 1e6])
def test_odd_data_give_predictions_within_what_was_seen(method, users, items, values, factor):
    values = factor * np.asarray(values)
    ratings = dpals.Ratings.from_arrays(users, items, values, rating_range=(0, factor), catalogue=range(200))
    found = predictions(method, ratings)
    assert found.min() >= values.min() - 1e-6 * factor
    assert found.max() <= values.max() + 1e-6 * factor
    if not method.in_memory_only:
        np.testing.assert_allclose(predictions(method, InBlocks(ratings, public=2), ratings), found, atol=1e-3 * factor)
