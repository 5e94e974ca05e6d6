"""Completion with a small trace norm, by soft-impute. Not private."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dpals.data.population import Population
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.kernels.rows import entry_products
from dpals.methods.base.estimator import Estimator, needs_ratings
from dpals.methods.base.parameters import COUNT, NOT_NEGATIVE, POSITIVE, WHOLE, parameter
from dpals.model.factor_model import FactorModel
from dpals.private.means import per_entry, user_offsets
from dpals.public.initial_factors import random_factors
from dpals.public.spectra import orthonormal_basis, signs

Doubles = NDArray[np.float64]


class TraceNorm(Estimator):
    """Half the squared error plus a multiple of the trace norm (Candes & Recht 2009), by soft-impute. Not private.

    Every step fills what is not known with the present guess Z and shrinks the singular values of the result by the
    penalty (Mazumder, Hastie & Tibshirani 2010). What is filled is a sparse matrix plus one of low rank, and a
    subspace iteration that goes on from the last step's singular vectors never makes it dense. The optimum is that of
    matrix factorisation with ridges, so a user, also a new one, is served by a ridge regression on the item factors;
    with biases, the user's bias is solved for together with the vector.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=1000, n_items=200, mean_ratings=30, seed=1)
    >>> model = dpals.TraceNorm(rank=8, steps=10, penalty=5.0).fit(ratings)
    >>> model.item_factors_.shape
    (200, 8)
    """

    in_memory_only = True
    rank: int = parameter(
        "Most singular values that are kept: the solution's own rank should be below.", COUNT, default=32, kw_only=False
    )
    steps: int = parameter("How often the matrix is filled and shrunk.", COUNT, default=60, kw_only=False)
    penalty: float = parameter(
        "Of the trace norm. It starts at `first_penalty` times this, which gets there sooner, and falls to it in the "
        "first half of the steps.",
        POSITIVE,
        default=15.0,
    )
    first_penalty: float = parameter("Where the penalty starts, as a multiple.", POSITIVE, default=5.0)
    biases: bool = parameter("Whether item and user means, shrunk, are taken off first.", default=True)
    shrinkage: float = parameter(
        "How many ratings' worth of evidence these means start with.", NOT_NEGATIVE, default=5.0
    )
    seed: int = parameter("Chooses the random singular vectors that the first step starts from.", WHOLE, default=0)

    def _check(self, ratings: Population) -> None:
        assert isinstance(ratings, Ratings)
        needs_ratings(self, ratings)
        if self.rank > min(ratings.n_items, ratings.n_users):
            raise InputError(f"rank {self.rank} is more than the number of items or users")
        if ratings.n_ratings == 0:
            raise InputError("there are no ratings to learn from")

    def _train(self, ratings: Ratings) -> FactorModel:
        mean, item_biases = self._item_means(ratings)
        targets = np.asarray(ratings.values, np.float64) - (mean + item_biases)[ratings.indices]
        if self.biases:
            targets -= per_entry(ratings, user_offsets(ratings, mean + item_biases, self.shrinkage))

        def model(factors: Doubles) -> FactorModel:
            return FactorModel(
                items=ratings.items,
                item_factors=factors.astype(np.float32),
                item_biases=item_biases.astype(np.float32),
                global_mean=mean,
                user_ridge=self.penalty,
                user_bias_ridge=self.shrinkage if self.biases else None,
                rating_range=ratings.rating_range,
            )

        for number, found in enumerate(self._soft_impute(ratings, targets), 1):
            latest = model(found)
            self._after_step(number, self.steps, latest)
        return latest

    def _item_means(self, ratings: Ratings) -> tuple[float, Doubles]:
        values = np.asarray(ratings.values, np.float64)
        mean = float(values.mean())
        if not self.biases:
            return mean, np.zeros(ratings.n_items)
        sums = np.bincount(ratings.indices, values - mean, ratings.n_items)
        counts = np.bincount(ratings.indices, minlength=ratings.n_items)
        return mean, sums / np.maximum(counts + self.shrinkage, 1e-12)

    def _soft_impute(self, ratings: Ratings, targets: Doubles) -> Iterator[Doubles]:
        """Item factors V sqrt(D) after each step, where U D V^T is the solution so far."""
        shape = (ratings.n_users, ratings.n_items)
        left, right = np.zeros((shape[0], self.rank)), orthonormal_basis(random_factors(shape[1], self.rank, self.seed))
        values = np.zeros(self.rank)
        falling = np.geomspace(self.first_penalty, 1.0, -(-self.steps // 2))
        for step in range(self.steps):
            penalty = self.penalty * (falling[step] if step < len(falling) else 1.0)
            fitted = entry_products(
                ratings.indptr,
                ratings.indices,
                (left * values).astype(np.float32),
                right.astype(np.float32),
            )
            sparse = csr_matrix((targets - fitted, ratings.indices, ratings.indptr), shape=shape)
            # The filled matrix is sparse + left diag(values) right^T.
            basis = orthonormal_basis(sparse @ right + left * values)
            projected = (sparse.T @ basis).T + (basis.T @ (left * values)) @ right.T
            small, values, right_rows = np.linalg.svd(projected, full_matrices=False)
            chosen = signs(right_rows.T)
            left, right = basis @ (small * chosen), right_rows.T * chosen
            values = np.maximum(values - penalty, 0.0)
            yield right * np.sqrt(values)
