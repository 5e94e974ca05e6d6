"""Numbers that say how good predictions and recommendations are.

They are computed from private data without noise: for the owner's own evaluation, not for publishing.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpals.data.ids import is_text, positions
from dpals.data.ratings import Ratings
from dpals.errors import InputError


def rmse(predictions: ArrayLike, truth: ArrayLike) -> float:
    """Root of the mean squared error.

    Examples
    --------
    >>> rmse([3.0, 5.0], [3.0, 3.0])
    1.4142135623730951
    """
    predicted, actual = np.asarray(predictions, np.float64), np.asarray(truth, np.float64)
    if predicted.shape != actual.shape:
        raise ValueError(f"predictions and truth go in pairs, but have the shapes {predicted.shape} and {actual.shape}")
    if actual.size == 0:
        raise ValueError("there is nothing to compare")
    return float(np.sqrt(np.mean((predicted - actual) ** 2)))


def recall_at_k(recommended: ArrayLike, targets: Ratings, k: int = 20, *, by_index: bool = False) -> float:
    """Share of what users turned out to want that is among their first k recommendations.

    For each user, the number of targets among the first k recommendations, over the smaller of k and the number
    of targets; then the mean over the users with targets. It is 1 where nothing better could be recommended.

    Parameters
    ----------
    recommended
        Ids of items, best first, with one row per user of `targets`: the first result of `FactorModel.recommend`.
        To follow the paper, recommend from the users' histories and exclude what is in them (`exclude_seen`, the
        default). An id that is not in the catalogue is a place left empty.
    targets
        What the users turned out to want; values play no part.
    k
        How many recommendations count.
    by_index
        `recommended` holds indices into the catalogue in place of ids, and -1 for a place left empty.

    Examples
    --------
    >>> targets = Ratings.from_arrays(["ann", "ann", "ann", "bob"], ["tea", "rum", "gin", "tea"])
    >>> recall_at_k([["tea", "ale"], ["rum", "gin"]], targets, k=2)
    0.25
    """
    return float(np.mean(user_recall(recommended, targets, k, by_index=by_index)))


def ndcg_at_k(recommended: ArrayLike, targets: Ratings, k: int = 20, *, by_index: bool = False) -> float:
    """Normalised discounted cumulative gain: like `recall_at_k`, but earlier places weigh more.

    A target in place r = 1, 2, ... counts 1 / log2(r + 1); the sum is divided by the largest that the user's
    number of targets allows, and the mean taken over the users with targets.

    Parameters
    ----------
    recommended, targets, k, by_index
        As in `recall_at_k`.

    Examples
    --------
    >>> targets = Ratings.from_arrays(["ann"], ["tea"], catalogue=["tea", "rum", "gin"])
    >>> ndcg_at_k([["tea", "rum", "gin"]], targets, k=3), ndcg_at_k([["rum", "gin", "tea"]], targets, k=3)
    (1.0, 0.5)
    """
    return float(np.mean(user_ndcg(recommended, targets, k, by_index=by_index)))


def user_recall(
    recommended: ArrayLike, targets: Ratings, k: int = 20, *, by_index: bool = False
) -> NDArray[np.float64]:
    """What `recall_at_k` is the mean of: a number for each user with targets."""
    hits, n_targets = _hits(recommended, targets, k, by_index)
    result: NDArray[np.float64] = hits.sum(axis=1) / np.minimum(k, n_targets)
    return result


def user_ndcg(recommended: ArrayLike, targets: Ratings, k: int = 20, *, by_index: bool = False) -> NDArray[np.float64]:
    """What `ndcg_at_k` is the mean of: a number for each user with targets."""
    hits, n_targets = _hits(recommended, targets, k, by_index)
    gains = 1 / np.log2(np.arange(2, k + 2))
    best = np.cumsum(gains)[np.minimum(k, n_targets) - 1]
    result: NDArray[np.float64] = hits @ gains / best
    return result


def _hits(
    recommended: ArrayLike, targets: Ratings, k: int, by_index: bool
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """For users with targets: which of the first k recommendations are targets, and the number of targets."""
    columns = _indices(recommended, targets, k, by_index)
    n_targets = np.diff(targets.indptr)
    # One whole number per pair; those of the targets rise, because indices do within a user.
    pairs = np.arange(targets.n_users)[:, None] * targets.n_items + columns
    wanted = targets.rows * targets.n_items + targets.indices
    if len(wanted) == 0:
        raise ValueError("no user has a target: there is nothing to compare")
    nearest = np.minimum(np.searchsorted(wanted, pairs), len(wanted) - 1)
    hits = (wanted[nearest] == pairs) & (columns >= 0)
    return hits[n_targets > 0], n_targets[n_targets > 0]


def _indices(recommended: ArrayLike, targets: Ratings, k: int, by_index: bool) -> NDArray[np.int64]:
    """Index of each of the first k recommendations, -1 for none; an error where an item is there twice."""
    table = np.asarray(recommended)
    if table.ndim != 2 or len(table) != targets.n_users or not 1 <= k <= table.shape[1]:
        raise InputError(
            f"recommendations of the shape {table.shape} do not fit: there must be one row for each of the "
            f"{targets.n_users:,} users of the targets, and at least k = {k} columns"
        )
    table = table[:, :k]
    expects_text = not by_index and is_text(targets.items)
    if table.dtype.kind not in ("UTO" if expects_text else "iu"):
        kind = "text" if expects_text else "whole numbers"
        raise InputError(f"the recommendations must be {kind} here, not {table.dtype}: {table.ravel()[:1].tolist()}")
    if not by_index:
        columns = positions(targets.items, table.ravel()).reshape(table.shape)
    elif table.size == 0 or (table.max() < targets.n_items and table.min() >= -1):
        columns = table.astype(np.int64)
    else:
        raise InputError(f"indices must lie between 0 and {targets.n_items - 1:,}, or be -1 for none")
    ordered = np.sort(columns, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if repeated.any():
        users = targets.users[repeated.any(axis=1)].tolist()
        raise InputError(f"an item is recommended more than once to the user {users[0]!r}")
    return columns
