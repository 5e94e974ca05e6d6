"""User-level DPSGD for matrix factorisation."""

import numpy as np

from dpals.data.population import Population
from dpals.methods.base.parameters import FRACTION, NOT_NEGATIVE, POSITIVE, Within, parameter
from dpals.methods.shared.gradient_steps import Doubles, GradientMethod
from dpals.methods.shared.means import given_or
from dpals.model.factor_model import FactorModel
from dpals.release.mechanism import Mechanism


class DPSGD(GradientMethod):
    """Gradient descent on item factors and biases, with each user's gradient clipped as a whole (Abadi et al. 2016).

    In every step each user solves for their own vector, exactly, and contributes the gradient of their squared error
    over all their items, clipped as one vector. Batches are full: all users take part in every step, so that the
    account is that of the Gaussian mechanism, exactly, and there is nothing to gain from sampling.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    >>> model = dpals.DPSGD(epsilon=5.0, delta=1e-5, rank=4, steps=5).fit(ratings)
    >>> model.privacy.epsilon <= 5.0
    True
    """

    learning_rate: float = parameter(
        "Items move by this times the sum of the gradients over the number of users, which is released. Steps are "
        "stable while it is below about 2 (1 + momentum) over the share of users who have the most common item.",
        POSITIVE,
        default=3.0,
    )
    momentum: float = parameter("Share of the last move that is repeated.", FRACTION, default=0.5)
    ridge: float = parameter(
        "Pull of factors and biases toward 0, per step and learning rate.", NOT_NEGATIVE, default=0.0
    )
    user_ridge: float | None = parameter(
        "Ridge of the users' vectors: by default 3 squared units.", Within(optional=True), default=None
    )

    def _fit(self, ratings: Population, mechanism: Mechanism) -> FactorModel:
        known = self._start(ratings, mechanism)
        last = np.zeros((ratings.n_items, self.rank + 1))

        def move(gradients: Doubles, items: Doubles) -> Doubles:
            last[:] = self.momentum * last + self.learning_rate * (gradients / known.n_users - self.ridge * items)
            return last

        return self._descend(ratings, mechanism, known, given_or(self.user_ridge, 3 * known.unit**2), move)
