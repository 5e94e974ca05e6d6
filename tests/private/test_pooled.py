"""What users contribute to PooledDPALS, against the definitions written out user by user."""

from types import SimpleNamespace

import numpy as np
import pytest

import dpals
from dpals.private.pooled import (
    Bounds,
    Features,
    Groups,
    PooledStep,
    RatingWeights,
    direction_contribution,
    feature_gram_contribution,
    squared_weight_contribution,
    step_contributions,
    weighted_users,
)
from dpals.private.sampling import share_of_users

N_ITEMS, RANK, CONSTANT = 15, 3, 0.7
NAMES = "gram", "covariance", "moments"
LOOSE, TIGHT = Bounds(1e9, 1e9, 1e9), Bounds(0.4, 0.8, 0.3)


@pytest.fixture
def ratings():
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((30, N_ITEMS)) < rng.random((30, 1)))
    values = rng.choice([1.0, 2.5, 4.0, 5.0], len(users))
    return dpals.Ratings.from_arrays(users, items, values, rating_range=(1, 5), catalogue=range(N_ITEMS))


@pytest.fixture
def model():
    rng = np.random.default_rng(1)
    return dpals.FactorModel(
        items=np.arange(N_ITEMS),
        item_factors=rng.normal(size=(N_ITEMS, RANK)),
        item_biases=rng.normal(size=N_ITEMS) / 3,
        global_mean=3.0,
        user_ridge=0.5,
        user_bias_ridge=3.0,
        rating_range=(1, 5),
    )


def contributions_of(ratings, model, weights, bounds):
    public = PooledStep(RatingWeights(weights, 3.0), model.user_problem(), CONSTANT, bounds)
    return SimpleNamespace(**dict(zip(NAMES, step_contributions(ratings, public), strict=True)))


def by_user(ratings, model, item_weights):
    """For each user: items, weights, residuals, vector with the constant, uncertainty of the vector."""
    for i in range(ratings.n_users):
        row = slice(ratings.indptr[i], ratings.indptr[i + 1])
        items = ratings.indices[row]
        features = np.column_stack([model.item_factors[items], np.ones(len(items))]).astype(float)
        ridge = np.diag([0.5] * RANK + [3.0])
        inverse = np.linalg.inv(features.T @ features + ridge)
        centred = ratings.values[row] - 3.0 - model.item_biases[items]
        solution = inverse @ features.T @ centred
        weights = item_weights[items] / np.linalg.norm(item_weights[items])
        vector = np.r_[solution[:RANK], CONSTANT]
        yield items, weights, centred - features @ solution, vector, 0.5 * inverse[:RANK, :RANK]


def test_contributions_are_what_the_definitions_say(ratings, model):
    item_weights = np.linspace(1, 3, N_ITEMS)
    everyone = weighted_users(ratings, RatingWeights(item_weights, 3.0))
    contributions = contributions_of(ratings, model, item_weights, LOOSE)
    for i, (_, weights, residuals, vector, spread) in enumerate(by_user(ratings, model, item_weights)):
        row = slice(ratings.indptr[i], ratings.indptr[i + 1])
        np.testing.assert_allclose(everyone.weights[row], weights, rtol=1e-12)
        user_weight = min(weights.sum() / 3.0, 1.0)
        assert everyone.user_weights[i] == pytest.approx(user_weight)
        np.testing.assert_allclose(contributions.moments.coefficients[row], weights * residuals, atol=2e-5)
        np.testing.assert_allclose(contributions.moments.vectors[i], vector, atol=2e-5)
        assert contributions.gram.coefficients[i] == pytest.approx(user_weight)
        contributed = contributions.covariance.coefficients[i] * contributions.covariance.vectors[i]
        np.testing.assert_allclose(contributed, user_weight * spread[np.triu_indices(RANK)], atol=2e-5)


def test_one_scale_per_user_brings_each_contribution_to_its_bound(ratings, model):
    contributions = contributions_of(ratings, model, np.ones(N_ITEMS), TIGHT)
    free = contributions_of(ratings, model, np.ones(N_ITEMS), LOOSE)
    clipped = 0
    for i in range(ratings.n_users):
        row = slice(ratings.indptr[i], ratings.indptr[i + 1])
        length = np.linalg.norm(contributions.moments.vectors[i])
        norm = np.linalg.norm(free.moments.coefficients[row].astype(float)) * length
        scale = min(1.0, TIGHT.moments / norm)
        clipped += scale < 1
        np.testing.assert_allclose(
            contributions.moments.coefficients[row], scale * free.moments.coefficients[row], rtol=1e-6
        )
        assert contributions.gram.coefficients[i] <= scale
        assert contributions.gram.coefficients[i] * length**2 <= TIGHT.gram
        covariance = contributions.covariance.coefficients[i] * np.linalg.norm(
            contributions.covariance.vectors[i].astype(float)
        )
        assert covariance <= TIGHT.covariance
    assert clipped > 5


