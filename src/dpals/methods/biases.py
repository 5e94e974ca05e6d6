"""Global mean, item biases and user offsets: the simplest useful private model."""

import numpy as np

from dpals.errors import InputError
from dpals.methods.constraints import COUNT, NOT_NEGATIVE, POSITIVE, check_arguments
from dpals.methods.estimator import PrivateEstimator
from dpals.model import FactorModel
from dpals.private.centering import (
    offer_of_mean,
    offer_of_residuals,
    offer_of_weights,
    per_entry,
    user_offsets,
)
from dpals.public.biases import shrunken_ratio
from dpals.ratings import Ratings
from dpals.release.contribution import Query
from dpals.release.mechanism import Door


class PrivateBiases(PrivateEstimator):
    """Predicts global mean + item bias + the user's own offset.

    The global mean comes from per-user means, which costs next to nothing. Item biases come from the users'
    residuals, weighted so that everyone spends the same and shrunk by how much noise they carry. Offsets are
    computed from a user's own ratings when they are needed and belong to that user.

    Parameters
    ----------
    epsilon, delta
        The privacy budget.
    rounds
        How often item biases are refined on the residuals of the model so far.
    residual_bound
        Largest root-mean-square residual of a user, as a share of half the rating range; larger ones are
        scaled down.
    bias_prior
        Standard deviation of item biases that is expected before looking, as a share of half the range.
    user_shrinkage
        Ratings worth of evidence that a user's offset starts with.
    insecure_seed
        Repeatable noise, for tests and simulated data: the model is then not private and says so.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    >>> model = dpals.PrivateBiases(epsilon=1.0, delta=1e-5).fit(ratings)
    >>> model.predict(ratings, users=[0, 0], items=[3, 4]).shape
    (2,)
    >>> model.privacy.epsilon <= 1.0
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        rounds: int = 2,
        residual_bound: float = 0.5,
        bias_prior: float = 0.25,
        user_shrinkage: float = 5.0,
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rounds = rounds
        self.residual_bound = residual_bound
        self.bias_prior = bias_prior
        self.user_shrinkage = user_shrinkage
        self.insecure_seed = insecure_seed

    def _check(self, ratings: Ratings) -> None:
        if ratings.rating_range is None:
            raise InputError("PrivateBiases needs ratings; this data is implicit feedback")
        check_arguments(
            self,
            {
                "rounds": COUNT,
                "residual_bound": POSITIVE,
                "bias_prior": POSITIVE,
                "user_shrinkage": NOT_NEGATIVE,
            },
        )

    def _fit(self, ratings: Ratings, door: Door) -> FactorModel:
        assert ratings.rating_range is not None
        low, high = ratings.rating_range
        half_range = (high - low) / 2
        mean_cost, weight_cost, bias_cost = door.budget.split(1, 10, 89)
        mean = release_mean(door, ratings, mean_cost)

        known = Query("item weights", ratings.n_items, 1.0)
        weights = door.release(known, offer_of_weights(ratings), weight_cost)[:, 0]
        weight_noise = door.releases[-1].sigma

        bound = self.residual_bound * half_range
        biases = np.zeros(ratings.n_items)
        for number in range(self.rounds):
            offsets = user_offsets(ratings, mean + biases, self.user_shrinkage)
            predictions = (mean + biases)[ratings.indices] + per_entry(ratings, offsets)
            residuals = Query(f"item biases, round {number + 1}", ratings.n_items, bound)
            offer = offer_of_residuals(ratings, predictions, bound)
            moments = door.release(residuals, offer, bias_cost // self.rounds)[:, 0]
            noise = door.releases[-1].sigma
            biases += shrunken_ratio(moments, weights, noise, self.bias_prior * half_range, weight_noise)
        return FactorModel(
            items=ratings.items,
            item_factors=np.zeros((ratings.n_items, 0), np.float32),
            item_biases=biases.astype(np.float32),
            global_mean=mean,
            user_ridge=0.0,
            user_bias_ridge=self.user_shrinkage,
            rating_range=ratings.rating_range,
        )


def release_mean(door: Door, ratings: Ratings, cost: int) -> float:
    """The mean of the users' means, which each user moves by at most half the range over the number of users.

    It is drawn toward the middle of the range where noise is as large as the number of users.
    """
    assert ratings.rating_range is not None
    low, high = ratings.rating_range
    middle, half_range = (low + high) / 2, (high - low) / 2
    query = Query("global mean", 1, half_range * np.sqrt(2), "vector", 2)
    total, users = door.release(query, offer_of_mean(ratings, middle, half_range), cost)[0]
    noise = door.releases[-1].sigma
    away = half_range * shrunken_ratio(np.array([total]), np.array([users]), noise, 1.0, noise)[0]
    return float(np.clip(middle + away, low, high))
