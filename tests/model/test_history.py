"""Histories of every kind against the same history as Ratings; and histories that do not fit."""

import logging
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import coo_matrix, csr_array
from tests.same_ratings import assert_same_arrays
from tests.small_models import N_ITEMS, RANGE, history_of, model_of, table_of_ratings

import dpals
from dpals.evaluation.splits import split_entries


class OtherFrame:
    """Of a library that nobody knows, but it speaks Arrow."""

    def __init__(self, columns):
        self._table = pa.table(columns)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


LIBRARIES = {
    "pandas": (pd.DataFrame, pd.DataFrame),
    "polars": (pl.DataFrame, pl.DataFrame),
    "polars, lazy": (pl.LazyFrame, pl.DataFrame),
    "Arrow table": (pa.table, pa.Table),
    "Arrow stream": (lambda columns: pa.table(columns).to_reader(), pa.Table),
    "another library": (OtherFrame, pl.DataFrame),
}
LARGE = np.uint64(2**63)
IDS = {
    "integers": (np.arange(7, 7 + N_ITEMS), np.array([5, -3, 12]), "int64"),
    "beyond int64": (np.arange(N_ITEMS, dtype=np.uint64) + LARGE, np.array([0, 2, 1], np.uint64) + LARGE, "uint64"),
    "text": ([f"Amélie {at} 映画" for at in range(N_ITEMS)], ["müller", "ann", "7"], "string"),
}
libraries = pytest.mark.parametrize(("make", "kind"), LIBRARIES.values(), ids=LIBRARIES)
kinds_of_ids = pytest.mark.parametrize(("items", "users", "dtype"), IDS.values(), ids=IDS)


def rows_of(frame):
    """Names and types of the columns, and the rows, whatever the library."""
    if isinstance(frame, pd.DataFrame):
        types = [str(frame[name].dtype) for name in frame.columns]
        columns = [frame[name].tolist() for name in frame.columns]
        names = list(frame.columns)
    else:
        table = frame.to_arrow() if isinstance(frame, pl.DataFrame) else frame
        types, names = [str(field.type) for field in table.schema], table.column_names
        columns = [column.to_pylist() for column in table.columns]
    return names, [_type(name) for name in types], list(zip(*columns, strict=True))


def _type(name):
    known = {"str": "string", "object": "string", "large_string": "string", "string_view": "string"}
    return {**known, "float": "float32"}.get(name, name)


def columns_of(items, users, seed=0):
    """Every user has rated some items, the first of them all but two; rows are in no order."""
    rng = np.random.default_rng(seed)
    pairs = [(user, item) for number, user in enumerate(users) for item in items[: N_ITEMS - 2 - 4 * number]]
    rng.shuffle(pairs := [tuple(pair) for pair in pairs])
    who, what = (np.array(column, dtype=object) for column in zip(*pairs, strict=True))
    stars = rng.integers(1, 11, len(pairs)) / 2
    return {"stars": stars.tolist(), "user_id": _typed(who, users), "movieId": _typed(what, items)}


def _typed(values, like):
    return values.tolist() if isinstance(like[0], str) else values.astype(np.asarray(like).dtype)


# Frames


@libraries
@kinds_of_ids
@pytest.mark.parametrize("implicit", [False, True])
def test_a_frame_comes_back_as_a_frame(make, kind, items, users, dtype, implicit):
    model = model_of(1, items=items, **({"rating_range": None} if implicit else {}))
    columns = columns_of(items, users)
    history = dpals.Ratings.from_arrays(
        columns["user_id"],
        columns["movieId"],
        **({} if implicit else {"values": columns["stars"], "rating_range": RANGE}),
        catalogue=items,
    )
    ids, scores = model.recommend(history, k=4)
    expected = [
        (user, place + 1, ids[row, place], scores[row, place])
        for row, user in enumerate(history.users.tolist())
        for place in range(4)
        if scores[row, place] > -np.inf
    ]
    frame = model.recommend(make(columns), k=4)
    names, types, rows = rows_of(frame)
    assert type(frame) is kind
    assert names == ["user_id", "rank", "movieId", "score"]
    assert types == [dtype, "int64", dtype, "float32"]
    assert rows == expected
    assert len(rows) == 2 + 4 + 4


@libraries
@kinds_of_ids
def test_frames_without_rows(make, kind, items, users, dtype):
    columns = {name: column[:0] for name, column in columns_of(items, users).items()}
    typed = pa.table({**columns, "stars": pa.array([], pa.float64())})
    given = typed.to_pandas() if make is pd.DataFrame else make(typed if make is pa.table else pl.DataFrame(typed))
    frame = model_of(1, items=items).recommend(given, k=4)
    assert type(frame) is kind
    assert rows_of(frame)[0] == ["user_id", "rank", "movieId", "score"]
    assert rows_of(frame)[2] == []
    if dtype == "string":
        assert rows_of(frame)[1][2] == "string"


