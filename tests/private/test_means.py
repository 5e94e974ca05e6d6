import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import dpals
from dpals.private.means import (
    MeanAndBound,
    equal_weights,
    mean_contribution,
    residual_contribution,
    user_means,
    user_offsets,
    weight_contribution,
)

tables = st.lists(
    st.dictionaries(st.integers(0, 5), st.sampled_from([0.5, 1.0, 3.5, 5.0]), min_size=1), min_size=1, max_size=6
)


def ratings_of(table):
    triples = [(user, item, value) for user, row in enumerate(table) for item, value in row.items()]
    users, items, values = zip(*triples, strict=True)
    return dpals.Ratings.from_arrays(users, items, values, rating_range=(0.5, 5.0), catalogue=range(6))


@given(tables)
def test_offsets_are_the_users_shrunken_mean_residuals(table):
    items = np.linspace(2.0, 4.0, 6)
    expected = [sum(value - items[j] for j, value in row.items()) / (len(row) + 2.5) for row in table]
    np.testing.assert_allclose(user_offsets(ratings_of(table), items, 2.5), expected, atol=1e-12)


@given(tables)
def test_the_mean_is_offered_within_its_bound(table):
    contribution = mean_contribution(ratings_of(table))
    means = [np.mean(list(row.values())) - 2.75 for row in table]
    np.testing.assert_allclose(contribution.vectors[:, 0], means, atol=1e-12)
    assert (contribution.vectors[:, 1] == 2.25).all()
    assert (np.linalg.norm(contribution.vectors, axis=1) <= 2.25 * np.sqrt(2) + 1e-12).all()


@given(tables)
def test_everyones_weights_have_norm_one(table):
    ratings = ratings_of(table)
    squares = np.add.reduceat(equal_weights(ratings) ** 2, ratings.indptr[:-1])
    np.testing.assert_allclose(squares, 1)
    assert np.array_equal(weight_contribution(ratings).coefficients, equal_weights(ratings))


@given(tables, st.floats(0.1, 3))
def test_residuals_are_clipped_as_a_whole(table, bound):
    ratings = ratings_of(table)
    contributed = residual_contribution(ratings, MeanAndBound(3.0, bound)).coefficients
    for user, row in enumerate(table):
        own = contributed[ratings.indptr[user] : ratings.indptr[user + 1]]
        residuals = np.array([row[j] - 3.0 for j in sorted(row)]) / np.sqrt(len(row))
        scale = min(1.0, bound / np.linalg.norm(residuals)) if residuals.any() else 1.0
        np.testing.assert_allclose(own, residuals * scale, atol=1e-12)


def test_users_without_ratings_offer_nothing():
    empty = ratings_of([{0: 1.0}, {1: 2.0}]).keep(np.array([False, True]))
    assert user_offsets(empty, np.full(6, 3.0), 0.0).tolist() == pytest.approx([0.0, -1.0])
    assert residual_contribution(empty, MeanAndBound(3.0, 1.0)).coefficients.tolist() == [-1.0]


@given(tables)
def test_means_are_the_users_own(table):
    silent = dpals.Ratings.from_csr(csr_array((1, 6)), rating_range=(0.5, 5.0))
    expected = [np.mean(list(row.values())) for row in table]
    np.testing.assert_allclose(user_means(ratings_of(table), 2.0), expected, rtol=1e-6)
    assert user_means(silent, 2.0).tolist() == [2.0]
    assert user_means(dpals.Ratings.from_arrays([1, 2], [1, 1]), 2.0).tolist() == [0.0, 0.0]
