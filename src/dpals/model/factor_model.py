"""What training leaves behind: item factors, and how to serve a user from them and the user's own history."""

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpals.data.ids import find, id_array, is_text
from dpals.data.rating_arrays import checked_range
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.kernels.rows import pair_products, row_norms
from dpals.kernels.top_k import top_k
from dpals.ledger.amounts import spent
from dpals.model.export import export_model
from dpals.model.history import ColumnNames, read_history, take_history
from dpals.model.storage import NUMBERS, damage_reported, read_model, write_model
from dpals.private.frank_wolfe import FrankWolfeProblem, FrankWolfeSteps
from dpals.private.scoring import Serving
from dpals.private.user_vectors import LeastSquaresProblem, LogisticProblem
from dpals.statement.record import Statement

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False, repr=False)
class FactorModel:
    """Item factors and biases, all publishable, with what is needed to serve users.

    A rating is predicted as global mean + item bias + user bias + user vector . item factor. The user's part is
    computed from the user's own history whenever it is needed, and never stored. The model takes over the arrays
    that it is given and makes them read-only.

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
        Weight of (user vector . item factor)^2, summed over all items (lambda_0 of the paper), for implicit
        feedback.
    is_trained
        Items that were trained on; by default all. The others are predicted by the mean of the user's own ratings,
        or score 0 in implicit feedback. A user's ratings of them still count for the user's vector: give such items
        zero factors if theirs mean nothing.
    log_odds
        For implicit feedback: item bias + user vector . item factor is the logarithm of the odds that the user
        has the item, up to a number that depends on the user, and the user's vector is the most likely one if
        vectors are normal with variance 1. Ridges, exponents and `unseen_weight` play no part then.
    frank_wolfe_steps
        Steps of Frank-Wolfe, whose directions are the columns of `item_factors`. Users repeat them on their trained
        items. Ridges, except that of the bias, and exponents play no part then.
    rating_range
        Predictions are cut to it; None for implicit feedback.
    privacy
        The statement of what was spent; None for a model that is not private.
    settings
        ``method``, the name of the method that trained the model, and its arguments, as JSON has them. They are
        public. None for models of older versions and for methods from outside this library.
    history_factors
        One row per item, as long as a user's vector with the bias. The vector that is expected of a user before the
        ratings are looked at is the sum of those of the user's n items, over n + 20: which items people rate tells
        something of their tastes. None for 0.

    Examples
    --------
    >>> model = FactorModel(
    ...     items=["tea", "rum", "gin"],
    ...     item_factors=[[1.0], [-1.0], [-0.9]],
    ...     item_biases=[0.5, 0.0, 0.0],
    ...     global_mean=3.0,
    ...     user_ridge=0.25,
    ...     rating_range=(1, 5),
    ... )
    >>> history = Ratings.from_arrays(["ann"], ["rum"], [5], rating_range=(1, 5), catalogue=model.items)
    >>> model.predict(history, ["ann", "ann"], ["tea", "gin"]).round(2)
    array([1.9 , 4.44], dtype=float32)
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
    log_odds: bool = False
    frank_wolfe_steps: FrankWolfeSteps | None = None
    rating_range: tuple[float, float] | None = None
    privacy: Statement | None = None
    settings: dict[str, Any] | None = None
    history_factors: Floats | None = None

    def __post_init__(self) -> None:
        n_items, everything = len(self.items), np.ones(len(self.items), bool)
        clean: dict[str, Any] = {
            "items": id_array(self.items, "items"),
            "item_factors": np.ascontiguousarray(self.item_factors, np.float32),
            "item_biases": np.ascontiguousarray(self.item_biases, np.float32),
            "is_trained": np.asarray(self.is_trained, bool) if len(self.is_trained) else everything,
            "rating_range": checked_range(self.rating_range, has_ratings=self.rating_range is not None),
            # Python's own numbers go to JSON and back without a change.
            **{name: None if getattr(self, name) is None else float(getattr(self, name)) for name in NUMBERS},
        }
        if self.history_factors is not None:
            clean["history_factors"] = np.ascontiguousarray(self.history_factors, np.float32)
        for name, value in clean.items():
            if isinstance(value, np.ndarray):
                if value.shape[:1] != (n_items,) or value.ndim != (2 if name.endswith("factors") else 1):
                    raise InputError(f"{name} must have one row for each of {n_items:,} items, not {value.shape}")
                value.setflags(write=False)
            if name != "items" and value is not None and not np.isfinite(value).all():
                raise InputError(f"{name} must be finite: training diverged, or the numbers are damaged")
            object.__setattr__(self, name, value)
        if self.log_odds and self.rating_range is not None:
            raise InputError("log odds are for implicit feedback: a model with them has no rating range")
        if self.frank_wolfe_steps is not None and len(self.frank_wolfe_steps.gains) != self.rank:
            raise InputError(f"there must be one step of Frank-Wolfe for each of {self.rank} factors")
        if self.history_factors is not None:
            if self.log_odds or self.frank_wolfe_steps is not None:
                raise InputError("history_factors are for models whose users' vectors come from a ridge regression")
            if self.history_factors.shape[1] != self.rank + (self.user_bias_ridge is not None):
                raise InputError("history_factors must have a column for each factor, and one for the user's bias")
        if min(self.user_ridge, self.user_bias_ridge or 0, self.unseen_weight) < 0:
            raise InputError("user_ridge, user_bias_ridge and unseen_weight must be at least 0")

    def __repr__(self) -> str:
        scores = "implicit feedback"
        if self.rating_range is not None:
            scores = "ratings from {:g} to {:g}".format(*self.rating_range)
        privacy = "not private"
        if self.privacy is not None and self.privacy.is_private:
            privacy = spent(self.privacy.epsilon, self.privacy.delta)
        return f"FactorModel({len(self.items):,} items, rank {self.rank}, {scores}, {privacy})"

    def with_privacy(self, statement: Statement) -> "FactorModel":
        """The same model with a statement of what it cost."""
        return replace(self, privacy=statement)

    @property
    def rank(self) -> int:
        """Number of factors, the user's bias not counted."""
        return int(self.item_factors.shape[1])

    def user_problem(self) -> LeastSquaresProblem | LogisticProblem | FrankWolfeProblem:
        """The problem whose solution is a user's vector, with the user's bias last where there is one."""
        return self._user_problem

    @cached_property
    def _user_problem(self) -> LeastSquaresProblem | LogisticProblem | FrankWolfeProblem:
        offsets = (self.global_mean + self.item_biases).astype(np.float32)
        if self.log_odds:
            return LogisticProblem.of(self.item_factors, offsets)
        if self.frank_wolfe_steps is not None:
            directions = self.item_factors
            if self.user_bias_ridge is not None:
                directions = np.column_stack([directions, np.ones(len(directions), np.float32)])
            steps, bias_ridge = self.frank_wolfe_steps, self.user_bias_ridge
            return FrankWolfeProblem(np.ascontiguousarray(directions), offsets, self.is_trained, steps, bias_ridge)
        return LeastSquaresProblem.of(
            self.item_factors,
            self.item_biases,
            self.global_mean,
            self.user_ridge,
            bias_ridge=self.user_bias_ridge,
            exponent=self.user_exponent,
            history=self.history_factors,
            unseen_weight=self.unseen_weight,
        )

    def history(self, data: Any, **columns: Unpack[ColumnNames]) -> Ratings:
        """The users' own ratings, as the model needs them: with its catalogue, on its scale.

        Rows about items that the model does not know are left out: the ``report`` of the result counts them, and the
        logger "dpals" warns. Users who have no other rows stay, as users without ratings.

        Parameters
        ----------
        data
            A pandas or polars frame or an Arrow table; a SciPy sparse matrix, with a column for each item in the order
            of `items`, whose rows are users 0, 1, 2, ...; or a `Ratings`, which is checked and returned.
        **columns
            Names of the columns of a frame: ``user=``, ``item=``, ``rating=``, ``timestamp=``. Usual names ("user_id",
            "movieId", "stars", ...) are recognised.

        Examples
        --------
        >>> import polars as pl
        >>> model = FactorModel(["tea", "rum"], np.zeros((2, 0)), [0.5, 0.1], 0.0, 1.0)
        >>> model.history(pl.DataFrame({"who": ["ann", "bob"], "item": ["rum", "tea"]}), user="who")
        Ratings(2 users, 2 items, 2 implicit pairs)
        """
        return take_history(data, self.items, self.rating_range, **columns)[0]

    def read_history(self, path: str | os.PathLike[str], **columns: Unpack[ColumnNames]) -> Ratings:
        """The same from a file of any format that `dpals.read_ratings` knows."""
        return read_history(path, self.items, self.rating_range, **columns)

    def user_vectors(self, history: Any) -> Floats:
        """One vector per user of the history. It belongs to that user only: never publish it.

        The history is of any kind that `FactorModel.history` takes, and users are in the order of the ``users`` of its
        result: sorted, for a frame. The user's bias comes last in the vector, if the model has one. Users without
        ratings have zeros.
        """
        return self.user_problem().solve(self.history(history))

    def two_sides(self, history: Any) -> tuple[Floats, Floats]:
        """`search_vectors` and `item_side`: a row per user and a row per item, whose inner product is the score."""
        return self.search_vectors(history), self.item_side()

    def search_vectors(self, history: Any) -> Floats:
        """One row per user for a search in the arrays of ``export("arrays")``. It belongs to that user only.

        Its inner product with the vector of an item is the item's score, before that is cut to the rating range. A row
        depends on that user's history alone, to the last bit. After the user's vector come 1, which is multiplied by
        the offset of a trained item, and the user's mean, which is multiplied by the 1 of an item that was not trained
        on. History and order of users are as in `user_vectors`.
        """
        return self.serving().search_vectors(self.history(history))

    def serving(self) -> Serving:
        """What users are served with; publishable."""
        return Serving(self.user_problem(), self.global_mean, self.item_side())

    def item_side(self) -> Floats:
        """One row per item, for inner products with the rows of `search_vectors`. Publishable; read-only."""
        return self._item_side

    @cached_property
    def _item_side(self) -> Floats:
        problem = self.user_problem()
        vectors = np.column_stack([problem.features, problem.offsets, np.zeros_like(problem.offsets)])
        vectors[~self.is_trained] = np.eye(vectors.shape[1])[-1]
        vectors.setflags(write=False)
        return vectors

    def predict(self, history: Any, users: ArrayLike, items: ArrayLike) -> Floats:
        """Ratings, or scores, that users would give to items. They belong to those users.

        Parameters
        ----------
        history
            The users' own ratings, of any kind that `FactorModel.history` takes; the users may be new to the model.
            Predictions for a user with an empty history come from the items alone.
        users, items
            Ids, pair by pair.
        """
        ratings = self.history(history)
        user_side, item_side = self.two_sides(ratings)
        rows, columns = ratings.user_index(users), ratings.item_index(items)
        if rows.shape != columns.shape:
            raise InputError(f"users and items come in pairs, but there are {len(rows):,} and {len(columns):,}")
        return self._in_range(pair_products(rows, columns, user_side, item_side))

    @overload
    def recommend(self, history: Ratings, k: int = 20, exclude_seen: bool = True) -> tuple[NDArray[Any], Floats]: ...
    @overload
    def recommend(self, history: Any, k: int = 20, exclude_seen: bool = True) -> Any: ...
    def recommend(self, history: Any, k: int = 20, exclude_seen: bool = True) -> Any:
        """The k items with the highest scores for each user of the history. They belong to that user.

        Parameters
        ----------
        history
            As in `predict`.
        k
            How many items for each user.
        exclude_seen
            Leave out the items of the user's history.

        Returns
        -------
        ids, scores
            Both of shape (n_users, k), best first. Scores are cut to the rating range after the items are sorted; items
            with equal scores are in the order of the catalogue. If fewer than k items are left, the remaining scores
            are minus infinity and the remaining ids no item's id: "" for text, and for numbers the first of -1, -2, ...
            that is not taken.
        frame
            Instead of these, if the history is a frame: a frame of the same library with the columns user, rank (1 is
            best), item and score. User and item are called as in the history. Empty places have no rows.

        Examples
        --------
        >>> model = FactorModel(["tea", "rum", "gin"], np.zeros((3, 0)), [0.5, 0.1, 0.3], 0.0, 1.0)
        >>> history = Ratings.from_arrays(["ann", "bob", "bob"], ["rum", "tea", "gin"], catalogue=model.items)
        >>> ids, scores = model.recommend(history, k=2)
        >>> ids.tolist()
        [['tea', 'gin'], ['rum', '']]
        """
        ratings, layout = take_history(history, self.items, self.rating_range)
        if not 1 <= k <= len(self.items):
            raise InputError(f"k must lie between 1 and the number of items, {len(self.items):,}, not {k}")
        seen = (ratings.indptr, ratings.indices) if exclude_seen else None
        best, scores = top_k(*self.two_sides(ratings), k, excluded=seen)
        scores = np.where(best < 0, scores, self._in_range(scores))
        ids = np.append(self.items, _no_item(self.items))[best]  # position -1 stands for no item
        return (ids, scores) if layout is None else layout.frame(ratings.users, ids, scores)

    def similar_items(self, item: Any, k: int = 10) -> tuple[NDArray[Any], Floats]:
        """The k other items whose factors have the largest cosine with this item's, and these cosines.

        Items that were not trained on and items with zero factors are similar to nothing: they are left out, and asking
        about one is an error. Fewer than k items come back if there are no more.

        Examples
        --------
        >>> model = FactorModel(["tea", "rum", "gin"], [[1.0, 0.0], [-3.0, 4.0], [0.0, 2.0]], [0, 0, 0], 0.0, 1.0)
        >>> ids, cosines = model.similar_items("rum")
        >>> ids.tolist(), cosines
        (['gin', 'tea'], array([ 0.8, -0.6], dtype=float32))
        """
        if k < 1:
            raise InputError(f"k must be at least 1, not {k}")
        position = int(find(self.items, [item], "item", unknown_ok=False)[0])
        lengths = row_norms(self.item_factors)
        comparable = self.is_trained & (lengths > 0)
        if not comparable[position]:
            raise InputError(f"the model has no factors for the item {item!r}, so nothing is similar to it")
        comparable[position] = False
        others = np.flatnonzero(comparable)
        directions = self.item_factors / np.where(lengths > 0, lengths, 1.0)[:, None]
        cosines = (directions[others] * directions[position]).sum(axis=1)
        best = np.argsort(-cosines, kind="stable")[:k]
        return self.items[others[best]], cosines[best].astype(np.float32)

    @overload
    def export(self, format: Literal["arrays"]) -> tuple[NDArray[Any], Floats]: ...
    @overload
    def export(self, format: Literal["parquet"], path: str | os.PathLike[str]) -> None: ...
    def export(self, format: str, path: str | os.PathLike[str] | None = None) -> tuple[NDArray[Any], Floats] | None:
        """What is known about the items, for other programs. Publishable.

        Parameters
        ----------
        format
            "parquet" writes a file with one row per item: item, bias, factor_0, factor_1, ..., history_0, ... for a
            model with history factors, trained. "arrays"
            returns ids and vectors (float32, C-contiguous) for an index that searches for the largest inner product,
            such as those of faiss and hnswlib; `search_vectors` makes the vectors to search for.
        path
            Where to write the file.

        Examples
        --------
        >>> model = FactorModel(["tea", "rum"], [[1.0], [-1.0]], [0.5, 0.0], 3.0, 0.25, rating_range=(1, 5))
        >>> history = Ratings.from_arrays(["ann"], ["rum"], [5], rating_range=(1, 5), catalogue=model.items)
        >>> ids, vectors = model.export("arrays")
        >>> ids.tolist(), (vectors @ model.search_vectors(history)[0]).round(2)
        (['tea', 'rum'], array([1.9, 4.6], dtype=float32))
        """
        return export_model(self, format, path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a folder: model.json, one safetensors file and the privacy statement as a page.

        Nothing in it belongs to a user. If saving is interrupted, the folder holds either the old model or the new one,
        complete.
        """
        write_model(Path(path), self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "FactorModel":
        """Read a model that `save` wrote; `dpals.load` does the same."""
        arguments = read_model(Path(path))
        with damage_reported(Path(path)):
            return cls(**arguments)

    def _in_range(self, scores: Floats) -> Floats:
        if self.rating_range is None:
            return scores
        low, high = self.rating_range
        return np.clip(scores, np.float32(low), np.float32(high))


def load(path: str | os.PathLike[str]) -> FactorModel:
    """Read a saved model; InputError if the folder holds anything else.

    Examples
    --------
    >>> import tempfile
    >>> model = FactorModel([10, 20], [[1.0], [2.0]], [0.0, 0.1], 3.5, 1.0, rating_range=(0.5, 5))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(folder)
    ...     load(folder)
    FactorModel(2 items, rank 1, ratings from 0.5 to 5, not private)
    """
    return FactorModel.load(path)


def _no_item(items: NDArray[Any]) -> Any:
    """An id that no item has."""
    if is_text(items):
        return ""
    candidates = np.arange(-1, -len(items) - 2, -1).astype(items.dtype)  # from the top down for unsigned ids
    return candidates[~np.isin(candidates, items)][0]
