"""What users contribute to PooledDPALS, against the definitions written out user by user."""

import numpy as np
import pytest

import dpals
from dpals.private.pooled import Bounds, Participants
from dpals.private.sampling import share_of_users

N_ITEMS, RANK, CONSTANT = 15, 3, 0.7
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


def test_offers_are_what_the_definitions_say(ratings, model):
    item_weights = np.linspace(1, 3, N_ITEMS)
    people = Participants.of(ratings, item_weights, widest=3.0)
    contributions = people.step_contributions(model.user_problem(), RANK, CONSTANT, LOOSE)
    for i, (_, weights, residuals, vector, spread) in enumerate(by_user(ratings, model, item_weights)):
        row = slice(ratings.indptr[i], ratings.indptr[i + 1])
        np.testing.assert_allclose(people.weights[row], weights, rtol=1e-12)
        breadth = min(weights.sum() / 3.0, 1.0)
        assert people.breadths[i] == pytest.approx(breadth)
        np.testing.assert_allclose(contributions.moments.coefficients[row], weights * residuals, atol=2e-5)
        np.testing.assert_allclose(contributions.moments.vectors[i], vector, atol=2e-5)
        assert contributions.gram.coefficients[i] == pytest.approx(breadth)
        contributed = contributions.covariance.coefficients[i] * contributions.covariance.vectors[i]
        np.testing.assert_allclose(contributed, breadth * spread[np.triu_indices(RANK)], atol=2e-5)


def test_one_scale_per_user_brings_each_contribution_to_its_bound(ratings, model):
    people = Participants.of(ratings, np.ones(N_ITEMS), widest=3.0)
    contributions = people.step_contributions(model.user_problem(), RANK, CONSTANT, TIGHT)
    free = people.step_contributions(model.user_problem(), RANK, CONSTANT, LOOSE)
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


def test_a_user_offers_the_same_bits_whoever_else_is_there(ratings, model):
    weights = np.linspace(1, 2, N_ITEMS)
    alone = ratings.keep(ratings.rows == 7)
    together = Participants.of(ratings, weights, 3.0).step_contributions(model.user_problem(), RANK, CONSTANT, TIGHT)
    single = Participants.of(alone, weights, 3.0).step_contributions(model.user_problem(), RANK, CONSTANT, TIGHT)
    row = slice(ratings.indptr[7], ratings.indptr[8])
    assert np.array_equal(together.moments.coefficients[row], single.moments.coefficients)
    for part, same in zip(together, single, strict=True):
        assert np.array_equal(part.vectors[7], same.vectors[7])
    assert together.gram.coefficients[7] == single.gram.coefficients[7]
    assert together.covariance.coefficients[7] == single.covariance.coefficients[7]


def test_where_some_users_are_asked_for_their_uncertainty_they_offer_what_they_would_have(ratings, model, monkeypatch):
    people = Participants.of(ratings, np.ones(N_ITEMS), widest=3.0)
    everyone = people.step_contributions(model.user_problem(), RANK, CONSTANT, TIGHT)
    monkeypatch.setattr("dpals.private.pooled.asked_share", lambda _: 0.5)
    some = people.step_contributions(model.user_problem(), RANK, CONSTANT, TIGHT)
    asked = share_of_users(ratings, 0.5)
    assert 0 < asked.sum() < ratings.n_users
    assert np.array_equal(some.covariance.vectors, everyone.covariance.vectors[asked])
    assert np.array_equal(some.covariance.coefficients, everyone.covariance.coefficients[asked])
    assert np.array_equal(some.moments.coefficients, everyone.moments.coefficients)


def test_company_is_who_rated_what_and_not_how(ratings):
    people = Participants.of(ratings, np.linspace(1, 2, N_ITEMS), widest=3.0)
    features = np.random.default_rng(2).normal(size=(N_ITEMS, 4))
    company = people.company(features)
    for i in range(ratings.n_users):
        row = slice(ratings.indptr[i], ratings.indptr[i + 1])
        np.testing.assert_allclose(company[i], people.weights[row] @ features[ratings.indices[row]], atol=1e-12)
    spread, directions = people.spread_contribution(company, 0.5), people.direction_contribution(company)
    assert np.all(spread.coefficients * np.linalg.norm(company, axis=1) ** 2 <= 0.5)
    lengths = np.linalg.norm(directions.vectors, axis=1)
    np.testing.assert_allclose(lengths[np.linalg.norm(company, axis=1) > 0], 1.0)
    np.testing.assert_allclose(directions.coefficients, people.weights, rtol=1e-8)
