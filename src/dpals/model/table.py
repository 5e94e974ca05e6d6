"""Recommendations as a table: one row for each user and recommended item."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpals.data.frames import is_pandas
from dpals.data.ids import to_series

Library = Literal["pandas", "polars", "pyarrow"]


def recommendation_table(
    users: NDArray[Any], ids: NDArray[Any], scores: NDArray[np.float32], user: str = "user", item: str = "item"
) -> pl.DataFrame:
    """The columns user, rank (1 is best), item and score. Empty places, whose score is minus infinity, have no rows.

    Parameters
    ----------
    users
        Ids of the users.
    ids, scores
        Recommended items and their scores: a row for each user, best first.
    user, item
        What to call the columns of users and items.

    Examples
    --------
    >>> scores = np.array([[2.0, 1.0], [3.0, -np.inf]], np.float32)
    >>> recommendation_table(np.array([7, 8]), np.array([[50, 60], [60, -1]]), scores).rows()
    [(7, 1, 50, 2.0), (7, 2, 60, 1.0), (8, 1, 60, 3.0)]
    """
    rows, places = np.nonzero(scores > -np.inf)
    columns = {
        user: to_series(users).gather(rows),
        "rank": places + 1,
        item: to_series(ids[rows, places]),
        "score": scores[rows, places],
    }
    return pl.DataFrame(columns)


@dataclass(frozen=True)
class Layout:
    """The library and the column names of a frame of recommendations: those of the history, if that is a frame."""

    library: Library
    user: str
    item: str

    def frame(self, users: NDArray[Any], ids: NDArray[Any], scores: NDArray[np.float32]) -> Any:
        """The table of `recommendation_table` as a frame of the library."""
        table = recommendation_table(users, ids, scores, self.user, self.item)
        if self.library == "polars":
            return table
        columns = {name: table[name].to_numpy() for name in table.columns}
        if self.library == "pandas":
            import pandas as pd

            return pd.DataFrame(columns)
        import pyarrow as pa

        texts = {name: pa.string() for name, kind in table.schema.items() if kind == pl.String}
        return pa.table({name: pa.array(column, texts.get(name)) for name, column in columns.items()})


def library_of(frame: Any) -> Library:
    """The library whose frames to answer with: polars for a frame of an unknown library."""
    if is_pandas(frame):
        return "pandas"
    return "pyarrow" if type(frame).__module__.split(".")[0] == "pyarrow" else "polars"
