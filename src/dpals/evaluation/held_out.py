"""How well a model predicts what users did next. Exact, from private data: only for the data's owner."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpals.data.ids import is_text
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.evaluation.metrics import ndcg_at_k, recall_at_k, rmse
from dpals.model.factor_model import FactorModel


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


def evaluate(model: FactorModel, history: Ratings, test: Ratings, k: int = 20) -> Evaluation:
    """Predict the ratings of `test` from `history`, and recommend k items that are not in the history.

    Both have the catalogue of the model. Users without a history are treated as newcomers. Every item that a user has
    in `test` counts as one to recommend, whatever its rating.

    Examples
    --------
    >>> model = FactorModel(["tea", "rum", "gin"], np.zeros((3, 0)), [0.5, 0.1, 0.3], 0.0, 1.0)
    >>> history = Ratings.from_arrays(["ann"], ["tea"], catalogue=model.items)
    >>> test = Ratings.from_arrays(["ann", "bob"], ["gin", "rum"], catalogue=model.items)
    >>> evaluate(model, history, test, k=1)
    Evaluation(rmse=None, recall=0.5, ndcg=0.5, k=1, users=2, newcomers=1, ratings=2, seen=0)
    """
    if test.n_ratings == 0:
        raise InputError("there is nothing to predict: the model knows no item of the test ratings")
    known = histories_of(history, test.users)
    users, items = test.users[test.rows], test.items[test.indices]
    recommended, _ = model.recommend(known, k)
    tested = np.diff(test.indptr) > 0
    return Evaluation(
        rmse=None if test.values is None else rmse(model.predict(known, users, items), test.values),
        recall=recall_at_k(recommended, test, k),
        ndcg=ndcg_at_k(recommended, test, k),
        k=k,
        users=int(tested.sum()),
        newcomers=int((tested & (np.diff(known.indptr) == 0)).sum()),
        ratings=test.n_ratings,
        seen=int(np.isin(_pairs(test), _pairs(known), assume_unique=True).sum()),
    )


def histories_of(history: Ratings, users: NDArray[np.generic]) -> Ratings:
    """The histories of some users in their order; an empty one for a user who is not there.

    Examples
    --------
    >>> history = Ratings.from_arrays(["ann", "bob", "bob"], ["tea", "rum", "tea"])
    >>> some = histories_of(history, np.array(["bob", "eve"], np.dtypes.StringDType()))
    >>> some.users.tolist(), some.indptr.tolist(), some.indices.tolist()
    (['bob', 'eve'], [0, 2, 2], [0, 1])
    """
    if len(users) and history.n_users and is_text(users) != is_text(history.users):
        kinds = ("integers", "text") if is_text(users) else ("text", "integers")
        raise InputError(f"user ids are {kinds[0]} in the history and {kinds[1]} in the test ratings: use one type")
    at = history.user_index(users, unknown_ok=True)
    lengths = np.where(at >= 0, np.diff(history.indptr)[at], 0)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    starts = np.where(at >= 0, history.indptr[at], 0)
    entries = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
    return Ratings(
        indptr=indptr,
        indices=history.indices[entries],
        values=None if history.values is None else history.values[entries],
        timestamps=None if history.timestamps is None else history.timestamps[entries],
        users=users.copy(),
        items=history.items,
        rating_range=history.rating_range,
        catalogue_declared=history.catalogue_declared,
        report=history.report,
    )


def _pairs(ratings: Ratings) -> NDArray[np.int64]:
    """One whole number for each user and item, the same in ratings with the same users and items."""
    return ratings.rows * ratings.n_items + ratings.indices
