import numpy as np
import pytest

import dpals
from dpals.evaluation.metrics import rmse
from dpals.evaluation.splits import pairs, split_entries


@pytest.fixture(scope="module")
def split():
    return split_entries(dpals.simulate.movielens_like(5_000, 300, 40, seed=3))


def score(model, train, test):
    return rmse(model.predict(train, *pairs(test)), test.values)


def test_beats_the_user_mean_at_epsilon_one_and_improves_with_epsilon(split):
    train, _, test = split
    scores = [
        score(dpals.PrivateBiases(e, 1e-5, insecure_seed=1).fit(train), train, test) for e in (0.01, 0.1, 1.0, 20.0)
    ]
    means = np.bincount(np.repeat(np.arange(train.n_users), np.diff(train.indptr)), train.values)
    means = means / np.diff(train.indptr)
    user_mean = rmse(means[train.user_index(pairs(test)[0])], test.values)
    assert scores[3] < scores[2] < scores[1] < user_mean
    assert scores[2] < user_mean - 0.08
    assert scores[0] < user_mean + 0.04, "where nothing can be learned it stays near the user's mean"


def test_finds_the_biases_of_a_model_it_should_fit():
    rng = np.random.default_rng(5)
    n_users, n_items = 20_000, 30
    truth = rng.normal(0, 0.5, n_items)
    users, items = np.nonzero(rng.random((n_users, n_items)) < 0.5)
    values = np.clip(3.5 + truth[items] + rng.normal(0, 0.3, n_users)[users] + rng.normal(0, 0.3, len(users)), 0, 7)
    ratings = dpals.Ratings.from_arrays(users, items, values, rating_range=(0, 7))
    model = dpals.PrivateBiases(epsilon=20.0, delta=1e-5, insecure_seed=2).fit(ratings)
    np.testing.assert_allclose(
        model.model_.item_biases - model.model_.item_biases.mean(), truth - truth.mean(), atol=0.06
    )


def test_new_users_are_served_from_their_own_history(split):
    train, _, _ = split
    model = dpals.PrivateBiases(epsilon=5.0, delta=1e-5, insecure_seed=1).fit(train)
    fans = dpals.Ratings.from_arrays(
        ["new"] * 3, train.items[:3], [5.0] * 3, rating_range=(0.5, 5.0), catalogue=train.items
    )
    critics = dpals.Ratings.from_arrays(
        ["new"] * 3, train.items[:3], [0.5] * 3, rating_range=(0.5, 5.0), catalogue=train.items
    )
    items = train.items[10:20]
    high, low = (model.predict(history, ["new"] * 10, items) for history in (fans, critics))
    assert (high > low).all()
    assert (high <= 5.0).all()
    assert (low >= 0.5).all()


def test_the_seed_repeats_and_taints(split):
    train, _, _ = split
    first, second = (dpals.PrivateBiases(1.0, 1e-5, insecure_seed=4).fit(train) for _ in range(2))
    assert np.array_equal(first.model_.item_biases, second.model_.item_biases)
    assert not first.privacy.is_private
    fresh = dpals.PrivateBiases(1.0, 1e-5).fit(train)
    assert fresh.privacy.is_private
    assert not np.array_equal(fresh.model_.item_biases, first.model_.item_biases)


def test_the_statement_names_the_declared_facts(split):
    statement = str(dpals.PrivateBiases(1.0, 1e-5).fit(split[0]).privacy)
    assert "between 0.5 and 5: declared by the caller" in statement
    assert "300 items: given by the caller" in statement


def test_an_undeclared_catalogue_is_named_in_the_statement():
    ratings = dpals.Ratings.from_arrays([1, 2], ["a", "b"], [3.0, 4.0], rating_range=(1, 5))
    statement = str(dpals.PrivateBiases(1.0, 1e-5).fit(ratings).privacy)
    assert "taken from the data and thereby declared public" in statement


def test_one_user_constant_ratings_and_unrated_items_give_finite_results():
    ratings = dpals.Ratings.from_arrays([1], ["a"], [3.0], rating_range=(1, 5), catalogue=["a", "b"])
    model = dpals.PrivateBiases(0.1, 1e-5).fit(ratings)
    predictions = model.predict(ratings, [1, 1], ["a", "b"])
    assert np.isfinite(predictions).all()
    assert ((predictions >= 1) & (predictions <= 5)).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": float("nan")},
        {"delta": 0.0},
        {"delta": 1.0},
        {"steps": 0},
        {"bias_scale": -1.0},
    ],
)
def test_wrong_arguments_spend_nothing(split, wrong):
    ledger = dpals.Ledger()
    with pytest.raises(ValueError, match="must"):
        dpals.PrivateBiases(**wrong).fit(split[0], ledger=ledger)
    assert ledger.entries() == []


def test_wrong_data_spend_nothing(split):
    ledger = dpals.Ledger()
    implicit = dpals.Ratings.from_arrays([1, 2], [1, 2])
    with pytest.raises(dpals.InputError, match="implicit"):
        dpals.PrivateBiases().fit(implicit, ledger=ledger)
    with pytest.raises(dpals.InputError, match="Ratings"):
        dpals.PrivateBiases().fit(split[0].to_csr(), ledger=ledger)
    assert ledger.entries() == []
    model = dpals.PrivateBiases().fit(split[0])
    other = dpals.Ratings.from_arrays([1], [10**6], [1.0], rating_range=(0.5, 5))
    with pytest.raises(dpals.InputError, match="catalogue"):
        model.predict(other, [1], [10**6])


def test_spends_are_recorded_under_the_name_of_the_data(split):
    ledger = dpals.Ledger()
    ledger.declare("films", epsilon=1.5, delta=1e-5)
    dpals.PrivateBiases(1.0, 1e-5).fit(split[0], ledger=ledger, dataset="films")
    with pytest.raises(dpals.PrivacyBudgetExceeded):
        dpals.PrivateBiases(1.4, 1e-5).fit(split[0], ledger=ledger, dataset="films")
    assert ledger.spent("films") <= ledger.allowance("films")
