"""Rows of users for matrices of items by items, against dense numpy."""

import numpy as np
import pytest

import dpals
from dpals.private.covariance import (
    FrankWolfeRows,
    Products,
    ResidualRows,
    RowsOf,
    SampledRows,
    covariance_contribution,
    frank_wolfe_rows,
    product_contribution,
    residual_rows,
    sampled_rows,
    squared_length_contribution,
)
from dpals.private.frank_wolfe import FrankWolfeProblem, FrankWolfeSteps

N_USERS, N_ITEMS = 30, 9
CHOSEN = np.arange(N_ITEMS) != 4


@pytest.fixture
def ratings():
    rng = np.random.default_rng(7)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < 0.6)
    values = rng.choice([1.0, 2.0, 4.0, 5.0], len(users))
    return dpals.Ratings.from_arrays(users, items, values, rating_range=(1, 5), catalogue=range(N_ITEMS))


def dense(rows):
    matrix = np.zeros((rows.ratings.n_users, rows.ratings.n_items))
    matrix[rows.ratings.rows, rows.ratings.indices] = rows.values
    return matrix


def centred(ratings, offsets):
    """Ratings less offsets, nothing where there is no rating; and where there is one."""
    there = np.zeros((N_USERS, N_ITEMS), bool)
    there[ratings.rows, ratings.indices] = True
    return np.where(there, ratings.to_csr().toarray() - offsets, 0.0), there


def test_sampled_rows_are_clipped_ratings_less_the_mean(ratings):
    rows = sampled_rows(ratings, SampledRows(CHOSEN, 100, 3.0, 1.5, seed=0))
    expected, _ = centred(ratings, 3.0)
    np.testing.assert_allclose(dense(rows), np.clip(expected, -1.5, 1.5)[:, CHOSEN])
    few = sampled_rows(ratings, SampledRows(CHOSEN, 2, 3.0, 1.5, seed=0))
    assert np.diff(few.ratings.indptr).max() == 2


@pytest.mark.parametrize("shrinkage", [None, 5.0])
def test_residual_rows_are_what_offsets_and_the_users_mean_leave(ratings, shrinkage):
    offsets = np.linspace(2, 4, N_ITEMS)
    rows = residual_rows(ratings, ResidualRows(offsets, CHOSEN, shrinkage, 1.0))
    expected, there = centred(ratings, offsets)
    if shrinkage is not None:
        expected -= there * (expected.sum(1) / (there.sum(1) + shrinkage))[:, None]
    np.testing.assert_allclose(dense(rows), np.clip(expected, -1, 1)[:, CHOSEN], atol=1e-12)


def test_frank_wolfe_rows_are_what_the_steps_so_far_leave(ratings):
    rng = np.random.default_rng(8)
    steps = FrankWolfeSteps(np.array([0.3, 0.2]), np.array([0.9, 0.8]), clip=2.0)
    problem = FrankWolfeProblem(
        rng.normal(size=(N_ITEMS, 2)).astype(np.float32), np.full(N_ITEMS, 3.0, np.float32), CHOSEN, steps, None
    )
    rows = frank_wolfe_rows(ratings, FrankWolfeRows(problem, CHOSEN))
    _, residuals = problem.solve_with_residuals(ratings)
    assert np.array_equal(rows.values, residuals[CHOSEN[ratings.indices]])
    assert rows.ratings.n_items == CHOSEN.sum()


def test_contributions_are_clipped_rows_and_products(ratings):
    sampled = SampledRows(CHOSEN, 100, 3.0, 1.5, seed=0)
    of, matrix = RowsOf(sampled_rows, sampled, 2.0), dense(sampled_rows(ratings, sampled))
    (parts,) = covariance_contribution(ratings, of)
    vectors = np.concatenate([part.vectors for part in parts])
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, matrix * np.minimum(1, 2.0 / np.maximum(lengths, 1e-12)))

    factors = np.random.default_rng(9).normal(size=(int(CHOSEN.sum()), 1))
    public, products = Products(of, factors, 1.0), matrix @ factors
    assert 0 < (abs(products) > 1).sum() < N_USERS
    contribution = product_contribution(ratings, public)
    np.testing.assert_allclose(contribution.vectors, np.clip(products, -1, 1), atol=1e-12)
    assert np.array_equal(contribution.coefficients, sampled_rows(ratings, sampled).values)
    lengths = squared_length_contribution(ratings, public)
    np.testing.assert_allclose(lengths.coefficients, np.clip(products, -1, 1)[:, 0] ** 2, atol=1e-12)
