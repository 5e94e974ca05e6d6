import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import dpals
from dpals.evaluation.metrics import recall_at_k, rmse
from dpals.evaluation.splits import liked, pairs, split_entries, split_users
from dpals.public.initial_factors import random_factors

GET_ML1M = Path(__file__).parents[3] / "shared" / "data" / "get-ml1m"
N_USERS, N_ITEMS = 12, 9


def small_ratings(seed, *, implicit=False):
    """All numbers of ratings per user and item, none included."""
    rng = np.random.default_rng(seed)
    seen = rng.random((N_USERS, N_ITEMS)) < rng.random((N_USERS, 1))
    seen[0, 0] = True
    matrix = csr_array(np.where(seen, rng.uniform(1, 5, seen.shape), 0))
    return dpals.Ratings.from_csr(matrix, rating_range=None if implicit else (1, 5), implicit=implicit)


def dense_side(matrix, seen, others, other_biases, ridge, exponent, bias_ridge, unseen):
    """Vectors and biases of the rows of a dense matrix, one after the other, from the normal equations."""
    counts = np.maximum(seen.sum(axis=1), 1.0) ** exponent
    rank = others.shape[1]
    vectors, biases = np.zeros((len(matrix), rank)), np.zeros(len(matrix))
    for i, row in enumerate(seen):
        if not row.any():
            continue
        features = np.hstack([others, np.ones((len(others), 1))])
        penalty = np.diag([ridge * counts[i] / counts.mean()] * rank + [bias_ridge or 0.0])
        penalty[:rank, :rank] += unseen * others.T @ others
        chosen = features[row]
        system, moments = chosen.T @ chosen + penalty, chosen.T @ (matrix[i] - other_biases)[row]
        if bias_ridge is None:
            vectors[i] = np.linalg.solve(system[:rank, :rank], moments[:rank])
        else:
            solution = np.linalg.solve(system, moments)
            vectors[i], biases[i] = solution[:rank], solution[rank]
    return vectors, biases


def dense_als(ratings, *, rank, steps, ridge, user_exponent, item_exponent, bias_ridge, unseen):
    """Predictions for all pairs, and the item side."""
    matrix, seen = np.zeros((ratings.n_users, ratings.n_items)), np.zeros((ratings.n_users, ratings.n_items), bool)
    mean = 0.0 if ratings.is_implicit else ratings.values.mean(dtype=np.float64)
    values = 1.0 if ratings.is_implicit else ratings.values - mean
    matrix[ratings.rows, ratings.indices], seen[ratings.rows, ratings.indices] = values, True
    items, item_biases = 0.1 * random_factors(ratings.n_items, rank), np.zeros(ratings.n_items)
    users_from = (ridge, user_exponent, bias_ridge, unseen)
    for _ in range(steps):
        users, user_biases = dense_side(matrix, seen, items, item_biases, *users_from)
        items, item_biases = dense_side(matrix.T, seen.T, users, user_biases, ridge, item_exponent, bias_ridge, unseen)
    users, user_biases = dense_side(matrix, seen, items, item_biases, *users_from)
    return mean + user_biases[:, None] + item_biases + users @ items.T


def all_predictions(model, ratings):
    users, items = np.repeat(ratings.users, ratings.n_items), np.tile(ratings.items, ratings.n_users)
    return model.predict(ratings, users, items).reshape(ratings.n_users, ratings.n_items)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    rank=st.integers(1, 4),
    steps=st.integers(1, 4),
    exponents=st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.7])),
    biases=st.booleans(),
)
def test_ratings_are_predicted_as_by_dense_alternating_least_squares(seed, rank, steps, exponents, biases):
    ratings = small_ratings(seed)
    model = dpals.ALS(
        rank, steps, ridge=2.0, user_exponent=exponents[0], item_exponent=exponents[1], biases=biases, bias_ridge=1.5
    ).fit(ratings)
    expected = dense_als(
        ratings,
        rank=rank,
        steps=steps,
        ridge=2.0,
        user_exponent=exponents[0],
        item_exponent=exponents[1],
        bias_ridge=1.5 if biases else None,
        unseen=0.0,
    )
    np.testing.assert_allclose(all_predictions(model, ratings), np.clip(expected, 1, 5), atol=2e-3)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), rank=st.integers(1, 4), steps=st.integers(1, 4), unseen=st.floats(0.05, 2.0))
def test_implicit_feedback_is_scored_as_by_dense_alternating_least_squares(seed, rank, steps, unseen):
    ratings = small_ratings(seed, implicit=True)
    settings_ = {"ridge": 0.5, "user_exponent": 0.5, "item_exponent": 0.0}
    model = dpals.ALS(rank, steps, **settings_, unseen_weight=unseen).fit(ratings)
    expected = dense_als(ratings, rank=rank, steps=steps, **settings_, bias_ridge=None, unseen=unseen)
    np.testing.assert_allclose(all_predictions(model, ratings), expected, atol=2e-3)


def test_finds_a_low_rank_matrix_without_noise():
    task = dpals.simulate.paper_synthetic(n_users=3_000, n_items=200)
    model = dpals.ALS(rank=5, steps=20, ridge=1e-3, biases=False).fit(task.train)
    assert rmse(model.predict(task.train, *pairs(task.test)), task.test.values) < 0.01


@pytest.fixture(scope="module")
def films():
    return dpals.simulate.movielens_like(4_000, 400, 60, seed=3)


