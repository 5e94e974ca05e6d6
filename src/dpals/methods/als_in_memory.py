"""ALS on ratings in memory: the matrix by users and by items, and the half step that both sides share."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.kernels.least_squares import solve_rows
from dpals.kernels.rows import entry_products
from dpals.methods.als_settings import SCORED_LISTS, Errors, Settings, with_lists
from dpals.model.factor_model import FactorModel
from dpals.private.sampling import Split, split_parts
from dpals.private.scoring import misses, squared_errors
from dpals.public.initial_factors import random_factors

Floats = NDArray[np.float32]


class InMemory:
    """Ratings, and when they are trained on, the matrix of them less their mean, by user and by item."""

    def __init__(self, ratings: Ratings) -> None:
        if ratings.n_ratings == 0:
            raise InputError("there are no ratings to learn from")
        self.ratings = ratings
        self.mean = 0.0 if ratings.values is None else float(ratings.values.mean(dtype=np.float64))

    @cached_property
    def _matrices(self) -> tuple[Any, Any]:
        by_user = self.ratings.to_csr()
        by_user.data -= np.float32(self.mean)
        return by_user, by_user.tocsc()

    @property
    def n_ratings(self) -> int:
        return self.ratings.n_ratings

    @property
    def mean_counts(self) -> tuple[float, float]:
        """The mean numbers of ratings of the users, and of the items, that have any."""
        n_users = np.count_nonzero(np.diff(self.ratings.indptr))
        n_items = np.count_nonzero(np.bincount(self.ratings.indices))
        return self.n_ratings / n_users, self.n_ratings / n_items

    def models(
        self,
        settings: Settings,
        alternate: "Callable[[Side, Side, Settings], Iterator[tuple[Floats, Floats]]] | None" = None,
    ) -> Iterator[FactorModel]:
        """The model after each step."""
        by_user, by_item = self._matrices
        user_side = Side(by_user, settings, settings.user_exponent)
        item_side = Side(by_item, settings, settings.item_exponent)
        for factors, item_biases in (alternate or plainly)(user_side, item_side, settings):
            yield settings.model(self.ratings, factors, item_biases, self.mean, user_side.ridge)

    def split(self, split: Split) -> "tuple[InMemory, Callable[[FactorModel], Errors]]":
        """The first part, to train on, and what a model that is given it makes of the second."""
        known, hidden = split_parts(self.ratings, split)

        def errors_of(model: FactorModel) -> Errors:
            return Errors(float(squared_errors(model.serving(), known, hidden).sum()), hidden.n_ratings)

        if not self.ratings.is_implicit:
            return InMemory(known), errors_of
        asked = with_lists(known, hidden, SCORED_LISTS / self.ratings.n_users)

        def misses_of(model: FactorModel) -> Errors:
            missed = misses(model.serving(), *asked)
            return Errors(float(missed.sum()), len(missed))

        return InMemory(known), misses_of


class Side:
    """Users or items: the half step that solves for their vectors and biases, given those of the other side."""

    def __init__(self, matrix, settings: Settings, exponent: float) -> None:  # type: ignore[no-untyped-def]
        self.indptr = matrix.indptr.astype(np.int64)
        self.indices = matrix.indices.astype(np.int32, copy=False)
        self.values: Floats = matrix.data / np.float32(settings.unit)
        counts = np.maximum(np.diff(self.indptr), 1).astype(np.float64)
        self.ridge = float(settings.ridge / np.mean(counts**exponent))
        self.ridges = (self.ridge * counts**exponent).astype(np.float32)
        self.bias_ridge = settings.bias_ridge
        self.unseen = settings.unseen_weight

    def __len__(self) -> int:
        return len(self.ridges)

    def solve(self, others: Floats, other_biases: Floats) -> tuple[Floats, Floats]:
        rank = others.shape[1]
        targets, features = self.values, others
        if self.bias_ridge is not None:
            targets = targets - other_biases[self.indices]
            features = np.column_stack([others, np.ones(len(others), np.float32)])
        base = np.zeros((features.shape[1],) * 2, np.float32)
        if self.unseen:
            base[:rank, :rank] = self.unseen * (others.T @ others)
        if self.bias_ridge is not None:
            base[rank, rank] = self.bias_ridge
        solved = solve_rows(self.indptr, self.indices, targets, features, self.ridges, base, ridged=rank)
        if self.bias_ridge is None:
            return solved, np.zeros(len(solved), np.float32)
        return np.ascontiguousarray(solved[:, :rank]), np.ascontiguousarray(solved[:, rank])

    def residuals(self, solved: Floats, biases: Floats, others: Floats, other_biases: Floats) -> Floats:
        """What factors and biases of both sides leave of the values."""
        fitted = entry_products(self.indptr, self.indices, solved, others)
        left: Floats = self.values - fitted - other_biases[self.indices] - np.repeat(biases, np.diff(self.indptr))
        return left


def plainly(user_side: Side, item_side: Side, settings: Settings) -> Iterator[tuple[Floats, Floats]]:
    """Factors and biases of the items after each step. They start as random numbers."""
    items = first_factors(len(item_side), settings)
    item_biases = np.zeros(len(item_side), np.float32)
    for _ in range(settings.steps):
        users, user_biases = user_side.solve(items, item_biases)
        items, item_biases = item_side.solve(users, user_biases)
        yield items, item_biases


def first_factors(n_items: int, settings: Settings) -> Floats:
    """Where the factors of the items start."""
    return random_factors(n_items, settings.rank, settings.seed).astype(np.float32) * 0.1
