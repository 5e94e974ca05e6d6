"""The releases of PooledDPALS that ratings and implicit feedback share: the catalogue, company, and a step's sums."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpals.data.ratings import Ratings
from dpals.methods.pooled.budget import StepCosts
from dpals.methods.shared.means import release_popularity
from dpals.private.pooled import Bounds, Participants, asked_share
from dpals.private.user_vectors import LeastSquaresProblem, LogisticProblem
from dpals.public.initial_factors import random_factors
from dpals.public.item_step import unpacked
from dpals.public.pooled import PooledGram, inverse_root, shared_features
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]

_WIDEST = 20.0  # users whose weights add up to more count as this in pooled sums; about 400 ratings


@dataclass(frozen=True, eq=False)
class Catalogue:
    """What was released before training proper, about the items and the users at large."""

    popularity: Doubles
    item_weights: Doubles
    """What a rating of the item weighs, before the user's weights are scaled to length 1."""
    weights: Doubles
    weight_noise: float
    breadth: float


def release_catalogue(
    ratings: Ratings, weight_exponent: float, mechanism: Mechanism, costs: Sequence[int]
) -> tuple[Catalogue, Participants]:
    """Popularity and weights of the items, and the users with the weights that follow from it."""
    popularity_cost, weight_cost, breadth_cost = costs
    popularity = np.maximum(release_popularity(mechanism, ratings, popularity_cost), mechanism.releases[-1].sigma)
    item_weights = popularity**-weight_exponent
    people = Participants.of(ratings, item_weights, _WIDEST)

    query = Query("breadth of all users", 1, 1.0)
    breadth = mechanism.release(query, people.breadth_contribution(), breadth_cost)[0, 0]
    breadth = max(float(breadth), mechanism.releases[-1].sigma)
    nothing = np.zeros(ratings.n_items)
    known = Catalogue(popularity, item_weights, nothing, np.inf, breadth)
    return release_weights(people, known, mechanism, weight_cost), people


def release_weights(people: Participants, known: Catalogue, mechanism: Mechanism, cost: int) -> Catalogue:
    """The catalogue with the weights of the items released once more: what is known is the mean of all releases."""
    query = Query("weights of the items", people.ratings.n_items, 1.0)
    weights = mechanism.release(query, people.weight_contribution(), cost)[:, 0]
    before, now = known.weight_noise**-2, mechanism.releases[-1].sigma ** -2
    mean = (before * known.weights + now * weights) / (before + now)
    return replace(known, weights=mean, weight_noise=(before + now) ** -0.5)


def release_features(
    people: Participants, weights: Doubles, size: int, seed: int, mechanism: Mechanism, costs: tuple[StepCosts, ...]
) -> tuple[Doubles, Doubles]:
    """What kind of people rate an item, whatever they think of it: one row of features per item, of unit variance.

    Items that the same people rate tend to be liked by the same people. This is a subspace iteration, from
    random features, on who rated what. The second result says how much items differ in each feature.
    """
    features, scales = random_factors(len(weights), size, seed), np.ones(size)
    for number, cost in enumerate(costs, 1):
        centred = features - weights @ features / max(float(weights.sum()), 1e-9)
        centred *= (weights > 0)[:, None]
        bound = float(size)  # features have variance 1 where they are known, and a user's weights length 1
        query = Query(f"spread of company, round {number}", 1, bound, "symmetric", size)
        spread = mechanism.release(query, people.spread_contribution(people.company(centred), bound), cost.gram)[0]
        # Turned on the public side: a product over all users could round one user's row by who else is there.
        whitened = people.company(centred @ inverse_root(unpacked(spread, size)))
        query = Query(f"company of the items, round {number}", len(weights), 1.0, "vector", size)
        moments = mechanism.release(query, people.direction_contribution(whitened), cost.moments)
        features, scales = shared_features(moments, weights, mechanism.releases[-1].sigma)
    return features, scales


@dataclass(frozen=True, eq=False)
class StepSums:
    """What one step released: the right-hand sides with their noise, and what all users look like together."""

    moments: Doubles
    noise: float
    pooled: PooledGram


def release_step(
    people: Participants,
    problem: LeastSquaresProblem | LogisticProblem,
    rank: int,
    constant: float,
    scale: float,
    breadth: float,
    mechanism: Mechanism,
    cost: StepCosts,
    name: str,
) -> StepSums:
    """Residual times vector for every item, with a user's clip in units of `scale` times the length of a vector.

    `constant` is the coordinate beside a user's vector, whose own coordinates have unit variance.
    """
    # A user's vector has unit variance in each direction, of which about half is known to the user.
    length = np.sqrt(rank / 2 + constant**2)
    bounds = Bounds(moments=scale * length, gram=length**2 / 2, covariance=0.3 * np.sqrt(rank))
    contributions = people.step_contributions(problem, rank, constant, bounds)

    query = Query(f"Gram matrix of all users, {name}", 1, bounds.gram, "symmetric", rank + 1)
    gram = mechanism.release(query, contributions.gram, cost.gram)[0]
    gram_noise = mechanism.releases[-1].sigma
    covariance = np.zeros(0)
    if rank:
        query = Query(f"uncertainty of all users, {name}", 1, bounds.covariance, "vector", rank * (rank + 1) // 2)
        covariance = mechanism.release(query, contributions.covariance, cost.covariance)[0] / asked_share(rank)
        gram_noise = np.hypot(gram_noise, mechanism.releases[-1].sigma / asked_share(rank))
    query = Query(
        f"right-hand sides, {name}",
        people.ratings.n_items,
        bounds.moments,
        "vector",
        rank + 1,
        coefficient_norm=scale,
    )
    moments = mechanism.release(query, contributions.moments, cost.moments)
    noise = mechanism.releases[-1].sigma
    return StepSums(moments, noise, PooledGram.of(gram, covariance, gram_noise, breadth, constant))
