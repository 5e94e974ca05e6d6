"""What the items of users say about them, against plain loops over each user's items."""

import numpy as np
import pytest

import dpals
from dpals.private.histories import Histories, HistoryFit, history_fit_contribution, history_gram_contribution
from dpals.private.user_vectors import LeastSquaresProblem, expected_vectors, histories_of

N_ITEMS, RANK = 12, 2


@pytest.fixture(scope="module")
def ratings():
    """Users with 1 to 12 items, in all orders, and one without any."""
    rng = np.random.default_rng(0)
    counts = [1, 2, 3, 5, 8, 12, 4, 1]
    users = np.repeat(np.arange(len(counts)), counts)
    items = np.concatenate([rng.choice(N_ITEMS, count, replace=False) for count in counts])
    users, items = np.append(users, 50), np.append(items, 99)
    values = rng.uniform(1, 5, len(users))
    return dpals.Ratings.from_arrays(
        users, items, values, rating_range=(1, 5), catalogue=range(N_ITEMS), on_unknown_items="drop"
    )


def items_of(ratings):
    return [ratings.indices[a:b] for a, b in zip(ratings.indptr[:-1], ratings.indptr[1:], strict=True)]


def problem_with(history):
    rng = np.random.default_rng(1)
    factors, biases = rng.normal(size=(N_ITEMS, RANK)), rng.normal(size=N_ITEMS) / 3
    return LeastSquaresProblem.of(factors, biases, 3.0, 2.0, bias_ridge=3.0, history=history)


def test_a_history_is_the_sum_over_the_number_and_twenty(ratings):
    features = np.random.default_rng(2).normal(size=(N_ITEMS, 3))
    for items, found in zip(items_of(ratings), histories_of(ratings, features), strict=True):
        np.testing.assert_allclose(found, features[items].sum(axis=0) / (len(items) + 20), atol=1e-12)


def test_vectors_are_drawn_toward_what_is_expected(ratings):
    """The same as taking off what is expected, fitting the rest, and adding it again."""
    history = np.random.default_rng(3).normal(size=(N_ITEMS, RANK + 1)) * 10
    problem = problem_with(history)
    for row, items in enumerate(items_of(ratings)):
        design = problem.features[items].astype(float)
        expected = history.astype(np.float32)[items].sum(axis=0) / (len(items) + 20)
        values = ratings.values[ratings.indptr[row] : ratings.indptr[row + 1]]
        left = values - problem.offsets[items] - design @ expected
        wanted = expected + np.linalg.solve(design.T @ design + np.diag([2.0, 2.0, 3.0]), design.T @ left)
        np.testing.assert_allclose(problem.solve(ratings)[row], wanted if len(items) else 0, atol=1e-4)


def test_without_history_factors_nothing_is_expected(ratings):
    assert expected_vectors(ratings, problem_with(None)) is None
    zeros = problem_with(np.zeros((N_ITEMS, RANK + 1)))
    np.testing.assert_allclose(zeros.solve(ratings), problem_with(None).solve(ratings), atol=1e-6)


@pytest.mark.parametrize("bound", [1e-4, 1.0])
def test_one_item_counts_for_nothing_and_long_histories_are_scaled_down(ratings, bound):
    features = np.random.default_rng(4).normal(size=(N_ITEMS, 3))
    found = history_gram_contribution(ratings, Histories(features, bound))
    for items, weight, vector in zip(items_of(ratings), found.coefficients, found.vectors, strict=True):
        n = len(items)
        assert weight == pytest.approx(max(n - 1, 0) / (n + 20))
        plain = features[items].sum(axis=0) / (n + 20)
        length = np.linalg.norm(plain)
        np.testing.assert_allclose(vector, plain * min(1, bound**0.5 / max(length, 1e-9)), atol=1e-8)
        assert weight * vector @ vector <= bound


@pytest.mark.parametrize("bound", [0.01, 1e9])
def test_the_fit_is_the_product_of_history_and_vector(ratings, bound):
    rng = np.random.default_rng(5)
    problem, units = problem_with(rng.normal(size=(N_ITEMS, RANK + 1))), np.array([1.0, 1.0, 0.5])
    features, solved = rng.normal(size=(N_ITEMS, 4)), rng.normal(size=(ratings.n_users, RANK + 1)).astype(np.float32)
    found = history_fit_contribution(ratings, problem, solved, HistoryFit(Histories(features, 1e9), bound, units))
    assert found.pattern.n_items == 4
    coefficients = found.coefficients.reshape(ratings.n_users, 4)
    expected = expected_vectors(ratings, problem)
    for row, items in enumerate(items_of(ratings)):
        n = len(items)
        history, vector = features[items].sum(axis=0) / (n + 20), (solved[row] - expected[row]) / units
        wanted = np.outer(history, vector) * max(n - 1, 0) / (n + 20)
        outer = np.outer(coefficients[row], found.vectors[row])
        assert np.linalg.norm(outer) <= bound
        if np.linalg.norm(history) * np.linalg.norm(vector) < bound:
            np.testing.assert_allclose(outer, wanted, atol=1e-6)
        assert np.all(outer * wanted >= 0), "the same direction"
