"""Tables of recommendations against rows written out one by one, in every library."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpals.model.table import Layout, library_of, recommendation_table

SCORES = np.array([[3.0, 2.0], [1.5, -np.inf], [-np.inf, -np.inf]], np.float32)
IDS = {
    "integers": ([7, -8, 9], [[50, 60], [60, -1], [-1, -1]], pa.int64()),
    "text": (["ann", "bob", "zoë"], [["tea", "rum"], ["rum", ""], ["", ""]], pa.string()),
}
kinds_of_ids = pytest.mark.parametrize(("users", "ids", "kind"), IDS.values(), ids=IDS)


def arrays(users, ids):
    dtype = np.dtypes.StringDType() if isinstance(users[0], str) else np.int64
    return np.array(users, dtype), np.array(ids, dtype)


@kinds_of_ids
def test_empty_places_have_no_rows(users, ids, kind):
    del kind
    table = recommendation_table(*arrays(users, ids), SCORES, "who", "what")
    assert table.columns == ["who", "rank", "what", "score"]
    expected = [(users[0], 1, ids[0][0], 3.0), (users[0], 2, ids[0][1], 2.0), (users[1], 1, ids[1][0], 1.5)]
    assert table.rows() == expected


@kinds_of_ids
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_of_all_libraries_hold_the_same(library, users, ids, kind):
    frame = Layout(library, "who", "what").frame(*arrays(users, ids), SCORES)
    assert library_of(frame) == library
    expected = recommendation_table(*arrays(users, ids), SCORES, "who", "what").rows()
    if library == "pandas":
        assert isinstance(frame, pd.DataFrame)
        rows = list(frame.itertuples(index=False, name=None))
        assert str(frame["rank"].dtype) == "int64"
    elif library == "polars":
        rows = frame.rows()
        assert frame.schema["rank"] == pl.Int64
    else:
        rows = list(zip(*(column.to_pylist() for column in frame.columns), strict=True))
        assert [field.type for field in frame.schema] == [kind, pa.int64(), kind, pa.float32()]
    assert rows == expected


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_table_without_rows_keeps_the_types(library):
    users, ids, _ = IDS["text"]
    frame = Layout(library, "user", "item").frame(*arrays(users, ids), np.full((3, 2), -np.inf, np.float32))
    assert len(frame) == 0
    if library == "pyarrow":
        assert frame.schema.field("item").type == pa.string()


def test_frames_of_unknown_libraries_are_answered_with_polars():
    assert library_of(object()) == "polars"
    assert library_of(pl.LazyFrame()) == "polars"
