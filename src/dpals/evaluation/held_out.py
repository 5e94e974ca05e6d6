"""How well a model predicts what users did next. Exact, from private data: only for the data's owner."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpals.data.ids import is_text
from dpals.data.population import MemoryBlock, PartOfBlock, Population
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.evaluation.metrics import user_ndcg, user_recall
from dpals.model.batch import USERS_AT_ONCE
from dpals.model.factor_model import FactorModel
from dpals.model.history import check_facts

if TYPE_CHECKING:
    from dpals.methods.base.estimator import Estimator
    from dpals.release.passes import Block


@dataclass(frozen=True)
class Evaluation:
    """How good a model is, on users whose ratings were held out."""

    rmse: float | None
    """None for implicit feedback."""
    recall: float
    ndcg: float
    k: int
    users: int
    """Users with something to predict."""
    newcomers: int
    """Those of them who have no history."""
    ratings: int
    """Ratings, or pairs, to predict."""
    seen: int
    """Those of them that are in the history as well, where the model can look them up."""


def evaluate(model: "FactorModel | Estimator", history: Population, test: Population, k: int = 20) -> Evaluation:
    """Predict the ratings of `test` from `history`, and recommend k items that are not in the history.

    Users without a history are treated as newcomers. Every item that a user has in `test` counts as one to recommend,
    whatever its rating. The numbers are exact and not private: they are for your eyes only.

    Parameters
    ----------
    model
        A `FactorModel`, or a method that was fitted.
    history
        What the model may see of the users, with its catalogue and its rating range: `Ratings` or `Blocks`.
    test
        Other ratings of these users, with the same catalogue and range. Users in blocks are evaluated block by block,
        so that memory holds one block of the history and one of the test data. The parts of blocks that `split_entries`
        returns will do as well.
    k
        How many recommendations count.

    Examples
    --------
    >>> model = FactorModel(["tea", "rum", "gin"], np.zeros((3, 0)), [0.5, 0.1, 0.3], 0.0, 1.0)
    >>> history = Ratings.from_arrays(["ann"], ["tea"], catalogue=model.items)
    >>> test = Ratings.from_arrays(["ann", "bob"], ["gin", "rum"], catalogue=model.items)
    >>> evaluate(model, history, test, k=1)
    Evaluation(rmse=None, recall=0.5, ndcg=0.5, k=1, users=2, newcomers=1, ratings=2, seen=0)
    """
    model = model if isinstance(model, FactorModel) else model.model_
    check_facts(history, model.items, model.rating_range)
    check_facts(test, model.items, model.rating_range, "test data")
    sums = _Sums()
    for known, wanted in _users_of_both(history, test):
        for start in range(0, wanted.n_users, USERS_AT_ONCE):
            some = slice(start, start + USERS_AT_ONCE)
            sums.add(model, known.take_users(some), wanted.take_users(some), k)
    if sums.ratings == 0:
        raise InputError("there is nothing to predict: the model knows no item of the test ratings")
    return Evaluation(
        rmse=None if test.is_implicit else math.sqrt(sums.squared_errors / sums.ratings),
        recall=sums.recall / sums.users,
        ndcg=sums.ndcg / sums.users,
        k=k,
        users=sums.users,
        newcomers=sums.newcomers,
        ratings=sums.ratings,
        seen=sums.seen,
    )


@dataclass
class _Sums:
    """What is added up over users."""

    squared_errors: float = 0.0
    recall: float = 0.0
    ndcg: float = 0.0
    users: int = 0
    newcomers: int = 0
    ratings: int = 0
    seen: int = 0

    def add(self, model: FactorModel, known: Ratings, wanted: Ratings, k: int) -> None:
        """Add users from their histories and what is to be predicted, with the same users in both."""
        if wanted.values is not None:
            users, items = wanted.users[wanted.rows], wanted.items[wanted.indices]
            errors = model.predict(known, users, items).astype(np.float64) - wanted.values
            self.squared_errors += float(errors @ errors)
        recommended, _ = model.recommend(known, k)
        self.recall += float(user_recall(recommended, wanted, k).sum())
        self.ndcg += float(user_ndcg(recommended, wanted, k).sum())
        self.users += wanted.n_users
        self.newcomers += int((np.diff(known.indptr) == 0).sum())
        self.ratings += wanted.n_ratings
        self.seen += int(np.isin(_pairs(wanted), _pairs(known), assume_unique=True).sum())


def _users_of_both(history: Population, test: Population) -> Iterator[tuple[Ratings, Ratings]]:
    """Some users at a time: their histories, and what is to be predicted, at least one rating each.

    A user is looked up in the blocks of the history that can hold them. Whoever is in none of these has no history.
    """
    others: Sequence[Block] = (MemoryBlock(history),) if isinstance(history, Ratings) else history.blocks
    for block in test.blocks:
        wanted = block.open()
        wanted = wanted.take_users(np.diff(wanted.indptr) > 0)
        for other in others:
            if wanted.n_users and _may_share_users(block, other):
                known = other.open()
                at = _positions(known, wanted.users)
                yield _histories_at(known, at[at >= 0]), wanted.take_users(at >= 0)
                wanted = wanted.take_users(at < 0)
        yield wanted.keep(np.zeros(wanted.n_ratings, bool)), wanted


def _may_share_users(block: "Block", other: "Block") -> bool:
    """Whether a user can be in both: the prefix of one of them begins with that of the other."""
    one, another = _prefix(block), _prefix(other)
    return one.startswith(another) or another.startswith(one)


def _prefix(block: "Block") -> str:
    """How the hashes of all users of a block begin; nothing is known of those of a block in memory."""
    while isinstance(block, PartOfBlock):
        block = block.whole
    prefix: str = getattr(block, "prefix", "")
    return prefix


def _positions(history: Ratings, users: NDArray[np.generic]) -> NDArray[np.int64]:
    """Where users are in a history; -1 for a user who is not there."""
    if len(users) and history.n_users and is_text(users) != is_text(history.users):
        kinds = ("integers", "text") if is_text(users) else ("text", "integers")
        raise InputError(f"user ids are {kinds[0]} in the history and {kinds[1]} in the test ratings: use one type")
    return history.user_index(users, unknown_ok=True)


def _histories_at(history: Ratings, at: NDArray[np.int64]) -> Ratings:
    """The histories of users at some positions, in that order."""
    lengths = np.diff(history.indptr)[at]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    entries = np.arange(indptr[-1]) + np.repeat(history.indptr[at] - indptr[:-1], lengths)
    return replace(
        history,
        users=history.users[at],
        indptr=indptr,
        indices=history.indices[entries],
        values=None if history.values is None else history.values[entries],
        timestamps=None if history.timestamps is None else history.timestamps[entries],
    )


def _pairs(ratings: Ratings) -> NDArray[np.int64]:
    """One whole number for each user and item, the same in ratings with the same users and items."""
    return ratings.rows * ratings.n_items + ratings.indices
