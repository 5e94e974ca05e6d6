"""What one person is served may depend on the published model and that person's own history, and on nobody else's."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpals.audit.simulated_data import Rows
from dpals.data.ratings import Ratings
from dpals.model.factor_model import FactorModel

_LISTED = 5


def serving_differences(model: FactorModel, rows: Rows) -> Iterator[str]:
    """Kinds of results that are others for someone served together with everybody than for the same person alone.

    Among them is somebody without ratings.
    """
    everybody = _with_newcomer(rows.ratings())
    if model.rating_range is None:
        everybody = replace(everybody, values=None, rating_range=None)
    together = _served(model, everybody)
    wrong = {
        name
        for user in range(everybody.n_users)
        for name, alone in _served(model, _only(everybody, user)).items()
        if alone[0].tobytes() != together[name][user].tobytes()
    }
    yield from (f"{name} of a user depends on who else is in the history" for name in sorted(wrong))


def _served(model: FactorModel, history: Ratings) -> dict[str, NDArray[Any]]:
    """Everything that users get, with a row for each of them."""
    listed, scores = model.recommend(history, k=_LISTED)
    users, items = np.repeat(history.users, history.n_items), np.tile(history.items, history.n_users)
    predicted = model.predict(history, users, items)
    return {
        "the query": model.queries(history),
        "a prediction": predicted.reshape(history.n_users, history.n_items),
        "the list": listed,
        "a score": scores,
    }


def _with_newcomer(ratings: Ratings) -> Ratings:
    return replace(
        ratings,
        indptr=np.append(ratings.indptr, ratings.indptr[-1]),
        users=np.append(ratings.users, ratings.users.max() + 1),
    )


def _only(ratings: Ratings, user: int) -> Ratings:
    """The history of one user."""
    own = slice(*ratings.indptr[user : user + 2])
    return replace(
        ratings,
        users=ratings.users[user : user + 1],
        indptr=np.array([0, own.stop - own.start]),
        indices=ratings.indices[own],
        values=None if ratings.values is None else ratings.values[own],
    )
