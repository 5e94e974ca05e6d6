"""PooledDPALS on implicit feedback: recommendations for new users, tame at any budget."""

import numpy as np
import pytest

import dpals
from dpals.evaluation.metrics import recall_at_k
from dpals.evaluation.splits import liked, split_users


@pytest.fixture(scope="module")
def split():
    ratings = dpals.simulate.movielens_like(n_users=10_000, n_items=800, mean_ratings=100, seed=5)
    return split_users(liked(ratings), held_out=2000, validation_share=0.0, seed=5)


def recall(method, split):
    ids, _ = method.fit(split.train).recommend(split.test.history, k=20)
    return recall_at_k(ids, split.test.target, k=20)


def popularity(split):
    counts = np.bincount(split.train.indices, minlength=split.train.n_items)
    model = dpals.FactorModel(split.train.items, np.zeros((split.train.n_items, 0)), counts / counts.max(), 0.0, 1.0)
    return recall_at_k(model.recommend(split.test.history, k=20)[0], split.test.target, k=20)


@pytest.mark.parametrize(("epsilon", "gain"), [(1.0, 1.2), (5.0, 1.35)])
def test_it_finds_what_new_users_want(epsilon, gain, split):
    ours = recall(dpals.PooledDPALS(epsilon, insecure_seed=1), split)
    assert ours > gain * popularity(split)
    others = [recall(method(epsilon, insecure_seed=1), split) for method in (dpals.DPALS, dpals.AdaDPALS)]
    assert ours > max(others)


def test_with_much_budget_it_comes_close_to_no_privacy(split):
    reference = recall(dpals.ALS(rank=32, steps=10, ridge=8.0, unseen_weight=0.1, user_exponent=0.0), split)
    assert recall(dpals.PooledDPALS(20.0, insecure_seed=1), split) > 0.95 * reference


def test_little_budget_gives_popularity(split):
    method = dpals.PooledDPALS(0.05, insecure_seed=1)
    assert recall(method, split) > 0.9 * popularity(split)
    assert method.rank_ == 0
    assert "popularity and 0 factors" in method.report_


def test_without_budget_it_says_so_and_stays_finite(split):
    method = dpals.PooledDPALS(1e-4, insecure_seed=1).fit(split.train)
    assert "Nothing could be learned" in method.report_
    _, scores = method.recommend(split.test.history, k=5)
    assert np.isfinite(scores).all()


def test_what_was_chosen_is_shown_and_the_budget_kept(split):
    method = dpals.PooledDPALS(1.0, 1e-6).fit(split.train)
    shown = method.get_params()
    assert (shown["rank"], shown["steps"], shown["weight_exponent"]) == (method.rank_, 6, 0.2)
    budget = dpals.Budget(1.0, 1e-6)
    assert 0.99 * budget.cost < sum(release.cost for release in method.privacy.releases) <= budget.cost
    assert method.privacy.is_private


def test_scores_are_log_odds_and_survive_saving(split, tmp_path):
    method = dpals.PooledDPALS(5.0, insecure_seed=1).fit(split.train)
    method.save(tmp_path / "model")
    loaded = dpals.load(tmp_path / "model")
    assert loaded.log_odds
    query = split.test.history
    ids, scores = loaded.recommend(query, k=10)
    assert np.array_equal(ids, method.recommend(query, k=10)[0])
    assert np.allclose(loaded.predict(query, query.users[:50], ids[:50, 0]), scores[:50, 0], atol=1e-4)
    # Chances of all items add up to about the number of items that a user has.
    vectors = loaded.user_vectors(query).astype(np.float64)
    factors = np.column_stack([loaded.item_factors, np.ones(len(loaded.items))])
    chances = 1 / (1 + np.exp(-(vectors @ factors.T + loaded.item_biases)))
    counts = np.diff(query.indptr)
    assert np.corrcoef(np.log(chances.sum(axis=1)), np.log(counts))[0, 1] > 0.95


def test_users_without_items_are_recommended_what_is_popular(split):
    method = dpals.PooledDPALS(5.0, insecure_seed=1).fit(split.train)
    nobody = dpals.Ratings.from_arrays(["ann"], [split.train.items[0]], catalogue=split.train.items)
    empty = nobody.keep(np.zeros(1, bool))
    ids, _ = method.recommend(empty, k=3)
    assert ids[0].tolist() == split.train.items[np.argsort(-method.model_.item_biases)[:3]].tolist()


def test_one_user_is_enough_to_fit():
    method = dpals.PooledDPALS(1.0, insecure_seed=1).fit(dpals.Ratings.from_arrays(["ann"], ["tea"]))
    assert method.report_.startswith("Nothing")


def test_a_rank_can_be_asked_for_where_nothing_can_be_learned():
    ratings = dpals.Ratings.from_arrays(["ann", "bob", "bob"], ["tea", "tea", "rum"])
    method = dpals.PooledDPALS(0.1, rank=1).fit(ratings)
    assert np.isfinite(method.recommend(ratings, k=1, exclude_seen=False)[1]).all()
