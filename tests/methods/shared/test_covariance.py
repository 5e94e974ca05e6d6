"""The noisy covariance against dense numpy."""

import numpy as np
import pytest

import dpals
from dpals.methods.shared.covariance import release_covariance
from dpals.private import covariance
from dpals.private.covariance import Rows, RowsOf
from dpals.release.accounting import Budget
from dpals.release.mechanism import Mechanism

N_USERS, N_ITEMS, LONGEST = 70, 9, 2.5


@pytest.fixture
def ratings():
    rng = np.random.default_rng(3)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < 0.5)
    return dpals.Ratings.from_arrays(users, items, rng.normal(size=len(users)), rating_range=(-9, 9))


def released(ratings, epsilon, seed=1):
    mechanism = Mechanism(Budget(epsilon, 1e-5), insecure_seed=seed)
    rows = RowsOf(ratings_themselves, None, LONGEST)
    return release_covariance(mechanism, "covariance", ratings, rows, N_ITEMS, mechanism.budget.cost), mechanism


def ratings_themselves(ratings, _):
    return Rows(ratings, np.asarray(ratings.values, np.float64))


def clipped_rows(ratings):
    dense = ratings.to_csr().toarray().astype(np.float64)
    lengths = np.linalg.norm(dense, axis=1, keepdims=True)
    assert 0 < np.sum(lengths > LONGEST) < N_USERS
    return dense * np.minimum(1.0, LONGEST / np.maximum(lengths, 1e-12))


def test_without_noise_it_is_that_of_rows_scaled_to_the_clip(ratings):
    rows = clipped_rows(ratings)
    np.testing.assert_allclose(released(ratings, 1e6)[0], rows.T @ rows, atol=0.1)  # rows are rounded to a grid


def test_blocks_of_users_add_up_to_the_same(ratings, monkeypatch):
    whole, _ = released(ratings, 4.0)
    monkeypatch.setattr(covariance, "_USERS_AT_ONCE", 7)
    assert np.array_equal(released(ratings, 4.0)[0], whole)


def test_the_noise_is_symmetric_and_that_of_the_bound(ratings):
    rows, noise = clipped_rows(ratings), []
    for seed in range(60):
        found, mechanism = released(ratings, 1.0, seed)
        assert np.array_equal(found, found.T)
        noise.append((found - rows.T @ rows)[np.diag_indices(N_ITEMS)])
    (release,) = mechanism.releases
    assert release.sigma == pytest.approx(LONGEST**2 / mechanism.budget.mu, rel=1e-3)
    assert np.std(noise) == pytest.approx(release.sigma, rel=0.15)