@libraries
def test_every_way_to_serve_takes_frames(make, kind):
    model, columns = model_of(1, items=IDS["text"][0], user_bias_ridge=1.0), columns_of(*IDS["text"][:2])
    history = dpals.Ratings.from_frame(pl.DataFrame(columns), rating_range=RANGE, catalogue=model.items)
    assert_same_arrays(model.history(make(columns)), history)
    pairs = ["ann", "müller", "ann"], model.items[:3]
    assert np.array_equal(model.predict(make(columns), *pairs), model.predict(history, *pairs))
    assert np.array_equal(model.user_vectors(make(columns)), model.user_vectors(history))
    for side, expected in zip(model.two_sides(make(columns)), model.two_sides(history), strict=True):
        assert np.array_equal(side, expected)
    seen_too = model.recommend(make(columns), 3, exclude_seen=False)
    assert isinstance(seen_too, kind)
    assert len(seen_too) == 9


def test_unusual_names_of_columns():
    columns = columns_of(*IDS["integers"][:2])
    odd = pd.DataFrame({"who": columns["user_id"], "what": columns["movieId"], "how": columns["stars"]})
    model = model_of(1, items=IDS["integers"][0])
    history = model.history(odd, user="who", item="what", rating="how")
    assert_same_arrays(history, model.history(pd.DataFrame(columns)))
    with pytest.raises(dpals.InputError, match=r"FactorModel\.history.*no column looks like the user.*user=.*'who'"):
        model.recommend(odd)


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
import numpy as np, pandas as pd, polars as pl, dpals
model = dpals.FactorModel(["tea", "rum"], np.zeros((2, 0)), [0.5, 0.1], 0.0, 1.0)
for library in (pd, pl):
    frame = model.recommend(library.DataFrame({"user": ["ann", "bob"], "item": ["rum", "tea"]}), 1)
    assert isinstance(frame, library.DataFrame)
    print(frame["item"].to_list())
