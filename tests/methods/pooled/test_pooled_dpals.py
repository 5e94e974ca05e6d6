"""PooledDPALS as users meet it: better than what came before, tame at any budget, clear about bad input."""

import re
from pathlib import Path

import numpy as np
import pytest

import dpals
from dpals.errors import InputError
from dpals.evaluation.metrics import rmse
from dpals.evaluation.splits import pairs, split_entries


@pytest.fixture(scope="module")
def parts():
    ratings = dpals.simulate.movielens_like(n_users=8000, n_items=800, mean_ratings=100, seed=5)
    return split_entries(ratings, seed=5)


def score(method, parts):
    train, _, test = parts
    return rmse(method.fit(train).predict(train, *pairs(test)), test.values)


def user_means(parts):
    train, _, test = parts
    means = np.bincount(train.rows, train.values, train.n_users) / np.maximum(np.diff(train.indptr), 1)
    return rmse(means[test.rows], test.values)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
def test_it_beats_the_other_private_methods_without_tuning(epsilon, parts):
    ours, biases = (
        np.mean([score(method(epsilon, insecure_seed=seed), parts) for seed in range(10)])
        for method in (dpals.PooledDPALS, dpals.PrivateBiases)
    )
    others = [dpals.ItemMean, dpals.DPALS, dpals.AdaDPALS, dpals.DPSVD, dpals.DPSGD]
    assert ours < min(score(method(epsilon, insecure_seed=1), parts) for method in others)
    assert ours < 1.001 * biases
    assert ours < user_means(parts)


def test_with_much_budget_it_comes_close_to_no_privacy(parts):
    reference = score(dpals.ALS(rank=16, steps=12, ridge=12.0), parts)
    assert score(dpals.PooledDPALS(20.0, insecure_seed=1), parts) < 1.03 * reference


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3])
def test_without_budget_it_falls_back_on_user_means_and_says_so(epsilon, parts):
    method = dpals.PooledDPALS(epsilon, insecure_seed=1)
    assert score(method, parts) == pytest.approx(user_means(parts), abs=0.01)
    assert "Nothing could be learned" in method.report_
    predictions = method.predict(parts[0], *pairs(parts[2]))
    assert np.isfinite(predictions).all()
    assert predictions.min() >= 0.5
    assert predictions.max() <= 5


def test_parameters_show_the_rank_that_was_chosen(parts):
    method = dpals.PooledDPALS(5.0, insecure_seed=1)
    assert method.get_params()["rank"] is None
    method.fit(parts[0])
    assert method.get_params()["rank"] == method.rank_ == method.model_.rank
    assert method.rank is None
    assert f"{method.rank_} factors" in method.report_


def test_rank_grows_with_the_budget(parts):
    ranks = [dpals.PooledDPALS(epsilon, steps=1, insecure_seed=1).fit(parts[0]).rank_ for epsilon in (0.1, 1, 10)]
    assert ranks == sorted(ranks)
    assert ranks[0] < ranks[2]


def test_rank_zero_is_a_model_of_biases(parts):
    method = dpals.PooledDPALS(1.0, rank=0, insecure_seed=1)
    assert score(method, parts) < score(dpals.ItemMean(1.0, insecure_seed=1), parts) - 0.02
    assert method.model_.rank == 0
    biases = dpals.PrivateBiases(1.0, insecure_seed=1).fit(parts[0])
    assert np.array_equal(method.model_.item_biases, biases.model_.item_biases)


def test_the_same_seeds_give_the_same_model(parts):
    first, second = (dpals.PooledDPALS(1.0, steps=2, insecure_seed=3).fit(parts[0]) for _ in range(2))
    assert np.array_equal(first.item_factors_, second.item_factors_)
    other = dpals.PooledDPALS(1.0, steps=2, insecure_seed=4).fit(parts[0])
    assert not np.array_equal(first.item_factors_, other.item_factors_)


