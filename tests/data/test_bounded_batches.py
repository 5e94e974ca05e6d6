"""Pieces of a table against the whole."""

import numpy as np
import polars as pl
import pytest

from dpals import InputError
from dpals.data.bad_rows import BadRows
from dpals.data.bounded_batches import CommonIdType, pieces
from dpals.data.columns import ColumnOptions
from dpals.data.frames import FrameSource

TEXT = np.dtypes.StringDType()


@pytest.mark.parametrize("n_rows", [1, 3, 10, 11])
def test_pieces_have_all_rows_in_their_order_and_know_their_places(n_rows):
    source = FrameSource(pl.DataFrame({"user": range(10), "item": range(10)}), ColumnOptions())
    bad = BadRows("error")
    rows = []
    for piece in pieces(source, bad, n_rows):
        batches = list(piece.batches(bad))
        assert sum(batch.frame.height for batch in batches) <= n_rows
        rows += [(user, batch.place(at)) for batch in batches for at, user in enumerate(batch.frame["user"])]
    assert rows == [(row, f"row {row} (counting from 0)") for row in range(10)]


@pytest.mark.parametrize(
    ("parts", "dtype"),
    [
        ([[1], [2]], np.dtype(np.int64)),
        ([[1], [2**63]], np.dtype(np.uint64)),
        ([[2**63], [1]], np.dtype(np.uint64)),
        ([[], [-1]], np.dtype(np.int64)),
        ([], None),
    ],
)
def test_integers_have_the_type_that_holds_all_of_them(parts, dtype):
    ids = CommonIdType("here")
    for part in parts:
        ids.include(np.array(part, np.uint64 if max(part, default=0) >= 2**63 else np.int64))
    assert ids.dtype == dtype


def test_ids_that_do_not_go_together_are_refused():
    ids = CommonIdType("a.csv, column 'who'")
    ids.include(np.array([-5]))
    with pytest.raises(InputError, match=r"a\.csv, column 'who': ids from -5 to 18446744073709551615 do not fit in 64"):
        ids.include(np.array([2**64 - 1], np.uint64))
    with pytest.raises(InputError, match="column 'who': mixed id types"):
        ids.include(np.array(["x"], TEXT))
    texts = CommonIdType("here")
    texts.include(np.array(["x"], TEXT))
    with pytest.raises(InputError, match="mixed id types"):
        texts.include(np.array([1]))
