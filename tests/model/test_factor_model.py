"""The model against dense least squares, full sorts and cosines by numpy."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.small_models import N_ITEMS, N_USERS, RANGE, history_of, model_of, statement, table_of_ratings

import dpals
from dpals.errors import InputError
from dpals.model.factor_model import FactorModel


def dense_vectors(model, table):
    """Each user's vector and bias by numpy's least squares on one stacked system, in float64."""
    factors = model.item_factors.astype(np.float64)
    vectors, biases = np.zeros((len(table), model.rank)), np.zeros(len(table))
    has_bias = model.user_bias_ridge is not None
    for user, row in enumerate(table):
        seen = ~np.isnan(row)
        if not seen.any():
            continue
        ones = np.ones((seen.sum(), 1)) if has_bias else np.zeros((seen.sum(), 1))
        ridge = np.sqrt(model.user_ridge * seen.sum() ** model.user_exponent)
        system = np.vstack(
            [
                np.hstack([factors[seen], ones]),
                np.hstack([np.sqrt(model.unseen_weight) * factors, np.zeros((len(factors), 1))]),
                np.diag([ridge] * model.rank + [np.sqrt(model.user_bias_ridge or 0)]),
            ]
        )
        wanted = np.zeros(len(system))
        wanted[: seen.sum()] = row[seen] - model.global_mean - model.item_biases[seen]
        solution = np.linalg.lstsq(system, wanted, rcond=None)[0]
        vectors[user], biases[user] = solution[:-1], solution[-1]
    return vectors, biases


def dense_scores(model, table):
    """All scores before they are cut, in float64."""
    vectors, biases = dense_vectors(model, table)
    scores = model.global_mean + model.item_biases + biases[:, None] + vectors @ model.item_factors.T.astype(float)
    if model.rating_range is None:
        means = np.zeros(len(table))
    else:
        sums, counts = np.nansum(table, axis=1), (~np.isnan(table)).sum(axis=1)
        means = np.where(counts > 0, sums / np.maximum(counts, 1), model.global_mean)
    return np.where(model.is_trained, scores, means[:, None])


def all_pairs(history):
    return np.repeat(history.users, history.n_items), np.tile(history.items, history.n_users)


half_trained = np.arange(N_ITEMS) % 2 == 0
kinds = pytest.mark.parametrize(
    "changes",
    [
        {},
        {"user_bias_ridge": 2.0},
        {"user_exponent": 1.0},
        {"user_exponent": -1},
        {"user_bias_ridge": 0.0, "user_exponent": 0.5},
        {"unseen_weight": 0.3},
        {"is_trained": half_trained},
        {"is_trained": half_trained, "user_bias_ridge": 0.5, "unseen_weight": 0.1},
        {"item_factors": np.zeros((N_ITEMS, 0)), "user_bias_ridge": 1.5},
        {"item_factors": np.zeros((N_ITEMS, 0)), "user_ridge": 0.0},
    ],
    ids=lambda changes: ", ".join(changes) or "plain",
)


# Serving


@kinds
def test_predictions_are_dense_least_squares(changes):
    model, table = model_of(1, **changes), table_of_ratings(2)
    history = history_of(table)
    predictions = model.predict(history, *all_pairs(history))
    assert predictions.dtype == np.float32
    expected = np.clip(dense_scores(model, table), *RANGE).ravel()
    np.testing.assert_allclose(predictions, expected, rtol=2e-5)


@kinds
def test_user_vectors_are_dense_least_squares(changes):
    model, table = model_of(3, **changes), table_of_ratings(4)
    vectors, biases = dense_vectors(model, table)
    if model.user_bias_ridge is not None:
        vectors = np.column_stack([vectors, biases])
    np.testing.assert_allclose(model.user_vectors(history_of(table)), vectors, rtol=1e-4, atol=1e-5)


def test_implicit_feedback_aims_at_one_for_what_was_seen():
    model = model_of(5, rating_range=None, global_mean=0.0, unseen_weight=0.2, is_trained=half_trained)
    table = np.where(np.isnan(table_of_ratings(6)), np.nan, 1.0)
    history = history_of(table, implicit=True)
    expected = dense_scores(model, table)
    np.testing.assert_allclose(model.predict(history, *all_pairs(history)), expected.ravel(), rtol=1e-4, atol=1e-5)
    assert (expected[:, ~half_trained] == 0).all()


def test_a_user_without_history_gets_the_items_alone():
    model, history = model_of(7, user_bias_ridge=1.0, is_trained=half_trained), history_of(table_of_ratings(8))
    known = np.where(half_trained, model.global_mean + model.item_biases, model.global_mean)
    predictions = model.predict(history, ["user 0"] * N_ITEMS, model.items)
    np.testing.assert_allclose(predictions, np.clip(known, *RANGE), rtol=1e-6)


def test_a_user_is_served_alone_as_among_others():
    """New users need no training: only their own history counts, bit for bit."""
    model, table = model_of(9, user_bias_ridge=1.0), table_of_ratings(10)
    together = model.predict(history_of(table), ["user 3"] * N_ITEMS, model.items)
    alone = table[3][~np.isnan(table[3])]
    seen = model.items[~np.isnan(table[3])]
    history = dpals.Ratings.from_arrays(["new"] * len(seen), seen, alone, rating_range=RANGE, catalogue=model.items)
    assert np.array_equal(model.predict(history, ["new"] * N_ITEMS, model.items), together)


def test_many_pairs_in_any_order():
    model, table = model_of(11), table_of_ratings(12)
    history = history_of(table)
    users, items = all_pairs(history)
    expected = model.predict(history, users, items)
    shuffled = np.random.default_rng(0).integers(0, len(users), 997)
    assert np.array_equal(model.predict(history, users[shuffled], items[shuffled]), expected[shuffled])
    assert model.predict(history, [], []).shape == (0,)


@pytest.mark.parametrize(
    ("users", "items", "message"),
    [
        (["user 1"], [100, 101], "in pairs, but there are 1 and 2"),
        (["user 1"], [99], "unknown item id: 99"),
        (["eve"], [100], "unknown user id: 'eve'"),
        ("user 1", [100], "expected a list"),
    ],
)
def test_wrong_pairs_are_refused(users, items, message):
    with pytest.raises(dpals.InputError, match=message):
        model_of(1).predict(history_of(table_of_ratings(1)), users, items)


# Recommending


def brute_force(scores, seen, k, items):
    """The best k of each row by a full sort; None stands for no item."""
    ids = []
    for row, row_seen in zip(scores, seen, strict=True):
        order = sorted((-score, at) for at, score in enumerate(row) if not row_seen[at])[:k]
        ids.append([items[at] for _, at in order] + [None] * (k - len(order)))
    return ids


@kinds
@pytest.mark.parametrize("exclude_seen", [True, False])
@pytest.mark.parametrize("k", [1, 5, N_ITEMS])
def test_recommendations_are_a_full_sort(changes, exclude_seen, k):
    model, table = model_of(13, **changes), table_of_ratings(14)
    ids, scores = model.recommend(history_of(table), k, exclude_seen)
    exact = dense_scores(model, table)
    seen = ~np.isnan(table) & exclude_seen
    assert ids.shape == scores.shape == (N_USERS, k)
    for user in range(N_USERS):
        found = np.flatnonzero(scores[user] > -np.inf)
        assert len(found) == min(k, (~seen[user]).sum())
        positions = ids[user][found] - 100
        assert not seen[user][positions].any()
        assert len(set(positions)) == len(found)
        np.testing.assert_allclose(scores[user][found], np.clip(exact[user][positions], *RANGE), rtol=2e-5)
        best = np.sort(exact[user][~seen[user]])[::-1][: len(found)]
        np.testing.assert_allclose(exact[user][positions], best, rtol=2e-5)
        assert (ids[user][len(found) :] == -1).all()


@given(st.lists(st.integers(-2, 2), min_size=N_ITEMS, max_size=N_ITEMS), st.integers(0, 2**32), st.integers(1, N_ITEMS))
def test_equal_scores_stay_in_the_order_of_the_catalogue(biases, seed, k):
    table = table_of_ratings(seed, share=0.6)
    model = model_of(1, item_factors=np.zeros((N_ITEMS, 0)), item_biases=biases, global_mean=3.0)
    ids, _ = model.recommend(history_of(table), k)
    expected = brute_force(np.tile(biases, (N_USERS, 1)), ~np.isnan(table), k, model.items.tolist())
    assert ids.tolist() == [[-1 if item is None else item for item in row] for row in expected]


def test_the_order_is_that_of_scores_before_they_are_cut():
    model = model_of(1, item_factors=np.zeros((N_ITEMS, 0)), item_biases=np.arange(N_ITEMS))
    ids, scores = model.recommend(history_of(table_of_ratings(1)), 5, exclude_seen=False)
    assert (ids == model.items[::-1][:5]).all()
    assert (scores == 5).all()


@pytest.mark.parametrize(
    ("items", "nothing"),
    [
        (np.array([3, 1, 2]), -1),
        (np.array([-1, 7, -2]), -3),
        (np.array([2**64 - 1, 5, 2**63], np.uint64), 2**64 - 2),
        (np.array(["b", "ä", "日本"]), ""),
    ],
)
def test_no_item_is_no_items_id(items, nothing):
    model = FactorModel(items, np.zeros((3, 0)), [0.1, 0.2, 0.3], 0.0, 1.0)
    history = dpals.Ratings.from_arrays([1, 1], items[:2], catalogue=items)
    ids, scores = model.recommend(history, 3)
    assert ids.dtype == model.items.dtype
    assert ids.tolist() == [[items[2].item(), nothing, nothing]]
    assert scores.tolist() == [[np.float32(0.3), -np.inf, -np.inf]]


def test_nobody_to_recommend_to():
    nobody = history_of(np.full((0, N_ITEMS), np.nan))
    ids, scores = model_of(1).recommend(nobody, 4)
    assert ids.shape == scores.shape == (0, 4)


@pytest.mark.parametrize("k", [0, -1, N_ITEMS + 1])
def test_senseless_numbers_of_recommendations_are_refused(k):
    with pytest.raises(dpals.InputError, match=f"between 1 and the number of items, {N_ITEMS}"):
        model_of(1).recommend(history_of(table_of_ratings(1)), k)


# Similar items


@pytest.mark.parametrize("k", [1, 4, N_ITEMS - 1, 500])
def test_similar_items_are_those_with_the_largest_cosine(k):
    model = model_of(15)
    factors = model.item_factors.astype(np.float64)
    for position, item in enumerate(model.items.tolist()):
        cosines = factors @ factors[position] / np.linalg.norm(factors, axis=1) / np.linalg.norm(factors[position])
        order = [at for at in np.argsort(-cosines) if at != position][:k]
        ids, found = model.similar_items(item, k)
        assert ids.tolist() == model.items[order].tolist()
        np.testing.assert_allclose(found, cosines[order], rtol=1e-5, atol=1e-6)


def test_items_without_factors_resemble_nothing():
    factors = np.eye(4, 2, dtype=np.float32)
    factors[3] = 1
    model = FactorModel(["a", "b", "zero", "new"], factors, np.zeros(4), 0.0, 1.0, is_trained=[1, 1, 1, 0])
    assert model.similar_items("a")[0].tolist() == ["b"]
    for item in ("zero", "new"):
        with pytest.raises(dpals.InputError, match=f"no factors for the item '{item}'"):
            model.similar_items(item)


def test_wrong_questions_about_items_are_refused():
    with pytest.raises(dpals.InputError, match="unknown item id: 1"):
        model_of(1).similar_items(1)
    with pytest.raises(dpals.InputError, match="integers here, and these are text"):
        model_of(1).similar_items("tea")
    with pytest.raises(dpals.InputError, match="at least 1"):
        model_of(1).similar_items(100, k=0)


# The constructor


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"item_factors": np.zeros((N_ITEMS - 1, 2))}, "item_factors must have one row for each of 14"),
        ({"item_factors": np.zeros(N_ITEMS)}, "item_factors must have one row"),
        ({"item_biases": np.zeros((N_ITEMS, 1))}, "item_biases must have one row"),
        ({"is_trained": np.ones(3, bool)}, "is_trained must have one row"),
        ({"items": np.zeros(N_ITEMS, int)}, "more than once"),
        ({"item_factors": np.full((N_ITEMS, 2), np.nan)}, "item_factors must be finite"),
        ({"item_biases": np.full(N_ITEMS, np.inf)}, "item_biases must be finite"),
        ({"global_mean": float("nan")}, "global_mean must be finite"),
        ({"user_ridge": -1.0}, "at least 0"),
        ({"user_bias_ridge": -1.0}, "at least 0"),
        ({"unseen_weight": -1.0}, "at least 0"),
        ({"rating_range": (5, 1)}, "the lower one first"),
    ],
)
def test_what_is_no_model_is_refused(changes, message):
    with pytest.raises(dpals.InputError, match=message):
        model_of(1, **changes)


def test_the_model_cannot_be_changed():
    model = model_of(1)
    for array in (model.items, model.item_factors, model.item_biases, model.is_trained):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_repr_says_what_it_is():
    assert repr(model_of(1)) == "FactorModel(14 items, rank 3, ratings from 0.5 to 5, not private)"
    assert "implicit feedback, epsilon 1 at delta 1e-05" in repr(model_of(1, rating_range=None, privacy=statement()))
    seeded = replace(statement(), is_private=False)
    assert "not private" in repr(model_of(1).with_privacy(seeded))


def test_repr_is_never_below_what_was_spent():
    spent = replace(statement(), epsilon=1.00001, delta=1.00001e-5)
    assert "epsilon 1.001 at delta 1.001e-05" in repr(model_of(1).with_privacy(spent))


def test_log_odds_are_for_implicit_feedback_only():
    with pytest.raises(InputError, match="implicit feedback"):
        FactorModel([1, 2], np.zeros((2, 1)), [0.0, 0.0], 3.0, 1.0, rating_range=(1, 5), log_odds=True)
