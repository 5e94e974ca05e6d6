"""What DPSGD and SGLD share: noisy gradients of the item factors and biases, step after step."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import Population
from dpals.errors import InputError
from dpals.methods.base.estimator import PrivateEstimator, needs_ratings
from dpals.methods.base.parameters import COUNT, FRACTION, POSITIVE, SHARE, WHOLE, parameter
from dpals.model.factor_model import FactorModel
from dpals.private.gradients import GradientStep, gradient_contribution
from dpals.private.user_vectors import LeastSquaresProblem
from dpals.public.initial_factors import random_factors
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]


class GradientMethod(PrivateEstimator):
    """Base of the methods that move item factors and biases along released gradients."""

    rank: int = parameter("Length of the vectors.", COUNT, default=4)
    steps: int = parameter("Number of releases.", COUNT, default=20)
    gradient_clip: float = parameter(
        "Largest norm of a user's gradient of half the squared error.", POSITIVE, default=5.0
    )
    average: float = parameter(
        "Share of the steps, the last ones, over which the model is averaged; 0 for only the last one.",
        FRACTION,
        default=0.0,
    )
    user_bias_ridge: float = parameter("Ridge of the users' biases.", POSITIVE, default=5.0)
    start_scale: float = parameter("Standard deviation of the first, random factors.", POSITIVE, default=0.1)
    mean_share: float = parameter(
        "Share of the budget for the global mean and the number of users, which come together.", SHARE, default=0.01
    )
    seed: int = parameter("Chooses the random factors. It is public.", WHOLE, default=0)

    def _check(self, ratings: Population) -> None:
        needs_ratings(self, ratings)
        if self.rank > ratings.n_items:
            raise InputError(f"rank {self.rank} is more than the number of items, {ratings.n_items:,}")

    def _descend(
        self,
        ratings: Population,
        mechanism: Mechanism,
        cost: int,
        mean: float,
        user_ridge: float,
        move: Callable[[Doubles, Doubles], Doubles],
    ) -> FactorModel:
        """The model after all steps, or its mean over the last ones.

        `cost` is for all steps together. `move` says, from the gradients and from factors and biases as they are, how
        these change; there is one row per item, factors first, then the bias.
        """
        start = self.start_scale * random_factors(ratings.n_items, self.rank, self.seed)
        items = np.column_stack([start, np.zeros(ratings.n_items)])
        total, averaged = np.zeros_like(items), max(1, round(self.average * self.steps))
        for step in range(1, self.steps + 1):
            problem = self._model(ratings, items, mean, user_ridge).user_problem()
            assert isinstance(problem, LeastSquaresProblem)
            public = GradientStep(problem, self.gradient_clip)
            query = Query(f"gradients, step {step}", ratings.n_items, self.gradient_clip, "vector", self.rank + 1)
            queries = [(query, cost // self.steps)]
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
