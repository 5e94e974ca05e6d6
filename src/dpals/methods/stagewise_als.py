"""Alternating least squares that learns its directions a few at a time, the strongest first."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dpals.data.population import Population
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.methods.als import ALS
from dpals.methods.als_in_memory import InMemory, Side
from dpals.methods.als_settings import Settings, Training
from dpals.methods.base.estimator import needs_ratings
from dpals.methods.base.parameters import COUNT, parameter
from dpals.methods.shared.singular_vectors import top_right_vectors
from dpals.model.factor_model import FactorModel

Floats = NDArray[np.float32]


class StagewiseALS(ALS):
    """ALS in stages, for matrices whose singular values are far apart (after Hardt & Wootters 2014). Not private.

    Plain ALS from a random start hardly sees a weak direction before it has fitted the strong ones to within less
    than the weak one's size. Here every stage adds the main singular vectors of what the model so far leaves of the
    ratings, and then solves for users and items a few times with all directions found so far.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=1000, n_items=200, mean_ratings=30, seed=1)
    >>> model = dpals.StagewiseALS(rank=4, steps=2).fit(ratings)
    >>> model.item_factors_.shape
    (200, 4)
    """

    in_memory_only = True
    steps: int = parameter("How often users and items are solved for in each stage.", COUNT, default=3, kw_only=False)
    stage_size: int = parameter("How many directions a stage adds.", COUNT, default=4)

    def _check(self, ratings: Population) -> None:
        needs_ratings(self, ratings)
        super()._check(ratings)
        assert isinstance(ratings, Ratings)
        if self.rank is not None and self.rank > ratings.n_users:
            raise InputError(f"rank {self.rank} is more than the number of users, {ratings.n_users:,}")

    def _default_rank(self, ratings: Population) -> int:
        assert isinstance(ratings, Ratings)
        return min(super()._default_rank(ratings), ratings.n_users)

    def _n_steps(self, rank: int) -> int:
        return self.steps * -(-rank // self.stage_size)

    def _models(self, training: Training, settings: Settings) -> Iterator[FactorModel]:
        assert isinstance(training, InMemory)
        return training.models(settings, self._in_stages)

    def _in_stages(self, user_side: Side, item_side: Side, settings: Settings) -> Iterator[tuple[Floats, Floats]]:
        """Factors and biases of the items after each step."""
        n_items = len(item_side)
        items, item_biases = np.zeros((n_items, 0), np.float32), np.zeros(n_items, np.float32)
        while items.shape[1] < settings.rank:
            users, user_biases = user_side.solve(items, item_biases)
            if not items.shape[1]:  # the first directions should not be biases
                items, item_biases = item_side.solve(users, user_biases)
            left = user_side.residuals(users, user_biases, items, item_biases)
            matrix = csr_matrix((left, user_side.indices, user_side.indptr), shape=(len(users), n_items))
            size = min(self.stage_size, settings.rank - items.shape[1])
            _, found = top_right_vectors(matrix, size)
            items = np.column_stack([items, found * np.sqrt(n_items)]).astype(np.float32)
            for _ in range(settings.steps):
                users, user_biases = user_side.solve(items, item_biases)
                items, item_biases = item_side.solve(users, user_biases)
                yield items, item_biases
