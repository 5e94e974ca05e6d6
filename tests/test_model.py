"""The model against dense least squares, full sorts and cosines by numpy; and its files against damage."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save
from scipy.sparse import coo_array

import dpals
from dpals.errors import InputError
from dpals.model import FactorModel
from dpals.release.contribution import Offer, Pattern, Query
from dpals.release.mechanism import Door
from dpals.release.statement import Statement

N_USERS, N_ITEMS, RANK = 25, 14, 3
RANGE = (0.5, 5.0)


def table_of_ratings(seed, share=0.4):
    """Ratings in half stars, nan where there are none; user 0 has none at all."""
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((N_USERS, N_ITEMS)) < share, rng.integers(1, 11, (N_USERS, N_ITEMS)) / 2, np.nan)
    table[0] = np.nan
    return table


def history_of(table, items=None, implicit=False):
    """The users are all there, those without ratings as well."""
    users, columns = np.nonzero(~np.isnan(table))
    matrix = coo_array((table[users, columns], (users, columns)), shape=table.shape)
    ids = np.arange(100, 100 + table.shape[1]) if items is None else items
    user_ids = [f"user {at}" for at in range(len(table))]
    if implicit:
        return dpals.Ratings.from_csr(matrix, users=user_ids, items=ids, implicit=True)
    return dpals.Ratings.from_csr(matrix, users=user_ids, items=ids, rating_range=RANGE)


def model_of(seed, **changes):
    rng = np.random.default_rng(seed)
    settings = {
        "items": np.arange(100, 100 + N_ITEMS),
        "item_factors": rng.normal(0, 0.6, (N_ITEMS, RANK)).astype(np.float32),
        "item_biases": rng.normal(0, 0.3, N_ITEMS).astype(np.float32),
        "global_mean": 3.4,
        "user_ridge": 0.7,
        "rating_range": RANGE,
    }
    return FactorModel(**{**settings, **changes})


def statement():
    door = Door(dpals.Budget(1.0, 1e-5))
    offer = Offer(Pattern.one_item(4), np.ones(4))
    door.release(Query("a count", 1, 1.0), offer, door.budget.split(1)[0])
    return Statement.of(door, ("Ünïcode assumption",))


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


def test_many_pairs_in_any_order(monkeypatch):
    model, table = model_of(11), table_of_ratings(12)
    history = history_of(table)
    users, items = all_pairs(history)
    expected = model.predict(history, users, items)
    shuffled = np.random.default_rng(0).integers(0, len(users), 997)
    monkeypatch.setattr("dpals.model._PAIRS_AT_ONCE", 10)
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


# Histories that do not fit

numbers = np.arange(100, 100 + N_ITEMS)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (numbers[::-1], "in another order"),
        (numbers[:-2], "lacks 2 items"),
        (np.append(numbers, [7, 8]), "2 items that the model does not know, 7 for one.*on_bad_rows='drop'"),
        (np.append(numbers[:-1], 7), "1 items that the model does not know"),
        ([f"film {at}" for at in range(N_ITEMS)], "text, those of the model integers"),
    ],
)
@pytest.mark.parametrize(
    "serve",
    [
        lambda model, history: model.user_vectors(history),
        lambda model, history: model.recommend(history, 2),
        lambda model, history: model.predict(history, history.users[:1], history.items[:1]),
    ],
    ids=["user_vectors", "recommend", "predict"],
)
def test_another_catalogue_is_refused_with_advice(items, message, serve):
    history = history_of(np.full((3, len(items)), 4.0), items)
    with pytest.raises(dpals.InputError, match=message) as error:
        serve(model_of(1), history)
    assert "catalogue=model.items" in str(error.value)


def test_the_advice_helps():
    history = dpals.Ratings.from_arrays(
        [1, 1, 2], [113, 7, 100], [4, 5, 3], rating_range=RANGE, catalogue=numbers, on_bad_rows="drop"
    )
    assert model_of(1).recommend(history, 2)[0].shape == (2, 2)


def test_histories_of_another_kind_are_refused():
    table = table_of_ratings(1)
    implicit = model_of(1, rating_range=None)
    with pytest.raises(dpals.InputError, match="made for ratings, and the history holds implicit feedback"):
        model_of(1).user_vectors(history_of(table, implicit=True))
    with pytest.raises(dpals.InputError, match="made for implicit feedback, and the history holds ratings"):
        implicit.user_vectors(history_of(table))
    with pytest.raises(dpals.InputError, match=r"rating range \(0.5, 5.0\), the model \(0.0, 10.0\)"):
        model_of(1, rating_range=(0, 10)).user_vectors(history_of(table))
    with pytest.raises(dpals.InputError, match="not a ndarray"):
        model_of(1).user_vectors(table)


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


# Files

catalogues = {
    "integers": np.arange(N_ITEMS) - 5,
    "beyond int64": np.arange(N_ITEMS, dtype=np.uint64) + np.uint64(2**64 - N_ITEMS),
    "text": np.array([f'Amélie «{at}» 映画 🎬 "\\\n' for at in range(N_ITEMS)], dtype=np.dtypes.StringDType()),
}


@pytest.mark.parametrize("items", catalogues.values(), ids=catalogues.keys())
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"user_bias_ridge": 0.1, "user_exponent": 1 / 3, "global_mean": np.float32(3.3), "is_trained": half_trained},
        {"rating_range": None, "unseen_weight": 0.07, "item_factors": np.zeros((N_ITEMS, 0))},
    ],
    ids=["plain", "everything", "implicit"],
)
@pytest.mark.parametrize("is_private", [True, False])
def test_a_model_comes_back_as_it_was(tmp_path, items, changes, is_private):
    model = model_of(16, items=items, **changes, privacy=statement() if is_private else None)
    model.save(tmp_path / "deep" / "model")
    loaded = dpals.load(tmp_path / "deep" / "model")
    for name in FactorModel.__dataclass_fields__:
        stored, original = getattr(loaded, name), getattr(model, name)
        assert type(stored) is type(original)
        if isinstance(original, np.ndarray):
            assert stored.dtype == original.dtype
            assert not stored.flags.writeable
        assert np.array_equal(stored, original) if isinstance(original, np.ndarray) else stored == original


@given(
    st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=5, unique=True)
    | st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5, unique=True)
    | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5, unique=True),
    st.floats(-1e6, 1e6),
)
def test_any_ids_and_numbers_come_back(tmp_path_factory, items, mean):
    folder = tmp_path_factory.mktemp("model")
    model = FactorModel(items, np.zeros((len(items), 1)), np.zeros(len(items)), mean, 1.0)
    model.save(folder)
    loaded = FactorModel.load(folder)
    assert loaded.items.tolist() == items
    assert loaded.items.dtype == model.items.dtype
    assert loaded.global_mean == mean


def test_nothing_in_the_files_belongs_to_a_user(tmp_path):
    """Two models that differ in nothing but the users they serve have the same files, which name no user."""
    model = model_of(17, privacy=statement())
    model.save(tmp_path / "before")
    history = history_of(table_of_ratings(18))
    model.recommend(history, 3)
    model.predict(history, ["user 3"], [100])
    model.save(tmp_path / "after")
    before, after = ({path.name: path.read_bytes() for path in (tmp_path / at).iterdir()} for at in ("before", "after"))
    assert before == after
    assert set(json.loads(after["model.json"])) == {
        "format",
        "sha256",
        "items",
        "global_mean",
        "user_ridge",
        "user_exponent",
        "user_bias_ridge",
        "unseen_weight",
        "log_odds",
        "replay",
        "rating_range",
        "privacy",
    }
    assert not any(b"user 3" in content for content in after.values())


@pytest.fixture
def saved(tmp_path):
    folder = tmp_path / "model"
    model_of(19, privacy=statement()).save(folder)
    return folder


def arrays_in(folder):
    (path,) = folder.glob("arrays-*.safetensors")
    return path


def change_facts(folder, **changes):
    facts = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**facts, **changes}))


def put_arrays(folder, **changes):
    """Other arrays in place of the model's own, with the right digest."""
    model = FactorModel.load(folder)
    arrays = {name: getattr(model, name) for name in ("item_factors", "item_biases", "is_trained")}
    arrays = {name: array for name, array in {**arrays, **changes}.items() if array is not None}
    put_content(folder, save(arrays))


