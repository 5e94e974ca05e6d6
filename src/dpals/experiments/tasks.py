"""The tasks that methods are compared on: data, split and score, as in the paper."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dpals.data import datasets, simulate
from dpals.data.ratings import Ratings
from dpals.data.read import read_ratings
from dpals.errors import InputError
from dpals.evaluation.metrics import recall_at_k, rmse
from dpals.evaluation.splits import HeldOutUsers, liked, pairs, top_items
from dpals.experiments.experiment import Cell, Scale
from dpals.experiments.settings import make, settings_for
from dpals.methods.base.estimator import Estimator

SIMULATED = "simulated"
MOVIELENS = ("ml-100k", "ml-1m", "ml-10m", "ml-20m")
QUICK_SHAPE = (2_000, 800, 50)  # users, items, ratings of each
FEW_USERS = 20_000  # data sets of fewer have settings of their own
LIKED_SHARE = 0.8  # what counts as liked, as a share of the highest rating: 4 of 5 stars
METRICS = {"ratings": "RMSE", "top400": "RMSE", "items": "Recall@20"}
PROTOCOLS = {"ratings": "ml-10m", "top400": "ml-10m-top400", "items": "ml-20m"}


@dataclass(frozen=True, eq=False)
class Split:
    """One split of the data of a task: what to train on, and how good a trained method is on the test part."""

    train: Ratings
    score: Callable[[Estimator], float]

    def fit_and_score(self, method: Estimator) -> float:
        """How good a method is that is trained here."""
        return self.score(method.fit(self.train))


def data_of(task: str, scale: Scale) -> tuple[str, ...]:
    """The data sets that a task runs on: those asked for, or simulated data and MovieLens 1M where it is.

    A quick run has no time for MovieLens 1M unless it is asked for.
    """
    real = "ml-20m" if task == "items" else "ml-10m"
    with_1m = not scale.quick and datasets.is_here("ml-1m", scale.path)
    names = scale.data or (SIMULATED, *(("ml-1m",) if with_1m else ()))
    for name in names:
        if name in MOVIELENS and name not in ("ml-100k", "ml-1m", real):
            raise InputError(f"this task runs on {real}, not on {name}")
        if name not in (SIMULATED, *MOVIELENS) and not Path(name).exists():
            raise InputError(f"{name!r} is neither simulated, {', '.join(MOVIELENS)} nor a file with ratings")
    return names


def title_of(data: str) -> str:
    """The name of a data set for people: simulated data always says so."""
    known = {SIMULATED: "movielens_like, simulated", "ml-1m": "MovieLens 1M"}
    return known.get(data, data.upper() if data in MOVIELENS else Path(data).name)


def identity_of(data: str, scale: Scale) -> dict[str, Any]:
    """What tells the data of one cell from that of another, beside its name: a file may change."""
    if data in (SIMULATED, *MOVIELENS):
        return {"quick": scale.quick}
    found = Path(data).resolve().stat()
    return {"file": [str(Path(data).resolve()), found.st_size, found.st_mtime], "range": scale.rating_range}


@lru_cache(maxsize=4)
def count_users(data: str, scale: Scale) -> int:
    """How many users a data set has."""
    if data == SIMULATED:
        return QUICK_SHAPE[0] if scale.quick else 69_878
    return _read(data, scale).n_users


@lru_cache(maxsize=1)
def _read(data: str, scale: Scale) -> Ratings:
    if data in MOVIELENS:
        return datasets.load(data, scale.path)
    return read_ratings(data, rating_range=scale.rating_range)


def score_label(task: str) -> str:
    """What stands beside an axis with scores."""
    return f"test {METRICS[task]} ({'lower' if METRICS[task] == 'RMSE' else 'higher'} is better)"


@lru_cache(maxsize=1)
def load_ratings(task: str, data: str, seed: int, scale: Scale) -> Ratings:
    """All that a task knows of a data set. `seed` chooses the simulated data."""
    if data != SIMULATED:
        ratings = _read(data, scale)
    elif scale.quick:
        ratings = simulate.movielens_like(*QUICK_SHAPE, seed=seed)
    elif task == "items":
        ratings = simulate.movielens_like(138_493, 26_744, 144, seed=seed)  # the shape of MovieLens 20M
    else:
        ratings = simulate.movielens_like(seed=seed)
    if task != "items" and ratings.is_implicit:
        raise InputError(f"{data} has no ratings to predict")
    if task == "top400":
        return top_items(ratings, min(400, ratings.n_items))
    if task == "items" and ratings.rating_range is not None:
        return liked(ratings, threshold=LIKED_SHARE * ratings.rating_range[1])
    return ratings


@lru_cache(maxsize=2)
def load_split(task: str, data: str, seed: int, scale: Scale) -> Split:
    """The split of a task on a data set."""
    return split_for(task, load_ratings(task, data, seed, scale), seed)


def split_for(task: str, ratings: Ratings, seed: int) -> Split:
    """Ratings, split as the paper splits those of a task."""
    parts = datasets.split(PROTOCOLS[task], ratings, seed)
    score = _recall if task == "items" else _rmse
    return Split(parts.train, lambda method: score(method, parts.test))


@lru_cache(maxsize=1)
def synthetic_split(n_users: int, seed: int, n_items: int = 1000) -> Split:
    """The paper's synthetic task."""
    task = simulate.paper_synthetic(n_users, n_items, seed=seed)
    return Split(task.train, lambda method: _rmse(method, HeldOutUsers(task.train, task.test)))


def _rmse(method: Estimator, test: HeldOutUsers) -> float:
    return rmse(method.predict(test.history, *pairs(test.target)), np.asarray(test.target.values))


def _recall(method: Estimator, test: HeldOutUsers) -> float:
    return recall_at_k(method.recommend(test.history, 20)[0], test.target)


def method_cell(
    task: str,
    data: str,
    method: str,
    epsilon: float | None,
    seed: int,
    scale: Scale,
    labels: dict[str, Any] | None = None,
    **changes: Any,
) -> Cell:
    """One fit of a method with its settings for the task, and with `changes`, and its score on the test part.

    `labels` says what was changed.
    """
    small = count_users(data, scale) < FEW_USERS
    settings = {**settings_for(task, method, epsilon, small), **changes}

    def measure() -> dict[str, float]:
        split = load_split(task, data, seed, scale)
        return {METRICS[task]: split.fit_and_score(make(method, epsilon, seed, settings))}

    shown = {"task": task, "data": title_of(data), "method": method, "epsilon": epsilon, **(labels or {}), "seed": seed}
    return Cell(shown, {**identity_of(data, scale), "settings": settings}, measure)
