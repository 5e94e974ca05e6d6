"""The global mean, which nearly every method starts from, and how far items lie above it."""

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import Population
from dpals.private.means import MeanAndBound, mean_contribution, residual_contribution, weight_contribution
from dpals.private.scales import Distances, distance_contribution
from dpals.public.biases import shrunken_ratio
from dpals.public.scales import typical_distance
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]

_BINS = 24  # for distances from the mean


def half_range(ratings: Population) -> float:
    """Half the width of the rating range, which is public."""
    assert ratings.rating_range is not None
    low, high = ratings.rating_range
    return (high - low) / 2


def release_mean(mechanism: Mechanism, ratings: Population, cost: int) -> float:
    """The mean of the users' means, which each user moves by at most half the range over the number of users.

    It is drawn toward the middle of the range where noise is as large as the number of users.
    """
    return release_mean_and_number(mechanism, ratings, cost)[0]


def release_mean_and_number(mechanism: Mechanism, ratings: Population, cost: int) -> tuple[float, float]:
    """The same, with the number of users, which comes with it; at least as much as noise alone could be."""
    assert ratings.rating_range is not None
    low, high = ratings.rating_range
    middle, largest = (low + high) / 2, half_range(ratings)
    query = Query("global mean", 1, largest * np.sqrt(2), "vector", 2)
    total, users = mechanism.release_together(ratings, mean_contribution, None, [(query, cost)])[0][0]
    noise = mechanism.releases[-1].sigma
    away = largest * shrunken_ratio(np.array([total]), np.array([users]), noise, 1.0, noise)[0]
    return float(np.clip(middle + away, low, high)), max(users, noise) / largest


def given_or(given: float | None, default: float) -> float:
    """An argument, or its default in units of the ratings."""
    return default if given is None else given


def release_typical_distance(mechanism: Mechanism, ratings: Population, mean: float, cost: int) -> float:
    """How far a typical user's ratings lie from the mean, in steps of half a power of two: a unit for other scales."""
    largest = 2 * half_range(ratings)
    query, public = Query("distances from the mean", _BINS, 1.0), Distances(mean, largest, _BINS)
    counts = mechanism.release_together(ratings, distance_contribution, public, [(query, cost)])[0][:, 0]
    return typical_distance(counts, mechanism.releases[-1].sigma, largest)


def release_popularity(mechanism: Mechanism, ratings: Population, cost: int) -> Doubles:
    """How much users say about each item, when everyone may say as much: sums of 1 / sqrt(n_i)."""
    query = Query("popularity of the items", ratings.n_items, 1.0)
    return mechanism.release_together(ratings, weight_contribution, None, [(query, cost)])[0][:, 0]


def release_item_biases(
    mechanism: Mechanism,
    ratings: Population,
    mean: float,
    costs: tuple[int, int],
    residual_bound: float,
    bias_prior: float,
) -> tuple[Doubles, Doubles]:
    """How far the items' ratings lie above the mean, shrunk toward 0; and the weights of the items.

    Distances of a user's ratings from the mean that are more than `residual_bound` as a root mean square are scaled
    down. Biases are expected to have the standard deviation `bias_prior`.
    """
    weights = release_popularity(mechanism, ratings, costs[0])
    weight_noise = mechanism.releases[-1].sigma
    query = Query("distances from the global mean", ratings.n_items, residual_bound)
    public = MeanAndBound(mean, residual_bound)
    moments = mechanism.release_together(ratings, residual_contribution, public, [(query, costs[1])])[0][:, 0]
    return shrunken_ratio(moments, weights, mechanism.releases[-1].sigma, bias_prior, weight_noise), weights
