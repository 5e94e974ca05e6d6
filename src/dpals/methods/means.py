"""The simplest predictions there are: one mean for all, one for each user, one for each item."""

import numpy as np

from dpals.data.ratings import Ratings
from dpals.methods.base.estimator import PrivateEstimator, needs_ratings
from dpals.methods.base.parameters import NOT_NEGATIVE, POSITIVE, check_arguments
from dpals.methods.shared.means import half_range, release_item_biases, release_mean
from dpals.model.factor_model import FactorModel
from dpals.release.mechanism import Mechanism


class GlobalMean(PrivateEstimator):
    """Predicts one number for every user and item: the mean of the users' means. Private.

    Parameters
    ----------
    epsilon, delta
        The privacy budget; all of it goes into this number.
    insecure_seed
        Repeatable noise, for tests and simulated data: the model is then not private and says so.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    >>> model = dpals.GlobalMean(epsilon=1.0).fit(ratings)
    >>> bool(abs(model.model_.global_mean - 3.6) < 0.3)
    True
    """

    def __init__(self, epsilon: float = 1.0, delta: float = 1e-5, *, insecure_seed: int | None = None) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.insecure_seed = insecure_seed

    def _check(self, ratings: Ratings) -> None:
        needs_ratings(self, ratings)

    def _fit(self, ratings: Ratings, mechanism: Mechanism) -> FactorModel:
        return means_model(ratings, release_mean(mechanism, ratings, mechanism.budget.cost))


class UserMean(PrivateEstimator):
    """Predicts the mean of the user's own ratings for every item. It learns nothing from others and spends nothing.

    Parameters
    ----------
    epsilon, delta
        There for the sake of one interface: the statement says epsilon 0.
    shrinkage
        How many ratings in the middle of the range a user's mean starts with. Who has no ratings is predicted the
        middle of the range.
    insecure_seed
        There for the sake of one interface: there is no noise.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.Ratings.from_arrays(["ann", "ann"], ["tea", "rum"], [4, 5], rating_range=(1, 5))
    >>> model = dpals.UserMean().fit(ratings)
    >>> model.predict(ratings, ["ann"], ["tea"]), model.privacy.epsilon
    (array([4.5], dtype=float32), 0.0)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        shrinkage: float = 0.0,
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.shrinkage = shrinkage
        self.insecure_seed = insecure_seed

    def _check(self, ratings: Ratings) -> None:
        needs_ratings(self, ratings)
        check_arguments(self, {"shrinkage": NOT_NEGATIVE})

    def _fit(self, ratings: Ratings, mechanism: Mechanism) -> FactorModel:  # noqa: ARG002, nothing goes through the mechanism
        assert ratings.rating_range is not None
        return means_model(ratings, sum(ratings.rating_range) / 2, user_bias_ridge=self.shrinkage)


class ItemMean(PrivateEstimator):
    """Predicts the mean rating of the item, drawn toward the global mean where little is known of it. Private.

    Parameters
    ----------
    epsilon, delta
        The privacy budget.
    residual_bound
        Largest root-mean-square distance of a user's ratings from the global mean, as a share of half the rating
        range; larger ones are scaled down.
    bias_prior
        Standard deviation of item means that is expected before looking, as a share of half the range.
    insecure_seed
        Repeatable noise, for tests and simulated data: the model is then not private and says so.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    >>> model = dpals.ItemMean(epsilon=1.0).fit(ratings)
    >>> model.predict(ratings, users=[0, 1], items=[3, 3]).std() == 0
    np.True_
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        residual_bound: float = 0.5,
        bias_prior: float = 0.25,
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.residual_bound = residual_bound
        self.bias_prior = bias_prior
        self.insecure_seed = insecure_seed

    def _check(self, ratings: Ratings) -> None:
        needs_ratings(self, ratings)
        check_arguments(self, {"residual_bound": POSITIVE, "bias_prior": POSITIVE})

    def _fit(self, ratings: Ratings, mechanism: Mechanism) -> FactorModel:
        mean_cost, weight_cost, item_cost = mechanism.budget.split(2, 18, 80)
        mean = release_mean(mechanism, ratings, mean_cost)
        scales = self.residual_bound * half_range(ratings), self.bias_prior * half_range(ratings)
        biases, _ = release_item_biases(mechanism, ratings, mean, (weight_cost, item_cost), *scales)
        return means_model(ratings, mean, biases)


def means_model(
    ratings: Ratings, mean: float, biases: np.ndarray | None = None, user_bias_ridge: float | None = None
) -> FactorModel:
    """A model without factors."""
    n_items = ratings.n_items
    return FactorModel(
        items=ratings.items,
        item_factors=np.zeros((n_items, 0), np.float32),
        item_biases=np.zeros(n_items, np.float32) if biases is None else biases.astype(np.float32),
        global_mean=mean,
        user_ridge=0.0,
        user_bias_ridge=user_bias_ridge,
        rating_range=ratings.rating_range,
    )
