"""Recommends what most people have, to everyone."""

import numpy as np

from dpals.data.population import Population
from dpals.errors import InputError
from dpals.methods.base.estimator import PrivateEstimator
from dpals.methods.means import means_model
from dpals.methods.shared.means import release_popularity
from dpals.model.factor_model import FactorModel
from dpals.release.mechanism import Mechanism


class Popularity(PrivateEstimator):
    """Scores items by how many people have them, for implicit feedback. Private.

    A user with n items counts 1 / sqrt(n) for each of them, so that everyone spends the same. The whole
    budget goes into this release.

    Examples
    --------
    >>> import dpals
    >>> users, items = range(900), ["tea"] * 600 + ["rum"] * 300
    >>> ratings = dpals.Ratings.from_arrays(users, items, catalogue=["gin", "rum", "tea"])
    >>> model = dpals.Popularity(epsilon=1.0).fit(ratings)
    >>> ids, scores = model.recommend(ratings, k=1, exclude_seen=False)
    >>> str(ids[0, 0])
    'tea'
    """

    def _check(self, ratings: Population) -> None:
        if not ratings.is_implicit:
            raise InputError("Popularity is for implicit feedback; for ratings there is ItemMean")

    def _fit(self, ratings: Population, mechanism: Mechanism) -> FactorModel:
        popularity = release_popularity(mechanism, ratings, mechanism.budget.cost)
        return means_model(ratings, 0.0, np.maximum(popularity, 0.0))
