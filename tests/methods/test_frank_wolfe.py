"""Frank-Wolfe against the textbook on dense matrices."""

import numpy as np
import pytest

import dpals
from dpals.evaluation.metrics import rmse
from dpals.evaluation.splits import pairs

PLAIN = {"frequent_fraction": 1.0, "centre": False, "user_shrinkage": None, "row_clip": 1e6}


@pytest.fixture(scope="module")
def task():
    return dpals.simulate.paper_synthetic(3_000, n_items=400, rank=3, seed=2)


def test_without_noise_it_is_frank_wolfe_on_the_whole_matrix(task):
    train = task.train
    known = train.to_csr().toarray()
    mask = known != 0
    for pace, steps in (("equal", 4), ("falling", 3)):
        method = dpals.DPFrankWolfe(None, steps=steps, radius=5.0, pace=pace, **PLAIN).fit(train)
        guess, radius = np.zeros(known.shape), None
        for t in range(steps):
            left, values, right = np.linalg.svd(mask * (guess - known), full_matrices=False)
            radius = 5.0 * values[0] if radius is None else radius
            share = 1 / steps if pace == "equal" else 2 / (t + 2)
            guess = (1 - share) * guess - share * radius * np.outer(left[:, 0], right[0])
        users, items = pairs(task.test)
        rows, columns = train.user_index(users), train.item_index(items)
        np.testing.assert_allclose(
            method.predict(train, users, items), np.clip(guess[rows, columns], -10, 10), atol=2e-3
        )
        assert method.model_.privacy is None


@pytest.mark.parametrize("search", ["power", "covariance"])
def test_with_much_budget_the_directions_are_singular_vectors(task, search):
    settings = {**PLAIN, "row_clip": 30.0, "steps": 2, "radius": 5.0}
    exact = dpals.DPFrankWolfe(None, **settings).fit(task.train)
    noisy = dpals.DPFrankWolfe(
        2000.0, search=search, power_steps=12, product_clip=1.0, insecure_seed=1, **settings
    ).fit(task.train)
    cosine = abs(exact.item_factors_[:, 0] @ noisy.item_factors_[:, 0])
    assert cosine > (0.999 if search == "covariance" else 0.9), "the top three singular values are close"
    both = [rmse(m.predict(task.train, *pairs(task.test)), task.test.values) for m in (exact, noisy)]
    assert both[1] == pytest.approx(both[0], abs=0.05)


def test_it_learns_more_from_more_budget_and_beats_nothing(task):
    def score(epsilon):
        method = dpals.DPFrankWolfe(epsilon, steps=5, radius=6.0, **{**PLAIN, "row_clip": 9.0}, insecure_seed=3)
        return rmse(method.fit(task.train).predict(task.train, *pairs(task.test)), task.test.values)

    poor, rich = score(1.0), score(100.0)
    assert rich < 0.8 < poor
    assert poor < 1.5


def test_items_that_are_not_trained_on_get_the_users_mean():
    ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    method = dpals.DPFrankWolfe(5.0, frequent_fraction=0.3, insecure_seed=1).fit(ratings)
    trained = method.model_.is_trained
    assert trained.sum() == 30
    assert not method.item_factors_[~trained].any()
    others = ratings.items[~trained][:5]
    own = ratings.values[ratings.indptr[7] : ratings.indptr[8]].mean()
    np.testing.assert_allclose(method.predict(ratings, [ratings.users[7]] * 5, others), own, rtol=1e-5)


def test_users_stay_in_the_ball(task):
    """The released length is about that of the product with the direction, however poor the direction is."""
    settings = {**PLAIN, "row_clip": 30.0, "product_clip": 1.0, "power_steps": 1}
    method = dpals.DPFrankWolfe(200.0, steps=6, radius=5.0, **settings, insecure_seed=1).fit(task.train)
    length = np.linalg.norm(task.train.to_csr() @ method.item_factors_[:, 0])
    rows = method.model_.user_vectors(task.train).astype(float) @ method.item_factors_.T
    assert np.linalg.svd(rows, compute_uv=False).sum() < 5.0 * length * 1.05


def test_without_privacy_there_is_no_statement_and_no_ledger(task):
    method = dpals.DPFrankWolfe(None, steps=1, **PLAIN)
    with pytest.raises(ValueError, match="nothing to record"):
        method.fit(task.train, ledger=dpals.Ledger())
    with pytest.raises(AttributeError, match="without privacy"):
        _ = method.fit(task.train).privacy
    with pytest.raises(dpals.InputError, match="no ratings"):
        method.fit(task.train.keep(np.zeros(task.train.n_ratings, bool)))


def test_ratings_that_are_all_the_same_leave_nothing_to_learn():
    ratings = dpals.Ratings.from_arrays([1, 1, 2, 3], ["a", "b", "a", "b"], [4.0] * 4, rating_range=(1, 5))
    method = dpals.DPFrankWolfe(None, steps=2, frequent_fraction=1.0).fit(ratings)
    np.testing.assert_allclose(method.predict(ratings, [1, 3], ["a", "a"]), 4.0)


def test_a_large_catalogue_has_no_covariance():
    ratings = dpals.Ratings.from_arrays([1, 2], [0, 1], [3.0, 4.0], rating_range=(1, 5), catalogue=range(5000))
    with pytest.raises(dpals.InputError, match="use search='power'"):
        dpals.DPFrankWolfe(1.0, search="covariance", frequent_fraction=1.0).fit(ratings)


def test_a_share_that_leaves_nothing_is_refused_before_anything_is_spent(task):
    ledger = dpals.Ledger()
    with pytest.raises(ValueError, match="count_share must leave something"):
        dpals.DPFrankWolfe(count_share=0.995).fit(task.train, ledger=ledger)
    assert ledger.spent("ratings") == 0
