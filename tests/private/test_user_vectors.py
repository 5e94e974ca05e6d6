import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpals
from dpals.kernels.logistic import ColumnGroups
from dpals.private.user_vectors import LeastSquaresProblem, LogisticProblem


def random_problem(rng, n_items, rank, *, ridged=None, exponent=0.5, with_base=True):
    root = rng.normal(size=(rank, rank)).astype(np.float32)
    return LeastSquaresProblem(
        features=rng.normal(size=(n_items, rank)).astype(np.float32),
        offsets=rng.normal(size=n_items).astype(np.float32),
        ridge=0.7,
        exponent=exponent,
        base=(root @ root.T + 0.1 * np.eye(rank, dtype=np.float32)) * np.float32(with_base),
        rank=rank if ridged is None else ridged,
    )


def random_ratings(rng, n_users, n_items, *, implicit=False):
    """Users with all numbers of ratings, none included."""
    users, items = np.nonzero(rng.random((n_users, n_items)) < rng.random((n_users, 1)) ** 2)
    matrix = np.zeros((n_users, n_items))
    matrix[users, items] = rng.uniform(1, 5, len(users))
    from scipy.sparse import csr_array

    return dpals.Ratings.from_csr(csr_array(matrix), rating_range=None if implicit else (1, 5), implicit=implicit)


def dense_solution(problem, ratings):
    """Each user by least squares on stacked rows: the ratings, then the roots of the penalties."""
    rank = problem.features.shape[1]
    result = np.zeros((ratings.n_users, rank))
    values, vectors = np.linalg.eigh(problem.base.astype(np.float64))
    root_of_base = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    for i in range(ratings.n_users):
        entries = slice(ratings.indptr[i], ratings.indptr[i + 1])
        columns = ratings.indices[entries]
        if len(columns) == 0:
            continue
        rated = np.ones(len(columns)) if ratings.values is None else ratings.values[entries].astype(np.float64)
        ridge = problem.ridge * len(columns) ** problem.exponent
        penalty = np.sqrt(ridge) * np.eye(rank)[: problem.rank]
        rows = np.vstack([problem.features[columns].astype(np.float64), root_of_base, penalty])
        wanted = np.concatenate([rated - problem.offsets[columns], np.zeros(rank + problem.rank)])
        result[i] = np.linalg.lstsq(rows, wanted)[0]
    return result


@given(
    seed=st.integers(0, 10**6),
    rank=st.integers(1, 20),
    exponent=st.sampled_from([0.0, 0.5, 1.0]),
    implicit=st.booleans(),
    with_base=st.booleans(),
)
def test_the_solution_is_that_of_dense_least_squares(seed, rank, exponent, implicit, with_base):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, 30, rank, exponent=exponent, with_base=with_base)
    ratings = random_ratings(rng, 15, 30, implicit=implicit)
    np.testing.assert_allclose(problem.solve(ratings), dense_solution(problem, ratings), rtol=2e-3, atol=2e-4)


@given(seed=st.integers(0, 10**6), rank=st.integers(2, 12))
def test_only_the_leading_coordinates_get_the_ridge(seed, rank):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, 20, rank, ridged=rank - 1)
    ratings = random_ratings(rng, 12, 20)
    np.testing.assert_allclose(problem.solve(ratings), dense_solution(problem, ratings), rtol=2e-3, atol=2e-4)


def test_users_without_ratings_get_zero():
    rng = np.random.default_rng(0)
    problem, ratings = random_problem(rng, 10, 3), random_ratings(rng, 6, 10)
    silent = ratings.keep((ratings.rows != 2) & (ratings.rows != 5))
    solved = problem.solve(silent)
    assert not solved[[2, 5]].any()
    others = np.flatnonzero(np.diff(silent.indptr))
    assert solved[others].any(axis=1).all()


@pytest.mark.parametrize("rank", [1, 5, 16, 33])
def test_a_users_bits_do_not_depend_on_other_users_or_threads(rank):
    rng = np.random.default_rng(rank)
    problem, ratings = random_problem(rng, 200, rank), random_ratings(rng, 300, 200)
    alone = problem.solve(ratings, threads=1)
    for threads in (2, 3, 7, None):
        assert np.array_equal(problem.solve(ratings, threads=threads), alone)
    for seed in range(4):
        staying = np.random.default_rng(seed).random(ratings.n_users) < (0.03 if seed == 0 else 0.6)
        assert np.array_equal(problem.solve(ratings.take_users(staying)), alone[staying])


@pytest.mark.parametrize("bias_ridge", [None, 2.5])
@pytest.mark.parametrize("unseen_weight", [0.0, 0.3])
def test_a_problem_from_arrays_is_its_definition(bias_ridge, unseen_weight):
    rng = np.random.default_rng(3)
    factors, biases = rng.normal(size=(20, 4)), rng.normal(size=20)
    rest = {"bias_ridge": bias_ridge, "exponent": 0.5, "unseen_weight": unseen_weight}
    problem = LeastSquaresProblem.of(factors, biases, 3.2, 0.7, **rest)
    has_bias = int(bias_ridge is not None)
    assert (problem.rank, problem.ridge, problem.exponent) == (4, 0.7, 0.5)
    assert problem.features.shape == (20, 4 + has_bias)
    assert np.array_equal(problem.features[:, :4], factors.astype(np.float32))
    assert np.array_equal(problem.features[:, 4:], np.ones((20, has_bias)))
    np.testing.assert_allclose(problem.offsets, 3.2 + biases, rtol=1e-6)
    expected = np.zeros((4 + has_bias, 4 + has_bias))
    expected[:4, :4] = unseen_weight * factors.T @ factors
    if has_bias:
        expected[4, 4] = bias_ridge
    np.testing.assert_allclose(problem.base, expected, rtol=1e-5, atol=1e-6)


def test_a_vector_from_groups_of_items_is_close_to_that_from_all_items():
    rng = np.random.default_rng(4)
    factors, offsets = rng.normal(size=(3000, 4)) / 2, rng.normal(-5, 1.5, 3000)
    problem = LogisticProblem.of(factors, offsets)
    assert problem.rank == 4
    assert np.array_equal(problem.features[:, 4], np.ones(3000))
    people = rng.normal(size=(50, 4))
    has = rng.random((50, 3000)) < 1 / (1 + np.exp(-(offsets + people @ factors.T)))
    ratings = dpals.Ratings.from_arrays(*np.nonzero(has), catalogue=range(3000))
    everything = ColumnGroups(np.ones(3000), problem.offsets, problem.features, np.zeros_like(problem.features))
    exact = dataclasses.replace(problem, groups=everything).solve(ratings)
    differences = np.linalg.norm(problem.solve(ratings) - exact, axis=1)
    assert np.linalg.norm(exact[:, :4], axis=1).mean() > 1
    assert differences.max() < 0.15


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_training_that_diverged_is_named(broken):
    sound, diverged = np.zeros((2, 1)), np.array([[1.0], [broken]])
    with pytest.raises(dpals.InputError, match="training diverged"):
        LeastSquaresProblem.of(diverged, np.zeros(2), 3.0, 1.0)
    with pytest.raises(dpals.InputError, match="training diverged"):
        LogisticProblem.of(sound, diverged[:, 0])
