"""The regression of users' vectors on their histories: what it finds, and how it bears noise and few users."""

import numpy as np
import pytest

from dpals.public.histories import HistoryRegression, history_features, whitened

N_USERS, LENGTH, RANK = 20_000, 4, 2


def simulated(rng):
    """Histories with unit second moments, and vectors that depend on them."""
    truth = rng.normal(size=(LENGTH, RANK + 1)) * 0.2
    histories = rng.normal(size=(N_USERS, LENGTH))
    return truth, histories, histories @ truth + rng.normal(size=(N_USERS, RANK + 1))


def regressed(histories, vectors, noise, steps, response, rng):
    known = HistoryRegression.none(np.eye(LENGTH), N_USERS, RANK)
    for _ in range(steps):
        # Users' vectors are drawn toward what is expected of them.
        seen = response * (vectors - histories @ known.coefficients)
        known.add(histories.T @ seen + noise * rng.normal(size=(LENGTH, RANK + 1)), noise, np.full(RANK + 1, response))
    return known.coefficients


@pytest.mark.parametrize("response", [0.3, 1.0])
def test_finds_the_coefficients_although_vectors_are_shrunken(response):
    rng = np.random.default_rng(0)
    truth, histories, vectors = simulated(rng)
    np.testing.assert_allclose(regressed(histories, vectors, 50.0, 8, response, rng), truth, atol=0.05)


def test_noise_without_end_leaves_nothing():
    rng = np.random.default_rng(1)
    _, histories, vectors = simulated(rng)
    assert np.abs(regressed(histories, vectors, 1e9, 8, 1.0, rng)).max() < 0.01


def test_few_users_are_not_believed_however_small_the_noise():
    rng = np.random.default_rng(2)
    known = HistoryRegression.none(np.eye(LENGTH), 30.0, RANK)
    for _ in range(10):
        known.add(10 * rng.normal(size=(LENGTH, RANK + 1)), 1e-6, np.ones(RANK + 1))
    assert np.abs(known.coefficients).max() < 0.1


def test_fading_forgets_and_another_basis_says_the_same():
    rng = np.random.default_rng(3)
    known = HistoryRegression.none(rng.normal(size=(7, LENGTH)), N_USERS, RANK)
    sums = 1000 * rng.normal(size=(LENGTH, RANK + 1))
    known.add(sums, 10.0, np.ones(RANK + 1))
    before, basis = known.factors(), np.array([[2.0, 0.3], [0.3, 0.5]])
    known.change_basis(basis)
    np.testing.assert_allclose(known.factors()[:, :-1] @ basis, before[:, :-1], atol=1e-9)
    np.testing.assert_allclose(known.factors()[:, -1], before[:, -1])
    known.fade(1e-9)
    assert np.abs(known.factors()).max() < 0.01 * np.abs(before).max()


def test_whitened_features_make_histories_with_unit_second_moments():
    rng = np.random.default_rng(4)
    features = history_features(rng.normal(size=(300, 3)), short=20.0)
    picked = rng.random((2000, 300)) < rng.uniform(0.02, 0.2, (2000, 1))
    counts = picked.sum(axis=1)[:, None] + 20
    histories = picked @ features / counts
    gram = histories.T @ histories
    found = picked @ whitened(features, gram[np.triu_indices(4)], 1e-9, 2000.0) / counts
    np.testing.assert_allclose(found.T @ found / 2000, np.eye(4), atol=0.05)


def test_a_gram_matrix_of_noise_does_not_blow_features_up():
    rng = np.random.default_rng(5)
    features = rng.normal(size=(50, 4))
    for _ in range(20):
        found = whitened(features, 1e6 * rng.normal(size=10), 1e6, 100.0)
        assert np.linalg.norm(found) < np.linalg.norm(features)
