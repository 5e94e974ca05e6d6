"""What other programs get of a model, against predictions and the model's own arrays."""

import os

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.small_models import N_ITEMS, history_of, model_of, table_of_ratings

import dpals
from dpals.private.frank_wolfe import FrankWolfeSteps

half_trained = np.arange(N_ITEMS) % 2 == 0
stepped = {
    "frank_wolfe_steps": FrankWolfeSteps(np.full(3, 0.2), np.full(3, 0.9), 2.0),
    "user_bias_ridge": 1.0,
    "is_trained": half_trained,
}
KINDS = {
    "plain": {},
    "biases and items without training": {"user_bias_ridge": 2.0, "is_trained": half_trained},
    "no factors": {"item_factors": np.zeros((N_ITEMS, 0))},
    "Frank-Wolfe": stepped,
    "implicit": {"rating_range": None, "unseen_weight": 0.2, "is_trained": half_trained},
    "log odds": {"rating_range": None, "log_odds": True},
}


@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
def test_inner_products_of_arrays_and_queries_are_the_scores(changes):
    model = model_of(1, **changes)
    history = history_of(table_of_ratings(2), implicit=model.rating_range is None)
    ids, vectors = model.export("arrays")
    searched = model.search_vectors(history)
    assert ids.tolist() == model.items.tolist()
    for array in (vectors, searched):
        assert array.dtype == np.float32
        assert array.flags.c_contiguous
    scores = searched @ vectors.T
    if model.rating_range is not None:
        scores = np.clip(scores, *model.rating_range)
    pairs = np.repeat(history.users, N_ITEMS), np.tile(ids, history.n_users)
    np.testing.assert_allclose(scores.ravel(), model.predict(history, *pairs), rtol=1e-5, atol=1e-6)
    best = ids[np.argsort(-(searched @ vectors.T), axis=1)[:, :1]]
    assert np.array_equal(best, model.recommend(history, 1, exclude_seen=False)[0])


def test_a_search_vector_is_of_that_user_alone():
    model, table = model_of(1, user_bias_ridge=1.0), table_of_ratings(2)
    together = model.search_vectors(history_of(table))
    for user in range(len(table)):
        assert np.array_equal(model.search_vectors(history_of(table[user : user + 1]))[0], together[user])


LARGE = np.arange(N_ITEMS, dtype=np.uint64) + np.uint64(2**63)
TEXT = [f"é {at}" for at in range(N_ITEMS)]


@pytest.mark.parametrize("items", [np.arange(N_ITEMS) - 5, LARGE, TEXT], ids=["integers", "beyond int64", "text"])
def test_the_parquet_file_has_one_row_per_item(tmp_path, items):
    model = model_of(3, items=items, is_trained=half_trained)
    path = tmp_path / "items.parquet"
    model.export("parquet", path)
    table = pq.read_table(path)
    assert table.column_names == ["item", "bias", "factor_0", "factor_1", "factor_2", "trained"]
    assert table["item"].to_pylist() == model.items.tolist()
    assert np.array_equal(table["bias"].to_numpy(), model.item_biases)
    factors = np.column_stack([table[f"factor_{number}"].to_numpy() for number in range(3)])
    assert factors.dtype == np.float32
    assert np.array_equal(factors, model.item_factors)
    assert table["trained"].to_pylist() == half_trained.tolist()
    assert os.listdir(tmp_path) == ["items.parquet"]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "items.parquet"
    path.write_text("precious")

    def failing(_frame, place):
        place.write_text("half")
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(pl.DataFrame, "write_parquet", failing)
        with pytest.raises(OSError, match="disk full"):
            model_of(1).export("parquet", path)
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == ["items.parquet"]
    model_of(1).export("parquet", path)
    assert pl.read_parquet(path).height == N_ITEMS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("parquet",), r"needs a path: export\(.parquet., "),
        (("arrays", "a.npz"), "leave out the path"),
        (("csv", "a.csv"), 'must be "parquet" or "arrays", not \'csv\''),
    ],
)
def test_senseless_exports_are_refused(arguments, message):
    with pytest.raises(dpals.InputError, match=message):
        model_of(1).export(*arguments)


def test_estimators_export_their_model(tmp_path):
    method = dpals.ALS(rank=2, steps=1).fit(history_of(table_of_ratings(1)))
    ids, vectors = method.export("arrays")
    history = history_of(table_of_ratings(2))
    assert np.array_equal(vectors, method.model_.export("arrays")[1])
    assert np.array_equal(method.search_vectors(history), method.model_.search_vectors(history))
    method.export("parquet", tmp_path / "items.parquet")
    assert pl.read_parquet(tmp_path / "items.parquet")["item"].to_list() == ids.tolist()


def test_exported_arrays_are_the_callers_own():
    model = model_of(1)
    _, vectors = model.export("arrays")
    before = vectors.copy()
    vectors[:] = 0
    assert np.array_equal(model.export("arrays")[1], before)
    with pytest.raises(ValueError, match="read-only"):
        model.item_side()[:] = 0
