"""User-level DPSGD for matrix factorisation."""

from typing import ClassVar

import numpy as np

from dpals.data.ratings import Ratings
from dpals.methods.base.parameters import COUNT, NOT_NEGATIVE, POSITIVE, SHARE, WHOLE, OneOf, Within
from dpals.methods.shared.gradient_steps import Doubles, GradientMethod
from dpals.methods.shared.means import release_mean_and_number
from dpals.model.factor_model import FactorModel
from dpals.release.mechanism import Mechanism


class DPSGD(GradientMethod):
    """Gradient descent on item factors and biases, with each user's gradient clipped as a whole (Abadi et al. 2016).

    In every step each user solves for their own vector, exactly, and contributes the gradient of their squared error
    over all their items, clipped as one vector. Batches are full: all users take part in every step, so that the
    account is that of the Gaussian mechanism, exactly, and there is nothing to gain from sampling.

    Parameters
    ----------
    epsilon, delta
        The privacy budget.
    rank
        Length of the vectors.
    steps
        Number of releases.
    learning_rate
        Items move by this times the sum of the gradients over the number of users, which is released. Steps are
        stable while it is below about 2 (1 + momentum) over the share of users who have the most common item.
    gradient_clip
        Largest norm of a user's gradient.
    momentum
        Share of the last move that is repeated.
    average
        Share of the steps, the last ones, over which the model is averaged; 0 for the last one alone.
    ridge
        Pull of factors and biases toward 0, per step and learning rate.
    user_ridge, user_bias_ridge
        Ridges of the users' vectors and biases.
    start_scale
        Standard deviation of the first, random factors.
    mean_share
        Share of the budget for the global mean and the number of users, which come together.
    seed
        Chooses the random factors. It is public.
    insecure_seed
        Repeatable noise, for tests and simulated data: the model is then not private and says so.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    >>> model = dpals.DPSGD(epsilon=5.0, delta=1e-5, rank=4, steps=5).fit(ratings)
    >>> model.privacy.epsilon <= 5.0
    True
    """

    constraints: ClassVar[dict[str, Within | OneOf]] = {
        "rank": COUNT,
        "steps": COUNT,
        "learning_rate": POSITIVE,
        "gradient_clip": POSITIVE,
        "momentum": Within(high=1, closed=True),
        "average": Within(high=1, closed=True),
        "ridge": NOT_NEGATIVE,
        "user_ridge": POSITIVE,
        "user_bias_ridge": POSITIVE,
        "start_scale": POSITIVE,
        "mean_share": SHARE,
        "seed": WHOLE,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        rank: int = 4,
        steps: int = 20,
        learning_rate: float = 3.0,
        gradient_clip: float = 5.0,
        momentum: float = 0.5,
        average: float = 0.0,
        ridge: float = 0.0,
        user_ridge: float = 3.0,
        user_bias_ridge: float = 5.0,
        start_scale: float = 0.1,
        mean_share: float = 0.01,
        seed: int = 0,
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rank = rank
        self.steps = steps
        self.learning_rate = learning_rate
        self.gradient_clip = gradient_clip
        self.momentum = momentum
        self.average = average
        self.ridge = ridge
        self.user_ridge = user_ridge
        self.user_bias_ridge = user_bias_ridge
        self.start_scale = start_scale
        self.mean_share = mean_share
        self.seed = seed
        self.insecure_seed = insecure_seed

    def _fit(self, ratings: Ratings, mechanism: Mechanism) -> FactorModel:
        mean_cost, rest = mechanism.budget.split(self.mean_share, 1 - self.mean_share)
        mean, n_users = release_mean_and_number(mechanism, ratings, mean_cost)
        last = np.zeros((ratings.n_items, self.rank + 1))

        def move(gradients: Doubles, items: Doubles) -> Doubles:
            last[:] = self.momentum * last + self.learning_rate * (gradients / n_users - self.ridge * items)
            return last

        return self._descend(ratings, mechanism, rest, mean, self.user_ridge, move)
