"""Private Frank-Wolfe: trace-norm completion in which users learn one direction after the other."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dpals.data.population import Population
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.methods.base.estimator import Estimator, PrivateEstimator, needs_ratings
from dpals.methods.base.options import Request
from dpals.methods.base.parameters import COUNT, POSITIVE, SHARE, WHOLE, Within, parameter
from dpals.methods.shared.covariance import LARGEST_COVARIANCE, release_covariance
from dpals.methods.shared.means import release_mean, release_popularity
from dpals.methods.shared.singular_vectors import top_right_vectors
from dpals.model.factor_model import FactorModel
from dpals.private.covariance import (
    FrankWolfeRows,
    Products,
    RowsOf,
    frank_wolfe_rows,
    product_contribution,
    squared_length_contribution,
)
from dpals.private.frank_wolfe import FrankWolfeProblem, FrankWolfeSteps
from dpals.public.initial_factors import random_factors
from dpals.public.item_step import frequent_size, most_frequent
from dpals.public.spectra import eigenpairs
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]

_LENGTH_PART = 30  # one part in so many of a direction's cost says how long the product with it is
_MEAN_SHARE = 0.01  # of the budget, for the global mean


class DPFrankWolfe(PrivateEstimator):
    """Private Frank-Wolfe in the trace-norm ball (Jain, Thakkar & Thakurta 2018).

    Each step publishes a direction v, near the top right singular vector of the residuals of all users, and its
    singular value s. Users then move a share of the way to radius * (residuals . v) / s * v. Nobody else needs to know
    a user's row: any user, also a new one, repeats the published steps on their own ratings.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    >>> model = dpals.DPFrankWolfe(epsilon=5.0, delta=1e-5, steps=3).fit(ratings)
    >>> model.item_factors_.shape
    (100, 3)
    """

    epsilon: float | None = parameter(  # type: ignore[assignment]
        "The privacy budget. None for exact singular vectors, no noise, and no privacy.", default=1.0, kw_only=False
    )
    radius: float = parameter(
        "Radius of the trace-norm ball, in units of the first singular value, which is released.",
        POSITIVE,
        default=10.0,
    )
    steps: int = parameter("Number of directions.", COUNT, default=10)
    pace: Literal["equal", "falling"] = parameter(
        "How far step t = 0, 1, ... goes to the edge of the ball: ``equal``, 1 / steps of the way, as in the paper by "
        "Jain et al.; ``falling``, 2 / (t + 2) of it, as is usual without noise.",
        default="equal",
    )
    row_clip: float = parameter(
        "Largest norm of a user's residuals; larger ones are scaled down.", POSITIVE, default=5.0
    )
    search: Literal["power", "covariance"] = parameter(
        "How v is found: ``power``, by noisy power iteration, for any catalogue; ``covariance``, from a noisy matrix "
        "of items by items, for small ones.",
        default="power",
    )
    power_steps: int = parameter("Releases per direction in power iteration.", COUNT, default=2)
    product_clip: float = parameter(
        "Largest product of a user's residuals with a unit vector, as a share of `row_clip`.",
        Within(low=1e-9, high=1, closed=True),
        default=0.3,
    )
    frequent_fraction: float = parameter(
        "Share of the items that are trained on, those with the highest released weights. The others are predicted by "
        "the user's mean.",
        Within(low=1e-9, high=1, closed=True),
        default=0.2,
    )
    centre: bool = parameter("Whether the global mean is released and taken off first.", default=True)
    user_shrinkage: float | None = parameter(
        "How many ratings' worth of evidence a user's own mean starts with; None to do without user means.",
        Within(closed=True, optional=True),
        default=5.0,
    )
    count_share: float = parameter(
        "Share of the budget for the weights of the items, if they are needed.", SHARE, default=0.05
    )
    seed: int = parameter("Chooses where power iteration starts. It is public.", WHOLE, default=0)

    @property
    def in_memory_only(self) -> bool:  # type: ignore[override]
        """Without an epsilon the method looks at the whole matrix."""
        return self.epsilon is None

    def _check(self, ratings: Population) -> None:
        needs_ratings(self, ratings)
        trained = frequent_size(ratings.n_items, self.frequent_fraction)
        if self.search == "covariance" and trained > LARGEST_COVARIANCE:
            raise InputError(f"a matrix of {trained:,} x {trained:,} items is too large: use search='power'")
        if self.count_share + _MEAN_SHARE >= 1:
            raise ValueError("count_share must leave something of the budget")

    def _check_request(self, request: Request) -> None:
        if self.epsilon is not None:
            return
        if request.ledger is not None:
            raise ValueError("without an epsilon nothing is private, so there is nothing to record in a ledger")
        Estimator._check_request(self, request)

    def _trained(self, ratings: Population, request: Request) -> FactorModel:
        if self.epsilon is not None:
            return super()._trained(ratings, request)
        return Estimator._trained(self, ratings, request)

    def _train(self, ratings: Ratings) -> FactorModel:
        if ratings.n_ratings == 0:
            raise InputError("there are no ratings to learn from")
        return self._train_with(ratings, _ExactStatistics())

    def _fit(self, ratings: Population, mechanism: Mechanism) -> FactorModel:
        return self._train_with(ratings, _ReleasedStatistics(self, mechanism))

    def _train_with(self, ratings: Population, source: "_ExactStatistics | _ReleasedStatistics") -> FactorModel:
        mean = source.mean(ratings) if self.centre else 0.0
        trained = np.ones(ratings.n_items, bool)
        if self.frequent_fraction < 1:
            trained = most_frequent(source.weights(ratings), self.frequent_fraction)
        directions, gains, radius = np.zeros((ratings.n_items, 0)), np.zeros(0), 0.0
        shares = self._shares()
        model = self._model(ratings, directions, gains, np.zeros(0), mean, trained)
        for step, share in enumerate(shares):
            problem = model.user_problem()
            assert isinstance(problem, FrankWolfeProblem)
            direction, singular = source.direction(ratings, FrankWolfeRows(problem, trained), step)
            singular = max(singular, 1e-9)
            radius = radius or self.radius * singular
            directions = np.column_stack([directions, np.zeros(ratings.n_items)])
            directions[trained, -1] = direction
            gains = np.append(gains, share * radius / singular)
            model = self._model(ratings, directions, gains, 1 - shares[: step + 1], mean, trained)
            self._after_step(step + 1, self.steps, model)
        return model

    def _shares(self) -> Doubles:
        """How far each step goes from where a user is to the edge of the ball."""
        if self.pace == "equal":
            return np.full(self.steps, 1 / self.steps)
        return 2 / (np.arange(self.steps) + 2)

    def _model(
        self, ratings: Population, directions: Doubles, gains: Doubles, keeps: Doubles, mean: float, trained: Mask
    ) -> FactorModel:
        return FactorModel(
            items=ratings.items,
            item_factors=directions.astype(np.float32),
            item_biases=np.zeros(ratings.n_items, np.float32),
            global_mean=mean,
            user_ridge=0.0,
            user_bias_ridge=self.user_shrinkage,
            is_trained=trained,
            frank_wolfe_steps=FrankWolfeSteps(gains, keeps, self.row_clip),
            rating_range=ratings.rating_range,
        )


class _ExactStatistics:
    """The statistics that training needs, without privacy."""

    def mean(self, ratings: Population) -> float:
        assert isinstance(ratings, Ratings)
        return float(np.asarray(ratings.values, np.float64).mean())

    def weights(self, ratings: Population) -> Doubles:
        assert isinstance(ratings, Ratings)
        return np.bincount(ratings.indices, minlength=ratings.n_items).astype(np.float64)

    def direction(self, ratings: Population, public: FrankWolfeRows, step: int) -> tuple[Doubles, float]:  # noqa: ARG002
        assert isinstance(ratings, Ratings)
        sample, residuals = frank_wolfe_rows(ratings, public)
        matrix = csr_matrix((residuals, sample.indices, sample.indptr), shape=(sample.n_users, sample.n_items))
        values, vectors = top_right_vectors(matrix, 1)
        return vectors[:, 0], float(values[0])


class _ReleasedStatistics:
    """The same through the mechanism."""

    def __init__(self, method: DPFrankWolfe, mechanism: Mechanism) -> None:
        self.method, self.mechanism = method, mechanism
        shares = (method.count_share if method.frequent_fraction < 1 else 0, _MEAN_SHARE if method.centre else 0)
        self.weight_cost, self.mean_cost, rest = mechanism.budget.split(*shares, 1 - sum(shares))
        self.step_cost = rest // method.steps

    def mean(self, ratings: Population) -> float:
        return release_mean(self.mechanism, ratings, self.mean_cost)

    def weights(self, ratings: Population) -> Doubles:
        return release_popularity(self.mechanism, ratings, self.weight_cost)

    def direction(self, ratings: Population, public: FrankWolfeRows, step: int) -> tuple[Doubles, float]:
        """A unit vector near the top right singular vector, and the length of the product with it, with slack."""
        find = self._by_power_iteration if self.method.search == "power" else self._by_covariance
        rows = RowsOf(frank_wolfe_rows, public, self.method.row_clip)
        return find(ratings, rows, int(public.chosen.sum()), f"direction {step + 1}")

    def _by_covariance(self, ratings: Population, rows: RowsOf, n_items: int, name: str) -> tuple[Doubles, float]:
        """Analyze Gauss: user i adds a_i a_i^T, of norm at most row_clip^2."""
        purpose = f"covariance of residuals, {name}"
        released = release_covariance(self.mechanism, purpose, ratings, rows, n_items, self.step_cost)
        values, vectors = eigenpairs(released)
        return vectors[:, -1], float(np.sqrt(max(values[-1], 0.0)))

    def _by_power_iteration(self, ratings: Population, rows: RowsOf, n_items: int, name: str) -> tuple[Doubles, float]:
        """User i adds (a_i . v) a_i, with |a_i . v| at most product_clip * row_clip; in the end (a_i . v)^2."""
        row_clip, number = self.method.row_clip, self.method.power_steps
        longest, length_cost = self.method.product_clip * row_clip, max(1, self.step_cost // _LENGTH_PART)
        cost = (self.step_cost - length_cost) // number
        vector = _unit(random_factors(n_items, 1, self.method.seed)[:, 0])
        for k in range(1, number + 1):
            query = Query(f"power iteration {k}, {name}", n_items, longest * row_clip, "vector", 1, row_clip)
            products = Products(rows, vector[:, None], longest)
            released = self.mechanism.release_together(ratings, product_contribution, products, [(query, cost)])
            vector = _unit(released[0][:, 0])
        query = Query(f"length, {name}", 1, longest**2)
        products = Products(rows, vector[:, None], longest)
        queries = [(query, length_cost)]
        length = self.mechanism.release_together(ratings, squared_length_contribution, products, queries)[0][0, 0]
        return vector, float(np.sqrt(max(length, 0.0) + 2 * self.mechanism.releases[-1].sigma))


def _unit(vector: Doubles) -> Doubles:
    result: Doubles = vector / max(float(np.linalg.norm(vector)), 1e-300)
    return result