def test_the_whole_budget_is_spent_and_no_more(parts):
    method = dpals.PooledDPALS(1.0, 1e-6, steps=3).fit(parts[0])
    assert method.privacy.epsilon == pytest.approx(1.0)
    assert method.privacy.epsilon <= 1.0
    budget = dpals.Budget(1.0, 1e-6)
    assert 0.999 * budget.cost < sum(release.cost for release in method.privacy.releases) <= budget.cost
    assert method.privacy.mu >= budget.mu, "costs depend on released weights: the whole budget counts"
    purposes = [release.purpose for release in method.privacy.releases]
    assert sum("right-hand sides" in purpose for purpose in purposes) == 4
    assert method.privacy.is_private


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rank": -1}, "rank"),
        ({"rank": 2.5}, "rank"),
        ({"steps": 0}, "steps"),
        ({"clip": -0.5}, "clip"),
        ({"clip": 0}, "clip"),
        ({"gram_share": 1.0}, "gram_share"),
        ({"weight_share": 0.999}, "leave something"),
        ({"weight_share": 0.98}, "leave something"),
        ({"gram_share": 0.995}, "leave something"),
        ({"cooccurrence_share": 0.97}, "leave something"),
        ({"epsilon": None}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
    ],
)
def test_bad_arguments_are_named_before_anything_is_spent(arguments, message, parts):
    ledger = dpals.Ledger()
    with pytest.raises(ValueError, match=message):
        dpals.PooledDPALS(**arguments).fit(parts[0], ledger=ledger)
    assert ledger.spent("ratings") == 0


def test_too_large_ranks_are_refused(parts):
    with pytest.raises(InputError, match="rank 801"):
        dpals.PooledDPALS(rank=801).fit(parts[0])


def test_one_rating_is_enough_to_fit():
    ratings = dpals.Ratings.from_arrays(["ann"], ["tea"], [4.0], rating_range=(1, 5))
    model = dpals.PooledDPALS(1.0).fit(ratings)
    assert 1 <= model.predict(ratings, ["ann"], ["tea"])[0] <= 5


def test_many_small_steps_do_not_run_away():
    """Each step is mostly noise here, and no multiple of it may build up."""
    ratings = dpals.simulate.movielens_like(n_users=1000, n_items=100, mean_ratings=25, seed=1)
    few, many = (dpals.PooledDPALS(1.0, 1e-6, rank=16, steps=steps, insecure_seed=1).fit(ratings) for steps in (10, 60))
    assert np.abs(many.item_factors_).max() < 3 * max(1, np.abs(few.item_factors_).max())


def bounds(method):
    """The bound of each release by its purpose, of the last round or step."""
    return {release.purpose.split(", ")[0]: release.sensitivity * release.step for release in method.privacy.releases}


def test_bounds_are_those_of_the_proof():
    """The column S of the table in docs/privacy.md, with the constants that stand below it."""
    text = Path(dpals.__file__).parents[2].joinpath("docs", "privacy.md").read_text()
    ratings = dpals.simulate.movielens_like(n_users=300, n_items=60, mean_ratings=25, seed=1)
    pairs = dpals.Ratings.from_arrays(ratings.users[ratings.rows], ratings.items[ratings.indices])
    of_ratings, of_implicit = map(
        float, re.search(r"k = ([\d.]+) for ratings and ([\d.]+) for implicit", text).groups()
    )
    rank, clip, h = 3, 0.5, 2.25
    for data, k in ((ratings, of_ratings), (pairs, of_implicit)):
        method = dpals.PooledDPALS(5.0, rank=rank, steps=1, clip=clip).fit(data)
        length = np.sqrt(rank / 2 + k**2)
        expected = {
            "popularity of the items": 1,
            "sum of user weights": 1,
            "item weights": 1,
            "Gram matrix of co-occurrence": np.ceil(3 * rank / 2),
            "co-occurrence of the items": 1,
            "Gram matrix of all users": length**2 / 2,
            "covariance of all users": 0.3 * np.sqrt(rank),
            "distances from the mean": 1,
            "spread of the ratings": 2,
            "squared weights of groups of items": 1,
            "fit of the users": 2,
            "Gram matrix of the histories": 2 * (np.ceil(3 * rank / 2) + 1),
            "histories of the users": np.sqrt((np.ceil(3 * rank / 2) + 1) * (rank + 1) / 2),
            "distance from the model": np.sqrt(2),
            "global mean": h * np.sqrt(2),
            "number of items per user": 1,
        }
        found = bounds(method)
        residual = found.pop("right-hand sides") / (clip * length)  # the typical one of ratings is learned
        assert residual == pytest.approx(1) if data is pairs else 0.3 < residual < 3
        assert len(found) == (15 if data is ratings else 9)
        for purpose, bound in found.items():
            assert bound == pytest.approx(expected[purpose], rel=1e-3), purpose