def put_content(folder, content):
    digest = hashlib.sha256(content).hexdigest()
    arrays_in(folder).rename(folder / f"arrays-{digest[:16]}.safetensors")
    arrays_in(folder).write_bytes(content)
    change_facts(folder, sha256=digest)


def without(folder, name):
    facts = json.loads((folder / "model.json").read_text())
    del facts[name]
    (folder / "model.json").write_text(json.dumps(facts))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "model.json").unlink(), "model.json is missing"),
        (lambda folder: arrays_in(folder).unlink(), "arrays-.* is missing"),
        (lambda folder: change_facts(folder, format=2), "not written by this version"),
        (lambda folder: (folder / "model.json").write_text("[]"), "not written by this version"),
        (lambda folder: (folder / "model.json").write_bytes(b'{"format": 1'), "model.json is damaged"),
        (lambda folder: (folder / "model.json").write_bytes(b"\xff\xfe\xfa"), "model.json is damaged"),
        (lambda folder: (folder / "model.json").write_bytes(b""), "model.json is damaged"),
        (lambda folder: change_facts(folder, sha256="../../etc/passwd"), "does not say which arrays"),
        (lambda folder: change_facts(folder, sha256=None), "does not say which arrays"),
        (lambda folder: os.truncate(arrays_in(folder), 100), "damaged, or belongs to another model"),
        (lambda folder: os.truncate(arrays_in(folder), 0), "damaged, or belongs to another model"),
        (lambda folder: change_facts(folder, items=[1, 2]), "one row for each of 2 items"),
        (lambda folder: change_facts(folder, items=None), "is damaged"),
        (lambda folder: change_facts(folder, items=[1, "a", *range(3, 15)]), "mixed id types"),
        (lambda folder: change_facts(folder, user_ridge="high"), "is damaged"),
        (lambda folder: change_facts(folder, user_ridge=None), "is damaged"),
        (lambda folder: change_facts(folder, global_mean=float("nan")), "must be finite"),
        (lambda folder: change_facts(folder, rating_range=[5, 1, 2]), "is damaged"),
        (lambda folder: change_facts(folder, privacy={"epsilon": 1}), "is damaged"),
        (lambda folder: change_facts(folder, privacy="yes"), "is damaged"),
        (lambda folder: without(folder, "privacy"), "is damaged.*privacy"),
        (lambda folder: without(folder, "user_exponent"), "is damaged.*user_exponent"),
        (lambda folder: put_arrays(folder, item_biases=np.zeros(3, np.float32)), "item_biases must have one row"),
        (lambda folder: put_arrays(folder, item_factors=np.zeros(N_ITEMS, np.float32)), "item_factors must have one"),
        (lambda folder: put_arrays(folder, is_trained=None), "is damaged.*is_trained"),
    ],
)
def test_damaged_folders_are_refused(saved, damage, message):
    damage(saved)
    with pytest.raises(dpals.InputError, match=message):
        FactorModel.load(saved)


