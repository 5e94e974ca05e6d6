import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpals.public.item_step import count_ridges, most_frequent, orthonormalised, projected, unpacked

released = st.lists(st.floats(-1e4, 1e6), min_size=1, max_size=30)


def symmetric(seed, n, rank):
    draws = np.random.default_rng(seed).normal(size=(n, rank, rank))
    return draws + np.swapaxes(draws, 1, 2)


@given(st.lists(st.integers(-3, 6), min_size=1, max_size=40), st.integers(1, 64))
def test_the_most_frequent_are_those_of_a_plain_sort(counts, parts):
    chosen = most_frequent(np.array(counts, float), parts / 64)
    size = -(-parts * len(counts) // 64)
    best = sorted(range(len(counts)), key=lambda item: (-counts[item], item))[:size]
    assert np.flatnonzero(chosen).tolist() == sorted(best)


def test_the_share_of_frequent_items_is_rounded_up_and_at_least_one_is_left():
    counts = np.array([5.0, 1.0, 4.0, -2.0])
    assert most_frequent(counts, 0.26).tolist() == [True, False, True, False]
    assert most_frequent(counts, 1e-12).tolist() == [True, False, False, False]
    assert most_frequent(counts, 1.0).all()


@pytest.mark.parametrize(("percent", "n_items"), [(7, 100), (28, 25), (14, 50), (81, 1_200)])
def test_a_whole_number_of_items_is_not_rounded_up(percent, n_items):
    assert most_frequent(np.zeros(n_items), percent / 100).sum() == percent * n_items // 100


def test_among_equal_counts_the_first_items_are_frequent():
    assert most_frequent(np.zeros(4), 0.5).tolist() == [True, True, False, False]


@given(st.floats(1e-3, 1e3), released, st.floats(0, 2))
def test_ridges_follow_the_floored_counts_and_have_the_mean_asked_for(ridge, counts, exponent):
    ridges = count_ridges(ridge, np.array(counts), exponent)
    powers = [max(count, 1.0) ** exponent for count in counts]
    assert (ridges > 0).all()
    assert ridges.mean() == pytest.approx(ridge, rel=1e-9)
    np.testing.assert_allclose(ridges / ridges[0], [power / powers[0] for power in powers], rtol=1e-9)


def test_exponent_zero_gives_all_items_the_same_ridge():
    np.testing.assert_allclose(count_ridges(7.0, np.array([-5.0, 0.0, 3.0, 1e6]), 0.0), 7.0, rtol=1e-12)


def test_triangles_are_unpacked_in_the_order_of_numpy():
    matrices = symmetric(0, 5, 4)
    rows, columns = np.triu_indices(4)
    assert np.array_equal(unpacked(matrices[:, rows, columns], 4), matrices)


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 12))
def test_the_projection_clips_negative_eigenvalues(seed, n, rank):
    matrices = symmetric(seed, n, rank)
    result = projected(matrices)
    for before, after in zip(matrices, result, strict=True):
        values, vectors = np.linalg.eigh(before)
        expected = sum(
            max(value, 0) * np.outer(vector, vector) for value, vector in zip(values, vectors.T, strict=True)
        )
        np.testing.assert_allclose(after, expected, atol=1e-9)


@given(st.integers(0, 10**6), st.integers(1, 8))
def test_nothing_positive_semi_definite_is_nearer_than_the_projection(seed, rank):
    """The residual is orthogonal to the projection and negative semi-definite: the conditions of Moreau."""
    matrix = symmetric(seed, 1, rank)
    residual = (matrix - projected(matrix))[0]
    assert np.linalg.eigvalsh(residual).max() <= 1e-9
    assert np.linalg.eigvalsh(projected(matrix)[0]).min() >= -1e-9
    assert abs((residual * projected(matrix)[0]).sum()) < 1e-8


@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 10))
def test_positive_semi_definite_matrices_stay_what_they_are(seed, rank, rows):
    users = np.random.default_rng(seed).normal(size=(2, rows, rank))
    grams = np.swapaxes(users, 1, 2) @ users
    np.testing.assert_allclose(projected(grams), grams, atol=1e-10)


def test_negative_matrices_become_zero():
    np.testing.assert_allclose(projected(-np.stack([np.eye(3), 5 * np.eye(3)])), 0, atol=1e-14)


@given(hnp.arrays(np.float64, (7, 3), elements=st.floats(-10, 10)), st.integers(0, 1000))
def test_orthonormalised_columns_are_orthogonal_with_mean_square_one(noise, seed):
    factors = noise + 30 * np.random.default_rng(seed).normal(size=(7, 3))
    result = orthonormalised(factors)
    np.testing.assert_allclose(result.T @ result, 7 * np.eye(3), atol=1e-8)


def test_orthonormalising_keeps_the_space_and_finds_the_nearest():
    rng = np.random.default_rng(3)
    factors = rng.normal(size=(9, 3))
    result = orthonormalised(factors)
    basis = np.linalg.qr(factors).Q
    np.testing.assert_allclose(basis @ (basis.T @ result), result, atol=1e-12)
    nearest = np.linalg.norm(result / math.sqrt(9) - factors)
    for _ in range(200):
        turned = basis @ np.linalg.qr(rng.normal(size=(3, 3))).Q
        assert np.linalg.norm(turned - factors) >= nearest - 1e-12
    np.testing.assert_allclose(orthonormalised(result), result, atol=1e-12)
