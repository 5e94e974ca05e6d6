"""Recommendations for more users than fit in memory, block by block."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpals.data.bad_rows import ReadingReport
from dpals.data.blocks.folder import Blocks
from dpals.data.columns import Columns
from dpals.data.ids import to_series
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.model.factor_model import FactorModel
from dpals.model.history import check_facts
from dpals.model.table import recommendation_table

USERS_AT_ONCE = 1 << 15


@dataclass(frozen=True)
class Recommended:
    """Recommendations for some users. They belong to these users."""

    users: NDArray[Any]
    ids: NDArray[Any]
    """One row per user, best first."""
    scores: NDArray[np.float32]
    """Minus infinity at empty places."""
    n_ratings: int
    """Number of ratings in the histories of these users."""

    def table(self, user: str = "user", item: str = "item") -> pl.DataFrame:
        """One row for each user and item: user, rank (1 is best), item, score.

        Examples
        --------
        >>> scores = np.array([[2.0, 1.0], [3.0, -np.inf]], np.float32)
        >>> Recommended(np.array([7, 8]), np.array([[50, 60], [60, -1]]), scores, 1).table().rows()
        [(7, 1, 50, 2.0), (7, 2, 60, 1.0), (8, 1, 60, 3.0)]
        """
        table = recommendation_table(self.users, self.ids, self.scores, user, item)
        return table.with_columns(pl.col("rank").cast(pl.Int32))

    def lists(self) -> pl.DataFrame:
        """One row for each user: user, items, scores.

        Examples
        --------
        >>> scores = np.array([[2.0, 1.0], [3.0, -np.inf]], np.float32)
        >>> Recommended(np.array([7, 8]), np.array([[50, 60], [60, -1]]), scores, 1).lists().rows()
        [(7, [50, 60], [2.0, 1.0]), (8, [60], [3.0])]
        """
        filled = pl.Series((self.scores > -np.inf).sum(axis=1))
        columns = {"items": to_series(self.ids.ravel()), "scores": pl.Series(self.scores.ravel())}
        full = {name: column.reshape(self.scores.shape).arr.to_list() for name, column in columns.items()}
        table = pl.DataFrame({"user": to_series(self.users), **full, "filled": filled})
        return table.select("user", *(pl.col(name).list.head(pl.col("filled")) for name in full))


@dataclass(frozen=True, eq=False)
class HistoryInBlocks:
    """A history in a folder of blocks, opened one at a time, or some users of it; like `StreamedHistory`."""

    parts: Iterable[Ratings]
    n_rows: int
    columns = Columns("user", "item")
    report = ReadingReport(0)

    @classmethod
    def of(cls, blocks: Blocks, model: FactorModel, only: Sequence[str] = ()) -> "HistoryInBlocks":
        """All users, or those whose ids as text are in `only`; InputError where blocks and model do not fit."""
        check_facts(blocks, model.items, model.rating_range)
        if not only:
            return cls(blocks, blocks.n_ratings)
        wanted = set(only)
        chosen = []
        for block in blocks:
            names = to_series(block.users).cast(pl.String)
            chosen.append(block.take_users(names.is_in(list(only)).to_numpy()))
            wanted -= set(names)
        if wanted:
            raise InputError(f"the user {sorted(wanted)[0]!r} is not in {blocks.folder}")
        return cls(chosen, sum(part.n_ratings for part in chosen))

    def __iter__(self) -> Iterator[Ratings]:
        return iter(self.parts)


def recommend_in_blocks(
    model: FactorModel,
    histories: Iterable[Ratings],
    k: int = 20,
    exclude_seen: bool = True,
    users_at_once: int = USERS_AT_ONCE,
) -> Iterator[Recommended]:
    """The same as `FactorModel.recommend`, block by block of users, for histories that come in parts.

    Examples
    --------
    >>> model = FactorModel(["tea", "rum", "gin"], np.zeros((3, 0)), [0.5, 0.1, 0.3], 0.0, 1.0)
    >>> history = Ratings.from_arrays(["ann", "bob", "bob"], ["rum", "tea", "gin"], catalogue=model.items)
    >>> for block in recommend_in_blocks(model, [history], k=1, users_at_once=1):
    ...     print(block.table().rows())
    [('ann', 1, 'tea', 0.5)]
    [('bob', 1, 'rum', 0.10000000149011612)]
    """
    for history in histories:
        for start in range(0, history.n_users, users_at_once):
            block = history.take_users(slice(start, start + users_at_once))
            ids, scores = model.recommend(block, k, exclude_seen)
            yield Recommended(block.users, ids, scores, block.n_ratings)


def names_in_table(columns: Columns) -> tuple[str, str]:
    """What to call user and item in a table of recommendations: as in the history, unless a name is taken.

    Examples
    --------
    >>> names_in_table(Columns("userId", "movieId")), names_in_table(Columns("userId", "rank"))
    (('userId', 'movieId'), ('user', 'item'))
    """
    clear = not {columns.user, columns.item} & {"rank", "score"}
    return (columns.user, columns.item) if clear else ("user", "item")
