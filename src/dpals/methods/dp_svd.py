"""Private SVD: tastes are the main directions of a noisy covariance matrix of the items."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import Population
from dpals.errors import InputError
from dpals.methods.base.estimator import PrivateEstimator, needs_ratings
from dpals.methods.base.parameters import COUNT, NOT_NEGATIVE, POSITIVE, SHARE, Within, parameter
from dpals.methods.shared.covariance import LARGEST_COVARIANCE, release_covariance
from dpals.methods.shared.means import (
    given_or,
    half_range,
    release_item_biases,
    release_mean,
    release_popularity,
    release_typical_distance,
)
from dpals.model.factor_model import FactorModel
from dpals.private.covariance import ResidualRows, RowsOf, residual_rows
from dpals.public.item_step import most_frequent
from dpals.public.spectra import eigenpairs
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]

_BIAS_SCALES = 1.1, 0.55  # bound of residuals and spread of biases, in units of a typical distance from the mean


class DPSVD(PrivateEstimator):
    """Private SVD (McSherry & Mironov 2009), and Analyze Gauss (Dwork et al. 2014) as its plain form.

    Global mean and item biases are released first; a user's own mean is taken off as well. What is left of a user's
    ratings, clamped, is a row r_i, and the covariance sum_i w_i r_i r_i^T is released with symmetric noise. Its main
    eigenvectors are the item factors; users project their residuals on them, with a ridge.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    >>> model = dpals.DPSVD(epsilon=5.0, delta=1e-5, rank=4).fit(ratings)
    >>> model.item_factors_.shape
    (100, 4)
    """

    rank: int = parameter("Number of eigenvectors.", COUNT, default=8)
    form: Literal["means first", "plain"] = parameter(
        "``means first``, as above; ``plain``, with nothing taken off but the middle of the rating range.",
        default="means first",
    )
    most_items: int = parameter(
        "Size of the matrix: the items with the highest released weights. The others have no factors.",
        Within(low=1, high=LARGEST_COVARIANCE, closed=True, whole=True),
        default=400,
    )
    entry_clip: float | None = parameter(
        "Residuals are clamped to plus and minus this: by default 1.2 units. A unit is how far a typical user's "
        "ratings lie from the mean, which is released; in the plain form a quarter of the rating range.",
        Within(optional=True),
        default=None,
    )
    row_clip: float | None = parameter(
        "Users whose row is longer are weighted down: by default 5 units.", Within(optional=True), default=None
    )
    ridge: float = parameter("Ridge of the users' projection.", POSITIVE, default=10.0)
    user_shrinkage: float = parameter(
        "How many ratings' worth of evidence a user's own mean starts with.", NOT_NEGATIVE, default=5.0
    )
    mean_share: float = parameter(
        "Share of the budget for the global mean and the typical distance from it.", SHARE, default=0.01
    )
    weight_share: float = parameter("Share of the budget for the items' weights.", SHARE, default=0.04)
    bias_share: float = parameter(
        "Share of the budget for the items' biases. What is not needed of these shares goes to the covariance.",
        SHARE,
        default=0.15,
    )

    def _check(self, ratings: Population) -> None:
        needs_ratings(self, ratings)
        if self.mean_share + self.weight_share + self.bias_share >= 1:
            raise ValueError("mean_share, weight_share and bias_share must leave something of the budget")
        if self.rank > min(self.most_items, ratings.n_items):
            raise InputError(f"rank {self.rank} is more than the number of items in the covariance")

    def _fit(self, ratings: Population, mechanism: Mechanism) -> FactorModel:
        assert ratings.rating_range is not None
        low, high = ratings.rating_range
        mean, unit = (low + high) / 2, half_range(ratings) / 2
        biases, chosen = np.zeros(ratings.n_items), np.ones(ratings.n_items, bool)
        needs_weights = self.most_items < ratings.n_items
        if self.form == "means first":
            shares = (self.mean_share / 2, self.mean_share / 2, self.weight_share, self.bias_share)
            mean_cost, unit_cost, weight_cost, bias_cost, cost = mechanism.budget.split(*shares, 1 - sum(shares))
            mean = release_mean(mechanism, ratings, mean_cost)
            unit = release_typical_distance(mechanism, ratings, mean, unit_cost)
            scales = (unit * scale for scale in _BIAS_SCALES)
            biases, weights = release_item_biases(mechanism, ratings, mean, (weight_cost, bias_cost), *scales)
        else:
            weight_cost, cost = mechanism.budget.split(self.weight_share * needs_weights, 1 - self.weight_share)
            weights = release_popularity(mechanism, ratings, weight_cost) if needs_weights else np.ones(ratings.n_items)
        if needs_weights:
            chosen = most_frequent(weights, self.most_items / ratings.n_items)
        factors = np.zeros((ratings.n_items, self.rank))
        entry_clip, row_clip = given_or(self.entry_clip, 1.2 * unit), given_or(self.row_clip, 5 * unit)
        shrinkage = self.user_shrinkage if self.form == "means first" else None
        rows = RowsOf(residual_rows, ResidualRows(mean + biases, chosen, shrinkage, entry_clip), row_clip)
        factors[chosen] = self._directions(ratings, rows, int(chosen.sum()), mechanism, cost)
        return FactorModel(
            items=ratings.items,
            item_factors=factors.astype(np.float32),
            item_biases=biases.astype(np.float32),
            global_mean=mean,
            user_ridge=self.ridge,
            user_bias_ridge=shrinkage,
            rating_range=ratings.rating_range,
        )

    def _directions(self, ratings: Population, rows: RowsOf, n_items: int, mechanism: Mechanism, cost: int) -> Doubles:
        """Eigenvectors, as long as the standard deviation of the users along them, the first of mean square up to 1."""
        covariance = release_covariance(mechanism, "covariance of the items", ratings, rows, n_items, cost)
        values, vectors = eigenpairs(covariance)
        values, vectors = values[: -self.rank - 1 : -1], vectors[:, : -self.rank - 1 : -1]
        # Noise alone would have eigenvalues up to this, give or take a tenth.
        edge = 1.1 * mechanism.releases[-1].sigma * np.sqrt(2 * n_items)
        spread = np.maximum(values - edge, 0.0) / max(float(values[0]), 1e-12)
        factors: Doubles = vectors * np.sqrt(spread * n_items)
        return factors
