"""What training leaves behind: item factors, and how to serve a user from them and the user's own history."""

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpals.errors import InputError
from dpals.kernels.rows import row_sums
from dpals.private.user_step import UserProblem
from dpals.ratings import Ratings
from dpals.release.statement import Statement

Floats = NDArray[np.float32]

FORMAT = 1
_ARRAYS, _FACTS = "arrays.safetensors", "model.json"
_USERS_AT_ONCE = 1_024


@dataclass(frozen=True, eq=False)
class FactorModel:
    """Item factors and biases, all publishable, with what is needed to serve users.

    A rating is predicted as global mean + item bias + user bias + user vector . item factor, where the user's
    part is computed from the user's own history whenever it is needed; it is nowhere stored.

    Parameters
    ----------
    items
        Ids of the catalogue.
    item_factors
        One row per item.
    item_biases
        One number per item.
    global_mean
        What every prediction starts from.
    user_ridge, user_exponent
        A user with n ratings has the ridge user_ridge * n^user_exponent.
    user_bias_ridge
        Ridge of the user's bias; None for a model without user biases.
    unseen_weight
        Weight of the squared predictions on all items (lambda_0 of the paper), for implicit feedback.
    is_trained
        Items that were trained on. Others are predicted by the mean of the user's own ratings; by default all
        items are.
    rating_range
        Predictions are cut to it; None for implicit feedback.
    privacy
        The statement of what was spent; None for a model that is not private.
    """

    items: NDArray[Any]
    item_factors: Floats
    item_biases: Floats
    global_mean: float
    user_ridge: float
    user_exponent: float = 0.0
    user_bias_ridge: float | None = None
    unseen_weight: float = 0.0
    is_trained: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    rating_range: tuple[float, float] | None = None
    privacy: Statement | None = None

    def __post_init__(self) -> None:
        if len(self.is_trained) == 0:
            object.__setattr__(self, "is_trained", np.ones(len(self.items), bool))
        for name in ("items", "item_factors", "item_biases", "is_trained"):
            array = getattr(self, name)
            if len(array) != len(self.items):
                raise ValueError(f"{name} must have one row per item")
            array.setflags(write=False)

    @property
    def rank(self) -> int:
        return int(self.item_factors.shape[1])

    def user_problem(self) -> UserProblem:
        """The problem whose solution is a user's vector, with the user's bias last where there is one."""
        features = self.item_factors
        if self.user_bias_ridge is not None:
            features = np.column_stack([features, np.ones(len(features), np.float32)])
        base = np.zeros((features.shape[1],) * 2, np.float32)
        base[: self.rank, : self.rank] = self.unseen_weight * (self.item_factors.T @ self.item_factors)
        if self.user_bias_ridge is not None:
            base[-1, -1] = self.user_bias_ridge
        return UserProblem(
            features=np.ascontiguousarray(features),
            offsets=(self.global_mean + self.item_biases).astype(np.float32),
            ridge=self.user_ridge,
            exponent=self.user_exponent,
            base=base,
            ridged=self.rank,
        )

    def user_vectors(self, history: Ratings) -> Floats:
        """One vector per user of the history. It belongs to that user only: never publish it."""
        self._check_history(history)
        return self.user_problem().solve(history)

    def predict(self, history: Ratings, users: ArrayLike, items: ArrayLike) -> NDArray[np.float32]:
        """Ratings, or scores, that users would give to items.

        Parameters
        ----------
        history
            The users' own ratings; the users may be new to the model.
        users, items
            Ids, pair by pair.
        """
        self._check_history(history)
        rows, columns = history.user_index(users), history.item_index(items)
        if rows.shape != columns.shape:
            raise InputError(f"users and items go in pairs: {rows.shape} and {columns.shape}")
        problem = self.user_problem()
        vectors = problem.solve(history)
        scores = problem.offsets[columns] + np.einsum("nk,nk->n", vectors[rows], problem.features[columns])
        if not self.is_trained.all():
            scores = np.where(self.is_trained[columns], scores, self._user_means(history)[rows])
        return self._in_range(scores)

    def recommend(
        self, history: Ratings, k: int = 20, exclude_seen: bool = True
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The k items with the highest scores for each user of the history.

        Returns
        -------
        ids, scores
            Both of shape (n_users, k), best first. Where fewer than k items are left, the rest of the scores
            is minus infinity.
        """
        self._check_history(history)
        if not 1 <= k <= len(self.items):
            raise InputError(f"k must lie between 1 and the number of items, {len(self.items)}, not {k}")
        problem = self.user_problem()
        vectors = problem.solve(history)
        means = self._user_means(history)
        best = np.empty((history.n_users, k), np.int64)
        scores = np.empty((history.n_users, k), np.float32)
        for start in range(0, history.n_users, _USERS_AT_ONCE):
            block = slice(start, min(start + _USERS_AT_ONCE, history.n_users))
            table = vectors[block] @ problem.features.T + problem.offsets
            table[:, ~self.is_trained] = means[block, None]
            if exclude_seen:
                entries = slice(history.indptr[block.start], history.indptr[block.stop])
                rows = np.repeat(np.arange(len(table)), np.diff(history.indptr[block.start : block.stop + 1]))
                table[rows, history.indices[entries]] = -np.inf
            top = np.argpartition(-table, k - 1, axis=1)[:, :k]
            ordered = np.take_along_axis(top, np.argsort(-np.take_along_axis(table, top, 1), axis=1, kind="stable"), 1)
            best[block], scores[block] = ordered, np.take_along_axis(table, ordered, 1)
        return self.items[best], np.where(np.isneginf(scores), scores, self._in_range(scores))

    def similar_items(self, item: Any, k: int = 10) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The k items whose factors point most nearly the same way, with the cosine; the item itself left out."""
        position = int(np.flatnonzero(self.items == item)[0]) if np.any(self.items == item) else None
        if position is None:
            raise InputError(f"unknown item {item!r}")
        lengths = np.maximum(np.linalg.norm(self.item_factors, axis=1), 1e-12)
        cosines = self.item_factors @ self.item_factors[position] / (lengths * lengths[position])
        cosines[position] = -np.inf
        best = np.argsort(-cosines, kind="stable")[: min(k, len(self.items) - 1)]
        return self.items[best], cosines[best].astype(np.float32)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a folder: arrays.safetensors and model.json. Nothing in it belongs to a user."""
        from safetensors.numpy import save

        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        arrays = save(
            {
                "item_factors": np.ascontiguousarray(self.item_factors, np.float32),
                "item_biases": np.ascontiguousarray(self.item_biases, np.float32),
                "is_trained": self.is_trained.astype(np.uint8),
            }
        )
        facts = {
            "format": FORMAT,
            "sha256": hashlib.sha256(arrays).hexdigest(),
            "items": self.items.tolist(),
            "global_mean": self.global_mean,
            "user_ridge": self.user_ridge,
            "user_exponent": self.user_exponent,
            "user_bias_ridge": self.user_bias_ridge,
            "unseen_weight": self.unseen_weight,
            "rating_range": self.rating_range,
            "privacy": None if self.privacy is None else json.loads(self.privacy.to_json()),
        }
        _write(folder / _ARRAYS, arrays)
        _write(folder / _FACTS, json.dumps(facts, indent=1).encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "FactorModel":
        """Read a model that `save` wrote; InputError where the folder holds anything else."""
        from safetensors.numpy import load

        folder = Path(path)
        try:
            facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
            stored = (folder / _ARRAYS).read_bytes()
        except FileNotFoundError as problem:
            raise InputError(f"{folder} is not a model folder: {Path(problem.filename).name} is missing") from problem
        except ValueError as problem:
            raise InputError(f"{folder / _FACTS} is damaged: {problem}") from problem
        if not isinstance(facts, dict) or facts.get("format") != FORMAT:
            raise InputError(f"{folder} was not written by this version of dpals: its format is not {FORMAT}")
        if hashlib.sha256(stored).hexdigest() != facts.get("sha256"):
            raise InputError(f"{folder / _ARRAYS} is damaged, or belongs to another model")
        try:
            arrays = load(stored)
            items = facts["items"]
            as_text = bool(items) and isinstance(items[0], str)
            return cls(
                items=np.array(items, dtype=np.dtypes.StringDType()) if as_text else np.array(items),
                item_factors=arrays["item_factors"],
                item_biases=arrays["item_biases"],
                global_mean=facts["global_mean"],
                user_ridge=facts["user_ridge"],
                user_exponent=facts["user_exponent"],
                user_bias_ridge=facts["user_bias_ridge"],
                unseen_weight=facts["unseen_weight"],
                is_trained=arrays["is_trained"].astype(bool),
                rating_range=None if facts["rating_range"] is None else tuple(facts["rating_range"]),
                privacy=None if facts["privacy"] is None else Statement.from_json(json.dumps(facts["privacy"])),
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise InputError(f"{folder / _FACTS} is damaged: {problem}") from problem

    def _check_history(self, history: Ratings) -> None:
        if not isinstance(history, Ratings):
            raise InputError(f"the history must be a dpals.Ratings, not a {type(history).__name__}")
        if not np.array_equal(history.items, self.items):
            raise InputError("the history must have the catalogue of the model: give catalogue=model.items")
        if history.is_implicit != (self.rating_range is None):
            raise InputError("the model was trained on ratings and the history is implicit, or the other way round")

    def _user_means(self, history: Ratings) -> NDArray[np.float64]:
        """Mean of each user's own ratings; the global mean for users without any, 0 for implicit feedback."""
        if history.values is None:
            return np.zeros(history.n_users)
        counts = np.diff(history.indptr)
        sums = row_sums(history.indptr, history.values)
        return np.where(counts > 0, sums / np.maximum(counts, 1), self.global_mean)

    def _in_range(self, scores: NDArray[Any]) -> NDArray[np.float32]:
        return np.asarray(scores if self.rating_range is None else np.clip(scores, *self.rating_range), np.float32)


def _write(path: Path, content: bytes) -> None:
    """All of the file or none of it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
