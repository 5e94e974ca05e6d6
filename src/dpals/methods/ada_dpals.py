"""DPALS with adaptive weights in place of sampling."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import Population
from dpals.methods.base.parameters import COUNT, NOT_NEGATIVE, POSITIVE, parameter
from dpals.methods.dpals import DPALS, Costs, Doubles
from dpals.private.dpals import Sampling
from dpals.private.means import weight_contribution
from dpals.public.item_step import count_ridges, most_frequent
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism


class AdaDPALS(DPALS):
    """Private alternating least squares with adaptive weights (Krichene et al. 2023).

    All of a user's ratings of frequent items take part, with weights w_ij in proportion to popularity_j^-a whose
    squares add up to 1 for each user. So everyone spends their whole budget, light users too. The popularity is
    released once, as the sum of the users' equal weights.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    >>> model = dpals.AdaDPALS(epsilon=5.0, delta=1e-5, rank=4).fit(ratings)
    >>> model.privacy.epsilon <= 5.0
    True
    """

    ridge: float = parameter(
        "lambda of the items. Their Gram matrices are smaller than those of `DPALS`, as weights are below 1.",
        POSITIVE,
        default=10.0,
    )
    ratings_per_user: int = parameter("Without effect: all of a user's ratings take part.", COUNT, default=50)
    sampling: Literal["adaptive", "uniform"] = parameter("Without effect, for the same reason.", default="adaptive")
    weight_exponent: float = parameter("a; between 1/4 and 1/2 works best.", NOT_NEGATIVE, default=0.4)

    def _frequent(self, ratings: Population, mechanism: Mechanism, costs: Costs) -> tuple[Doubles, NDArray[np.bool_]]:
        queries = [(Query("item popularity", ratings.n_items, 1.0), costs.counts)]
        popularity = mechanism.release_together(ratings, weight_contribution, None, queries)[0][:, 0]
        return popularity, most_frequent(popularity, self.frequent_fraction)

    def _sampling(self, frequent: NDArray[np.bool_], counts: Doubles) -> Sampling:
        return Sampling(frequent, "weights", counts, exponent=self.weight_exponent)

    def _ridges(self, ratings: Population, sampling: Sampling, mechanism: Mechanism, costs: Costs) -> Doubles:  # noqa: ARG002, nothing more is released
        return count_ridges(self.ridge, sampling.counts, self.item_exponent)

    def _releases(self, ratings: Population) -> tuple[int, bool, bool]:
        return 1, *super()._releases(ratings)[1:]

    def _weight_norm(self) -> float:
        return 1.0
