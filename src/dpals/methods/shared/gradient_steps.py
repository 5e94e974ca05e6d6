"""What DPSGD and SGLD share: noisy gradients of the item factors and biases, step after step."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import Population
from dpals.errors import InputError
from dpals.methods.base.estimator import PrivateEstimator, needs_ratings
from dpals.methods.base.parameters import COUNT, FRACTION, POSITIVE, SHARE, WHOLE, Within, parameter
from dpals.methods.shared.means import given_or, release_mean_and_number, release_typical_distance
from dpals.model.factor_model import FactorModel
from dpals.private.gradients import GradientStep, gradient_contribution
from dpals.private.user_vectors import LeastSquaresProblem
from dpals.public.initial_factors import random_factors
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]


class Start(NamedTuple):
    """What is released before the steps, and what they may cost together."""

    mean: float
    n_users: float
    unit: float
    rest: int


class GradientMethod(PrivateEstimator):
    """Base of the methods that move item factors and biases along released gradients."""

    rank: int = parameter("Length of the vectors.", COUNT, default=4)
    steps: int = parameter("Number of releases.", COUNT, default=20)
    gradient_clip: float | None = parameter(
        "Largest norm of a user's gradient of half the squared error: by default 5 units. A unit is how far a typical "
        "user's ratings lie from the mean, which is released.",
        Within(optional=True),
        default=None,
    )
    average: float = parameter(
        "Share of the steps, the last ones, over which the model is averaged; 0 for only the last one.",
        FRACTION,
        default=0.0,
    )
    user_bias_ridge: float = parameter("Ridge of the users' biases.", POSITIVE, default=5.0)
    start_scale: float | None = parameter(
        "Standard deviation of the first, random factors: by default 0.1 units.", Within(optional=True), default=None
    )
    mean_share: float = parameter(
        "Share of the budget for the global mean and the number of users, which come together, and for the unit.",
        SHARE,
        default=0.01,
    )
    seed: int = parameter("Chooses the random factors. It is public.", WHOLE, default=0)

    def _check(self, ratings: Population) -> None:
        needs_ratings(self, ratings)
        if self.rank > ratings.n_items:
            raise InputError(f"rank {self.rank} is more than the number of items, {ratings.n_items:,}")

    def _start(self, ratings: Population, mechanism: Mechanism) -> Start:
        """Mean, number of users and unit are released first."""
        share = self.mean_share / 2
        mean_cost, unit_cost, rest = mechanism.budget.split(share, share, 1 - self.mean_share)
        mean, n_users = release_mean_and_number(mechanism, ratings, mean_cost)
        return Start(mean, n_users, release_typical_distance(mechanism, ratings, mean, unit_cost), rest)

    def _descend(
        self,
        ratings: Population,
        mechanism: Mechanism,
        known: Start,
        user_ridge: float,
        move: Callable[[Doubles, Doubles], Doubles],
    ) -> FactorModel:
        """The model after all steps, or its mean over the last ones.

        `move` says, from the gradients and from factors and biases as they are, how
        these change; there is one row per item, factors first, then the bias.
        """
        mean, clip = known.mean, given_or(self.gradient_clip, 5 * known.unit)
        start = given_or(self.start_scale, 0.1 * known.unit) * random_factors(ratings.n_items, self.rank, self.seed)
        items = np.column_stack([start, np.zeros(ratings.n_items)])
        total, averaged = np.zeros_like(items), max(1, round(self.average * self.steps))
        for step in range(1, self.steps + 1):
            problem = self._model(ratings, items, mean, user_ridge).user_problem()
            assert isinstance(problem, LeastSquaresProblem)
            public = GradientStep(problem, clip)
            query = Query(f"gradients, step {step}", ratings.n_items, clip, "vector", self.rank + 1)
            queries = [(query, known.rest // self.steps)]
            gradients = mechanism.release_together(ratings, gradient_contribution, public, queries)[0]
            items = items + move(gradients, items)
            if step > self.steps - averaged:
                total += items
            self._after_step(step, self.steps, self._model(ratings, items, mean, user_ridge))
        return self._model(ratings, total / averaged, mean, user_ridge)

    def _model(self, ratings: Population, items: Doubles, mean: float, user_ridge: float) -> FactorModel:
        return FactorModel(
            items=ratings.items,
            item_factors=items[:, :-1].astype(np.float32),
            item_biases=items[:, -1].astype(np.float32),
            global_mean=mean,
            user_ridge=user_ridge,
            user_bias_ridge=self.user_bias_ridge,
            rating_range=ratings.rating_range,
        )