def test_a_user_contributes_the_same_bits_whoever_else_is_there(ratings, model):
    weights = np.linspace(1, 2, N_ITEMS)
    alone = ratings.keep(ratings.rows == 7)
    together = contributions_of(ratings, model, weights, TIGHT)
    single = contributions_of(alone, model, weights, TIGHT)
    row = slice(ratings.indptr[7], ratings.indptr[8])
    assert np.array_equal(together.moments.coefficients[row], single.moments.coefficients)
    for name in NAMES:
        assert np.array_equal(getattr(together, name).vectors[7], getattr(single, name).vectors[7])
    assert together.gram.coefficients[7] == single.gram.coefficients[7]
    assert together.covariance.coefficients[7] == single.covariance.coefficients[7]


def test_users_who_are_asked_for_their_covariance_contribute_the_same_as_before(ratings, model, monkeypatch):
    all_of_them = contributions_of(ratings, model, np.ones(N_ITEMS), TIGHT)
    monkeypatch.setattr("dpals.private.pooled.covariance_share", lambda _: 0.5)
    some = contributions_of(ratings, model, np.ones(N_ITEMS), TIGHT)
    asked = share_of_users(ratings, 0.5)
    assert 0 < asked.sum() < ratings.n_users
    assert np.array_equal(some.covariance.vectors, all_of_them.covariance.vectors[asked])
    assert np.array_equal(some.covariance.coefficients, all_of_them.covariance.coefficients[asked])
    assert np.array_equal(some.moments.coefficients, all_of_them.moments.coefficients)


def test_feature_sums_depend_on_what_users_rated_and_not_how(ratings):
    weights = RatingWeights(np.linspace(1, 2, N_ITEMS), 3.0)
    everyone, features = weighted_users(ratings, weights), np.random.default_rng(2).normal(size=(N_ITEMS, 4))
    public = Features(weights, features, 0.5)
    gram, directions = feature_gram_contribution(ratings, public), direction_contribution(ratings, public)
    sums = gram.vectors
    for i in range(ratings.n_users):
        row = slice(ratings.indptr[i], ratings.indptr[i + 1])
        np.testing.assert_allclose(sums[i], everyone.weights[row] @ features[ratings.indices[row]], atol=1e-12)
    assert np.all(gram.coefficients * np.linalg.norm(sums, axis=1) ** 2 <= 0.5)
    lengths = np.linalg.norm(directions.vectors, axis=1)
    np.testing.assert_allclose(lengths[np.linalg.norm(sums, axis=1) > 0], 1.0)
    np.testing.assert_allclose(directions.coefficients, everyone.weights, rtol=1e-8)


def test_without_factors_there_is_no_covariance(ratings):
    model = dpals.FactorModel(
        items=np.arange(N_ITEMS),
        item_factors=np.zeros((N_ITEMS, 0)),
        item_biases=np.zeros(N_ITEMS),
        global_mean=3.0,
        user_ridge=0.5,
        user_bias_ridge=3.0,
        rating_range=(1, 5),
    )
    public = PooledStep(RatingWeights(np.ones(N_ITEMS), 3.0), model.user_problem(), CONSTANT, LOOSE)
    gram, moments = step_contributions(ratings, public)
    assert gram.pattern.n_items == 1
    assert moments.pattern.n_items == N_ITEMS


def test_squared_weights_are_added_up_by_groups_of_items(ratings):
    item_weights, groups = np.linspace(1, 3, N_ITEMS), np.arange(N_ITEMS, dtype=np.int32) % 4
    found = squared_weight_contribution(ratings, Groups(RatingWeights(item_weights, 3.0), groups, 4))
    for i in range(ratings.n_users):
        items = ratings.indices[ratings.indptr[i] : ratings.indptr[i + 1]]
        squares = item_weights[items] ** 2 / max(np.sum(item_weights[items] ** 2), 1e-300)
        np.testing.assert_allclose(found.vectors[i], np.bincount(groups[items], squares, 4), atol=1e-12)
    assert np.all(found.coefficients * np.linalg.norm(found.vectors, axis=1) <= 1)