def test_beats_the_user_mean_and_the_biases(films):
    train, _, test = split_entries(films)

    def score(model):
        return rmse(model.fit(train).predict(train, *pairs(test)), test.values)

    means = np.bincount(train.rows, train.values, train.n_users) / np.diff(train.indptr)
    user_mean = rmse(means[test.rows], test.values)
    almost_only_biases = score(dpals.ALS(rank=1, ridge=1e7))
    assert almost_only_biases < user_mean - 0.05
    assert score(dpals.ALS(rank=16, steps=8)) < almost_only_biases - 0.02


def test_implicit_feedback_beats_popularity_for_new_users(films):
    split = split_users(liked(films), held_out=1_000)
    query, target = split.test.history, split.test.target
    found = recall_at_k(dpals.ALS(rank=16, steps=8).fit(split.train).recommend(query, 20)[0], target)
    popularity = np.bincount(split.train.indices, minlength=films.n_items).astype(float)
    scores = np.tile(popularity, (query.n_users, 1))
    scores[query.rows, query.indices] = -1
    by_popularity = recall_at_k(np.argsort(-scores, axis=1)[:, :20], target, by_index=True)
    assert found > by_popularity + 0.03


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"rank": N_ITEMS + 1}, "rank"),
        ({"rank": 0}, "rank"),
        ({"rank": -1}, "rank"),
        ({"steps": 0}, "steps"),
        ({"ridge": 0.0}, "ridge"),
        ({"ridge": -1.0}, "ridge"),
        ({"ridge": float("nan")}, "ridge"),
        ({"bias_ridge": 0.0}, "bias_ridge"),
        ({"bias_ridge": float("nan")}, "bias_ridge"),
    ],
)
def test_wrong_arguments_are_named(wrong, complaint):
    with pytest.raises(ValueError, match=complaint):
        dpals.ALS(**{"rank": 2, **wrong}).fit(small_ratings(0))


@pytest.mark.parametrize(
    "wrong", [{"item_exponent": float("nan")}, {"user_exponent": float("nan")}, {"rank": 2.5}], ids=str
)
def test_wrong_arguments_of_other_kinds_are_named(wrong):
    with pytest.raises(ValueError, match="|".join(wrong)):
        dpals.ALS(**{"rank": 2, **wrong}).fit(small_ratings(0))


def test_there_must_be_ratings():
    ratings = small_ratings(0)
    with pytest.raises(dpals.InputError, match="no ratings"):
        dpals.ALS(rank=2).fit(ratings.keep(np.zeros(ratings.n_ratings, bool)))
    with pytest.raises(dpals.InputError, match="Ratings"):
        dpals.ALS(rank=2).fit(ratings.to_csr())


@pytest.mark.parametrize("implicit", [False, True])
def test_odd_data_give_finite_predictions(implicit):
    def ratings(users, items):
        values, span = (None, None) if implicit else ([3.0] * len(users), (1, 5))
        return dpals.Ratings.from_arrays(users, items, values, rating_range=span, catalogue=["a", "b", "c", "d"])

    one_user = ratings(["ann"], ["c"])
    same_everywhere = ratings(["ann", "ann", "bob", "eve"], ["a", "b", "b", "a"])
    for data in (one_user, same_everywhere):
        predictions = all_predictions(dpals.ALS(rank=3, steps=4, ridge=0.1).fit(data), data)
        assert np.isfinite(predictions).all()
        if not implicit:
            np.testing.assert_allclose(predictions, 3.0, atol=1e-5)


def test_an_item_that_nobody_rated_is_predicted_from_the_user_alone():
    ratings = dpals.Ratings.from_arrays(
        [1, 1, 2, 2], ["a", "b", "a", "b"], [5, 4, 2, 1], rating_range=(1, 5), catalogue=["a", "b", "c"]
    )
    model = dpals.ALS(rank=1, ridge=1e6, bias_ridge=1e-6).fit(ratings)
    np.testing.assert_allclose(model.predict(ratings, [1, 2], ["c", "c"]), [4.5, 1.5], atol=1e-3)
    assert not model.item_factors_[2].any()


def test_constant_ratings_are_learned_exactly():
    users, items = np.nonzero(np.ones((6, 5)))
    ratings = dpals.Ratings.from_arrays(users, items, np.full(30, 4.0), rating_range=(1, 5))
    np.testing.assert_allclose(all_predictions(dpals.ALS(rank=2).fit(ratings), ratings), 4.0, atol=1e-6)


def test_the_seed_decides_and_repeats():
    ratings = small_ratings(5)
    first, again, other = (dpals.ALS(rank=3, steps=2, seed=seed).fit(ratings).item_factors_ for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.slow
@pytest.mark.skipif(not GET_ML1M.exists(), reason="the script that fetches MovieLens 1M is not part of the repository")
def test_movielens_1m():
    """Real ratings, split 80/10/10; the ridge is chosen on the validation part."""
    fetched = subprocess.run([str(GET_ML1M)], capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        pytest.skip(f"MovieLens 1M cannot be fetched: {fetched.stderr.strip()[-200:]}")
    ratings = dpals.read_ratings(fetched.stdout.strip(), rating_range=(1, 5))
    assert (ratings.n_users, ratings.n_items, ratings.n_ratings) == (6_040, 3_706, 1_000_209)
    train, validation, test = split_entries(ratings)

    def score(model, part):
        return rmse(model.predict(train, *pairs(part)), part.values)

    models = [dpals.ALS(rank=16, steps=15, ridge=ridge).fit(train) for ridge in (8.0, 12.0, 16.0)]
    best = min(models, key=lambda model: score(model, validation))
    assert score(best, test) <= 0.860
