"""What a user is served may depend on the published model and that user's own history, and on nobody else's."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpals.audit.simulated_data import Rows
from dpals.data.ratings import Ratings
from dpals.model.factor_model import FactorModel

_LIST_LENGTH = 5


def serving_differences(model: FactorModel, rows: Rows) -> Iterator[str]:
    """Kinds of results that differ between a user served alone and the same user served together with all others.

    One of the users has no ratings.
    """
    everyone = _with_newcomer(rows.ratings())
    if model.rating_range is None:
        everyone = replace(everyone, values=None, rating_range=None)
    together = _served(model, everyone)
    wrong = {
        name
        for user in range(everyone.n_users)
        for name, alone in _served(model, everyone.take_users(slice(user, user + 1))).items()
        if alone[0].tobytes() != together[name][user].tobytes()
    }
    yield from (f"{name} of a user depends on who else is in the history" for name in sorted(wrong))


def _served(model: FactorModel, history: Ratings) -> dict[str, NDArray[Any]]:
    """Everything that users get, with a row for each of them."""
    listed, scores = model.recommend(history, k=_LIST_LENGTH)
    users, items = np.repeat(history.users, history.n_items), np.tile(history.items, history.n_users)
    predicted = model.predict(history, users, items)
    return {
        "the search vector": model.search_vectors(history),
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