"""


def test_frames_without_pyarrow():
    command = [sys.executable, "-c", WITHOUT_PYARROW]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "['tea', 'rum']\n" * 2


# Items that the model does not know


def test_unknown_items_are_left_out_counted_and_said_once(caplog):
    frame = pl.DataFrame({"user": ["ann", "bob", "bob", "eve"], "item": [100, 7, 101, 8], "rating": [3.0, 4, 5, 1]})
    model = model_of(1)
    with caplog.at_level(logging.INFO, "dpals"):
        recommended = model.recommend(frame, 2)
    assert [(entry.name, entry.levelname) for entry in caplog.records] == [("dpals", "WARNING")]
    assert caplog.messages == [
        "2 of 4 rows of the history are about items that the model does not know: they were left out"
    ]
    assert recommended["user"].unique().sort().to_list() == ["ann", "bob", "eve"]
    history = model.history(frame)
    assert history.report.rows_dropped == {"item outside the catalogue": 2}
    assert np.diff(history.indptr).tolist() == [1, 1, 0]
    newcomer = dpals.Ratings.from_csr(csr_array((1, N_ITEMS)), items=model.items, rating_range=RANGE)
    expected = model.recommend(newcomer, 2)[0][0].tolist()
    assert recommended.filter(pl.col("user") == "eve")["item"].to_list() == expected


def test_nothing_is_said_where_all_items_are_known(caplog):
    model_of(1).history(pl.DataFrame({"user": ["ann"], "item": [100], "rating": [3.0]}))
    assert caplog.messages == []


# Files


@pytest.mark.parametrize("name", ["h.csv", "h.parquet", "folder"])
def test_a_file_is_what_its_frame_is(tmp_path, name, caplog):
    frame = pl.DataFrame({"user": ["ann", "bob", "eve"], "item": [100, 7, 101], "rating": [3.0, 4, 5]})
    frame = frame.with_columns(time=pl.int_range(pl.len()))
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
        frame[:1].write_parquet(path / "a.parquet")
        frame[1:].write_parquet(path / "b.parquet")
    else:
        (frame.write_csv if name == "h.csv" else frame.write_parquet)(path)
    for model in (model_of(1), model_of(1, rating_range=None)):
        history = model.read_history(path)
        assert caplog.messages == [
            "1 of 3 rows of the history are about items that the model does not know: they were left out"
        ]
        assert_same_arrays(history, model.history(frame))
        caplog.clear()


def test_named_columns_of_a_file(tmp_path):
    path = tmp_path / "h.csv"
    path.write_text("who,what,how\nann,100,3\n")
    names = {"user": "who", "item": "what", "rating": "how"}
    assert model_of(1).read_history(path, **names).n_ratings == 1
    assert model_of(1, rating_range=None).read_history(path, **names).n_ratings == 1


def test_ids_in_text_files_are_what_those_of_the_model_are(tmp_path):
    path = tmp_path / "h.csv"
    path.write_text("user,item,rating\n1,7,3\n")
    texts = model_of(1, items=[str(at) for at in range(N_ITEMS)])
    assert texts.items[texts.read_history(path).indices].tolist() == ["7"]


# Matrices


@pytest.mark.parametrize("form", [csr_array, coo_matrix])
def test_a_matrix_is_users_by_items(form):
    table = table_of_ratings(3)
    matrix, model = form(np.nan_to_num(table)), model_of(1)
    ids, scores = model.recommend(matrix, 3)
    expected_ids, expected_scores = model.recommend(history_of(table), 3)
    assert np.array_equal(ids, expected_ids)
    assert np.array_equal(scores, expected_scores)
    assert model.history(matrix).users.tolist() == list(range(len(table)))
    implicit = model_of(1, rating_range=None)
    assert implicit.history(matrix).is_implicit


# Histories that do not fit

numbers = np.arange(100, 100 + N_ITEMS)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (numbers[::-1], "in another order"),
        (numbers[:-2], "lacks 2 items"),
        (np.append(numbers, [7, 8]), "2 items that the model does not know, 7 for one.*on_unknown_items='drop'"),
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
        [1, 1, 2], [113, 7, 100], [4, 5, 3], rating_range=RANGE, catalogue=numbers, on_unknown_items="drop"
    )
    assert model_of(1).recommend(history, 2)[0].shape == (2, 2)


def test_histories_of_another_kind_are_refused():
    table = table_of_ratings(1)
    implicit = model_of(1, rating_range=None)
    with pytest.raises(dpals.InputError, match=r"made for ratings, and the history holds implicit.*rating_range="):
        model_of(1).user_vectors(history_of(table, implicit=True))
    with pytest.raises(dpals.InputError, match="made for implicit feedback, and the history holds ratings: leave them"):
        implicit.user_vectors(history_of(table))
    with pytest.raises(dpals.InputError, match=r"rating range \(0.5, 5.0\), the model \(0.0, 10.0\)"):
        model_of(1, rating_range=(0, 10)).user_vectors(history_of(table))


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (np.zeros((2, N_ITEMS)), "must be a dpals.Ratings, a pandas or polars frame, .* not a ndarray"),
        (None, "not a NoneType"),
        (pd.Series([1, 2]), "not a? ?Series"),
        ("history.csv", r"is a path, 'history.csv': read it with model\.read_history"),
        (csr_array((2, N_ITEMS + 1)), "a column for each of the 14 items"),
        (csr_array([[9.0] * N_ITEMS]), "is 9, outside the declared rating_range 0.5 to 5: bring the entries to that"),
        (pl.DataFrame({"user": [1], "item": [100]}), "no column looks like the rating, and the model needs ratings"),
        (
            pl.DataFrame({"user": [1, 2], "item": [100, 100], "rating": [3, 80]}),
            "row 1 .*column 'rating': 80 is outside.*Correct such rows.*made for ratings from 0.5 to 5",
        ),
        (
            pl.DataFrame({"user": [1, None], "item": [100, 100], "rating": [3, 3]}),
            "row 1 .*the user id is missing. Correct such rows or leave them out",
        ),
        (
            pl.DataFrame({"user": [1], "film": ["tea"], "rating": [3]}).rename({"film": "item"}),
            "column 'item' holds text and the catalogue integers: turn the ids in the column into integers",
        ),
    ],
)
@pytest.mark.parametrize("serve", ["recommend", "history", "user_vectors", "two_sides"])
def test_what_does_not_fit_is_refused_with_advice(history, message, serve):
    with pytest.raises(dpals.InputError, match=message):
        getattr(model_of(1), serve)(history)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("user,item,rating\n1,100,3\n1,101,50\n", "line 3, column 'rating': 50 is.*made for ratings from 0.5 to 5"),
        ("user,item\n1,100\n", r"no column looks like the rating, and the model needs ratings.*rating=\.\.\."),
        ("user,item,rating\n1,tea,3\n", "line 2, column 'item'.*'tea' is not a plain 64-bit integer.*catalogue"),
        ("user,item,rating\n", "no row of data"),
    ],
)
def test_files_that_do_not_fit_are_refused_with_advice(tmp_path, content, message):
    path = tmp_path / "h.csv"
    path.write_text(content)
    with pytest.raises(dpals.InputError, match=message) as error:
        model_of(1).read_history(path)
    assert str(path) in str(error.value)


def test_blocks_are_taken_one_by_one(tmp_path):
    model, whole = model_of(3), history_of(table_of_ratings(4))
    blocks = dpals.write_blocks(whole, tmp_path, ratings_per_block=20)
    for history in (blocks, split_entries(blocks)[0]):
        for ask in (model.recommend, model.user_vectors, lambda history: model.predict(history, ["user 1"], [100])):
            with pytest.raises(dpals.InputError, match=r"for block in history\.blocks: model\.recommend\(block\.open"):
                ask(history)
    lists = [model.recommend(block.open(), 3)[0] for block in blocks.blocks]
    users = [user for block in blocks for user in block.users.tolist()]
    expected = dict(zip(whole.users.tolist(), model.recommend(whole, 3)[0].tolist(), strict=True))
    assert dict(zip(users, np.concatenate(lists).tolist(), strict=True)) == expected