def test_damaged_arrays_with_the_right_digest_are_refused(saved):
    put_content(saved, b"not a safetensors file")
    with pytest.raises(dpals.InputError, match="is damaged"):
        FactorModel.load(saved)


def test_arrays_of_another_model_are_refused(saved, tmp_path):
    model_of(20).save(tmp_path / "other")
    arrays_in(saved).write_bytes(arrays_in(tmp_path / "other").read_bytes())
    with pytest.raises(dpals.InputError, match="belongs to another model"):
        FactorModel.load(saved)


def test_any_flipped_bit_in_the_arrays_is_noticed(saved):
    content = arrays_in(saved).read_bytes()
    for at in range(0, len(content), 37):
        arrays_in(saved).write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(dpals.InputError):
            FactorModel.load(saved)


@pytest.mark.parametrize("what", ["no such folder", "a file"])
def test_what_is_no_folder_is_refused(tmp_path, what):
    if what == "a file":
        (tmp_path / what).write_text("hello")
    with pytest.raises(dpals.InputError, match="is not a model folder"):
        FactorModel.load(tmp_path / what)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_model_is_replaced_by_another(saved):
    other = model_of(21)
    other.save(saved)
    assert np.array_equal(FactorModel.load(saved).item_factors, other.item_factors)
    assert names_in(saved) == [arrays_in(saved).name, "model.json"]


@pytest.mark.parametrize("file", [1, 2], ids=["arrays", "facts"])
@pytest.mark.parametrize(("owner", "step"), [(os, "fsync"), (Path, "replace")], ids=["write", "rename"])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("same_arrays", [True, False])
def test_a_failed_save_leaves_nothing_behind(tmp_path, monkeypatch, owner, step, file, is_first, same_arrays):
    folder, old, new = tmp_path / "model", model_of(22), model_of(23)
    if same_arrays:
        new = replace(old, global_mean=1.0)
    folder.mkdir()
    if not is_first:
        old.save(folder)
    before = names_in(folder)
    calls, working = [], getattr(owner, step)

    def failing(*arguments):
        calls.append(arguments)
        if len(calls) == file:
            raise OSError("disk full")
        return working(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(owner, step, failing)
        with pytest.raises(OSError, match="disk full"):
            new.save(folder)
    assert names_in(folder) == before
    if not is_first:
        loaded = FactorModel.load(folder)
        assert loaded.global_mean == old.global_mean
        assert np.array_equal(loaded.item_factors, old.item_factors)


SAVING = """
import os, sys
import numpy as np
from pathlib import Path
from dpals.errors import InputError
from dpals.model import FactorModel

def dying(call):
    def counting(*arguments, **named):
        global steps
        steps -= 1
        if steps == 0:
            os._exit(9)
        return call(*arguments, **named)
    return counting

old, new = (FactorModel([1, 2], np.full((2, 1), value), np.zeros(2), value, 1.0) for value in (1.0, 2.0))
for life in range(1, 30):
    folder = Path(sys.argv[1]) / str(life)
    old.save(folder)
    child = os.fork()
    if child == 0:
        steps = life
        os.fsync, Path.replace, Path.unlink = dying(os.fsync), dying(Path.replace), dying(Path.unlink)
        new.save(folder)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
"""


def test_a_killed_save_leaves_the_old_model_or_the_new_one(tmp_path):
    """Processes that end without a word, each one step further: before every change that a save makes."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", SAVING, tmp_path], check=True)
    folders = sorted(tmp_path.iterdir(), key=lambda path: int(path.name))
    assert 5 < len(folders) < 29
    models = [FactorModel.load(folder) for folder in folders]
    assert all(model.item_factors.tolist() == [[model.global_mean]] * 2 for model in models)
    means = [model.global_mean for model in models]
    assert means == sorted(means)
    assert set(means) == {1.0, 2.0}


def test_log_odds_are_for_implicit_feedback_only():
    with pytest.raises(InputError, match="implicit feedback"):
        FactorModel([1, 2], np.zeros((2, 1)), [0.0, 0.0], 3.0, 1.0, rating_range=(1, 5), log_odds=True)
