"""What users contribute to DPALS, against the definitions written out user by user."""

import numpy as np
import pytest

import dpals
from dpals.private.dpals import (
    ItemStep,
    Sampling,
    UniformSampling,
    item_step_contributions,
    sample,
    sample_count_contribution,
    uniform_count_contribution,
)
from dpals.private.user_vectors import LeastSquaresProblem

N_USERS, N_ITEMS, RANK, AT_MOST = 40, 10, 2, 3


@pytest.fixture
def ratings():
    rng = np.random.default_rng(2)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < 0.6)
    values = rng.choice([1.0, 2.0, 4.5, 5.0], len(users))
    return dpals.Ratings.from_arrays(users, items, values, rating_range=(1, 5), catalogue=range(N_ITEMS))


@pytest.fixture
def frequent():
    return np.arange(N_ITEMS) % 3 > 0


def sampling(rule, frequent):
    counts = np.random.default_rng(3).permutation(int(frequent.sum())) + 2.0
    return Sampling(frequent, rule, counts, AT_MOST, seed=4, exponent=0.4)


def rows(ratings, numbers):
    return [numbers[start:stop] for start, stop in zip(ratings.indptr[:-1], ratings.indptr[1:], strict=True)]


def test_adaptive_sampling_takes_the_least_counted_of_the_frequent_items(ratings, frequent):
    public = sampling("adaptive", frequent)
    chosen, weights = sample(ratings, public)
    assert (weights == 1).all()
    kept = np.flatnonzero(frequent)
    for all_items, items in zip(rows(ratings, ratings.indices), rows(chosen, chosen.indices), strict=True):
        possible = [int(np.searchsorted(kept, item)) for item in all_items if frequent[item]]
        assert items.tolist() == sorted(sorted(possible, key=lambda j: public.counts[j])[:AT_MOST])


def test_uniform_sampling_takes_as_many_and_prefers_no_item(ratings, frequent):
    chosen, _ = sample(ratings, sampling("uniform", frequent))
    possible = [int(frequent[items].sum()) for items in rows(ratings, ratings.indices)]
    assert np.diff(chosen.indptr).tolist() == [min(AT_MOST, number) for number in possible]
    assert len(np.unique(chosen.indices)) == frequent.sum()


def test_weights_take_all_ratings_and_have_norm_one(ratings, frequent):
    public = sampling("weights", frequent)
    chosen, weights = sample(ratings, public)
    assert chosen.n_ratings == frequent[ratings.indices].sum()
    for items, own in zip(rows(chosen, chosen.indices), rows(chosen, weights), strict=True):
        expected = public.counts[items] ** -0.4
        np.testing.assert_allclose(own, expected / max(np.linalg.norm(expected), 1e-12), rtol=1e-9)


def test_counts_are_ones(ratings, frequent):
    public = sampling("adaptive", frequent)
    counted = sample_count_contribution(ratings, public)
    assert counted.pattern.n_items == frequent.sum()
    assert counted.coefficients.tolist() == [1.0] * sample(ratings, public).ratings.n_ratings
    uniform = uniform_count_contribution(ratings, UniformSampling(AT_MOST, 0))
    assert uniform.pattern.n_items == N_ITEMS
    assert np.diff(uniform.pattern.indptr).max() == AT_MOST


@pytest.mark.parametrize("with_unseen", [False, True])
def test_a_step_is_of_clipped_vectors_and_clipped_ratings(ratings, frequent, with_unseen):
    rng = np.random.default_rng(6)
    problem = LeastSquaresProblem.of(rng.normal(size=(N_ITEMS, RANK)), np.zeros(N_ITEMS), 3.0, 0.5)
    public = ItemStep(sampling("adaptive", frequent), problem, 0.7, 3.0, 1.2, with_unseen)
    gram, moment, *everyone = item_step_contributions(ratings, public)
    solved = problem.solve(ratings).astype(float)
    lengths = np.linalg.norm(solved, axis=1, keepdims=True)
    assert 0 < (lengths > 0.7).sum() < N_USERS
    expected = solved * np.minimum(1, 0.7 / np.maximum(lengths, 1e-12))
    chosen = sample(ratings, public.sampling).ratings
    for contribution in (gram, moment, *everyone):
        np.testing.assert_allclose(contribution.vectors, expected, atol=1e-6)
    assert (gram.coefficients == 1).all()
    np.testing.assert_allclose(moment.coefficients, np.clip(chosen.values - 3.0, -1.2, 1.2), atol=1e-6)
    assert [part.coefficients.tolist() for part in everyone] == [[1.0] * N_USERS] * with_unseen
