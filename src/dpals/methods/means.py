"""The simplest predictions there are: one mean for all, one for each user, one for each item."""

import numpy as np

from dpals.data.population import Population
from dpals.methods.base.estimator import PrivateEstimator, needs_ratings
from dpals.methods.base.parameters import NOT_NEGATIVE, POSITIVE, parameter
from dpals.methods.shared.means import half_range, release_item_biases, release_mean
from dpals.model.factor_model import FactorModel
from dpals.release.mechanism import Mechanism


class GlobalMean(PrivateEstimator):
    """Predicts one number for every user and item: the mean of the users' means. Private.

    The whole budget goes into this number.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    >>> model = dpals.GlobalMean(epsilon=1.0).fit(ratings)
    >>> bool(abs(model.model_.global_mean - 3.6) < 0.3)
    True
    """

    def _check(self, ratings: Population) -> None:
        needs_ratings(self, ratings)

    def _fit(self, ratings: Population, mechanism: Mechanism) -> FactorModel:
        return means_model(ratings, release_mean(mechanism, ratings, mechanism.budget.cost))


class UserMean(PrivateEstimator):
    """Predicts the mean of the user's own ratings for every item. It learns nothing from others and spends nothing.

    It takes a budget as all private methods do, but makes no release: its statement says epsilon 0.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.Ratings.from_arrays(["ann", "ann"], ["tea", "rum"], [4, 5], rating_range=(1, 5))
    >>> model = dpals.UserMean().fit(ratings)
    >>> model.predict(ratings, ["ann"], ["tea"]), model.privacy.epsilon
    (array([4.5], dtype=float32), 0.0)
    """

    shrinkage: float = parameter(
        "How many ratings in the middle of the range a user's mean starts with. A user without ratings gets the middle "
        "of the range.",
        NOT_NEGATIVE,
        default=0.0,
    )

    def _check(self, ratings: Population) -> None:
        needs_ratings(self, ratings)

    def _fit(self, ratings: Population, mechanism: Mechanism) -> FactorModel:  # noqa: ARG002, nothing goes through the mechanism
        assert ratings.rating_range is not None
        return means_model(ratings, sum(ratings.rating_range) / 2, user_bias_ridge=self.shrinkage)


class ItemMean(PrivateEstimator):
    """Predicts the mean rating of the item, shrunk toward the global mean if little is known about it. Private.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    >>> model = dpals.ItemMean(epsilon=1.0).fit(ratings)
    >>> model.predict(ratings, users=[0, 1], items=[3, 3]).std() == 0
    np.True_
    """

    residual_bound: float = parameter(
        "Largest root-mean-square distance of a user's ratings from the global mean, as a share of half the rating "
        "range; larger ones are scaled down.",
        POSITIVE,
        default=0.5,
    )
    bias_prior: float = parameter(
        "Standard deviation of item means that is expected before looking, as a share of half the range.",
        POSITIVE,
        default=0.25,
    )

    def _check(self, ratings: Population) -> None:
        needs_ratings(self, ratings)

    def _fit(self, ratings: Population, mechanism: Mechanism) -> FactorModel:
        mean_cost, weight_cost, item_cost = mechanism.budget.split(2, 18, 80)
        mean = release_mean(mechanism, ratings, mean_cost)
        scales = self.residual_bound * half_range(ratings), self.bias_prior * half_range(ratings)
        biases, _ = release_item_biases(mechanism, ratings, mean, (weight_cost, item_cost), *scales)
        return means_model(ratings, mean, biases)


def means_model(
    ratings: Population, mean: float, biases: np.ndarray | None = None, user_bias_ridge: float | None = None
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
