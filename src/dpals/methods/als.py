"""Alternating least squares without privacy: the reference for everything else."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import Population
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.kernels.least_squares import solve_rows
from dpals.kernels.rows import entry_products
from dpals.methods.als_in_blocks import count, item_equations
from dpals.methods.base.estimator import Estimator
from dpals.methods.base.parameters import COUNT, NOT_NEGATIVE, POSITIVE, WHOLE, Within, parameter
from dpals.methods.paper_settings import reference_settings
from dpals.model.factor_model import FactorModel
from dpals.private.user_vectors import LeastSquaresProblem
from dpals.public.initial_factors import random_factors
from dpals.public.item_step import count_ridges
from dpals.release.passes import Engine

Floats = NDArray[np.float32]


class ALS(Estimator):
    """Matrix factorisation by alternating least squares, for ratings and for implicit feedback. Not private.

    Minimises, in the notation of the paper's appendix,

        |P(M - U V^T)|^2 + lambda_0 |U V^T|^2 + lambda sum_i n_i^nu / Z |U_i|^2 + lambda sum_j n_j^mu / Z' |V_j|^2

    where n_i and n_j are the numbers of ratings of user i and item j, and Z and Z' the means of n_i^nu and n_j^mu.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=1000, n_items=200, mean_ratings=30, seed=1)
    >>> model = dpals.ALS(rank=4, steps=5).fit(ratings)
    >>> model.item_factors_.shape
    (200, 4)
    """

    rank: int = parameter("Length of the vectors.", COUNT, default=32, kw_only=False)
    steps: int = parameter("How often users and items are solved for.", COUNT, default=15, kw_only=False)
    ridge: float = parameter("lambda.", POSITIVE, default=12.0)
    user_exponent: float = parameter("nu: more ridge for users with many ratings.", NOT_NEGATIVE, default=0.7)
    item_exponent: float = parameter("mu: more ridge for items with many ratings.", NOT_NEGATIVE, default=0.7)
    unseen_weight: float | None = parameter(
        "lambda_0: penalty on predictions for all pairs. By default 0.1 for implicit feedback and 0 for ratings.",
        Within(closed=True, optional=True),
        default=None,
    )
    biases: bool | None = parameter(
        "Whether items and users have biases beside their vectors. By default for ratings, not for implicit feedback.",
        default=None,
    )
    bias_ridge: float = parameter("Ridge of the biases.", POSITIVE, default=5.0)
    seed: int = parameter("Chooses the random item factors that training starts from.", WHOLE, default=0)

    @classmethod
    def from_paper(cls, name: str, **changes: Any) -> "ALS":
        """The settings of the paper's table that are not private, for ``ml-10m-top400``, ``ml-10m`` or ``ml-20m``.

        Examples
        --------
        >>> ALS.from_paper("ml-10m").rank
        128
        """
        return cls(**{**reference_settings(name), "biases": False, **changes})

    def _check(self, ratings: Population) -> None:
        if self.rank > ratings.n_items:
            raise InputError(f"rank {self.rank} is more than the number of items, {ratings.n_items}")

    def _train(self, ratings: Ratings) -> FactorModel:
        if ratings.n_ratings == 0:
            raise InputError("there are no ratings to learn from")
        bias_ridge, unseen = self._bias_ridge(ratings), self._unseen_weight(ratings)
        by_user = ratings.to_csr()
        mean = 0.0 if ratings.is_implicit else float(by_user.data.mean(dtype=np.float64))
        by_user.data -= np.float32(mean)
        by_item = by_user.tocsc()
        user_side = Side(by_user, self.ridge, self.user_exponent, bias_ridge, unseen)
        item_side = Side(by_item, self.ridge, self.item_exponent, bias_ridge, unseen)
        for number, found in enumerate(self._alternate(user_side, item_side), 1):
            latest = self._model(ratings, *found, mean, user_side.ridge)
            self._after_step(number, self._n_steps, latest)
        return latest

    def _train_in_blocks(self, population: Population, engine: Engine) -> FactorModel:
        bias_ridge, unseen = self._bias_ridge(population), self._unseen_weight(population)
        counts = count(population, engine)
        user_ridge = self.ridge / counts.user_powers(self.user_exponent)
        item_ridges = count_ridges(self.ridge, counts.of_items, self.item_exponent)
        factors, biases = self._first_factors(population.n_items), np.zeros(population.n_items, np.float32)
        for number in range(1, self.steps + 1):
            problem = self._model(population, factors, biases, counts.mean, user_ridge).user_problem()
            assert isinstance(problem, LeastSquaresProblem)
            equations = item_equations(population, engine, problem, counts)
            factors, biases = equations.solve(item_ridges, bias_ridge, unseen)
            latest = self._model(population, factors, biases, counts.mean, user_ridge)
            self._after_step(number, self.steps, latest)
        return latest

    def _bias_ridge(self, ratings: Population) -> float | None:
        biased = (not ratings.is_implicit) if self.biases is None else self.biases
        return self.bias_ridge if biased else None

    def _unseen_weight(self, ratings: Population) -> float:
        return (0.1 if ratings.is_implicit else 0.0) if self.unseen_weight is None else self.unseen_weight

    def _model(
        self, ratings: Population, factors: Floats, item_biases: Floats, mean: float, user_ridge: float
    ) -> FactorModel:
        return FactorModel(
            items=ratings.items,
            item_factors=factors.copy(),  # a model makes its arrays read-only
            item_biases=item_biases.copy(),
            global_mean=mean,
            user_ridge=user_ridge,
            user_exponent=self.user_exponent,
            user_bias_ridge=self._bias_ridge(ratings),
            unseen_weight=self._unseen_weight(ratings),
            rating_range=ratings.rating_range,
        )

    @property
    def _n_steps(self) -> int:
        return self.steps

    def _alternate(self, user_side: "Side", item_side: "Side") -> Iterator[tuple[Floats, Floats]]:
        """Factors and biases of the items after each step."""
        n_items = len(item_side.indptr) - 1
        items = self._first_factors(n_items)
        item_biases = np.zeros(n_items, np.float32)
        for _ in range(self.steps):
            users, user_biases = user_side.solve(items, item_biases)
            items, item_biases = item_side.solve(users, user_biases)
            yield items, item_biases

    def _first_factors(self, n_items: int) -> Floats:
        return random_factors(n_items, self.rank, self.seed).astype(np.float32) * 0.1


class Side:
    """Users or items: the half step that solves for their vectors and biases, given those of the other side."""

    def __init__(self, matrix, ridge: float, exponent: float, bias_ridge: float | None, unseen: float) -> None:  # type: ignore[no-untyped-def]
        self.indptr = matrix.indptr.astype(np.int64)
        self.indices = matrix.indices.astype(np.int32, copy=False)
        self.values: Floats = matrix.data
        counts = np.maximum(np.diff(self.indptr), 1).astype(np.float64)
        self.ridge = float(ridge / np.mean(counts**exponent))
        self.ridges = (self.ridge * counts**exponent).astype(np.float32)
        self.bias_ridge = bias_ridge
        self.unseen = unseen

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
