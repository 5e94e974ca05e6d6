"""The public half of a step: exact where there is no noise, and tame where there is nothing else."""

import numpy as np
import pytest

from dpals.public.evidence import Evidence
from dpals.public.pooled import PooledGram, add_moments, cooccurrence_features, inverse_root


def test_matrices_come_back_from_their_triangles():
    rng = np.random.default_rng(0)
    vectors = np.column_stack([rng.normal(size=(50, 3)), np.full(50, 0.7)])
    root = rng.normal(size=(3, 3))
    gram, covariance = vectors.T @ vectors, root @ root.T + np.eye(3)
    pooled = PooledGram.of(gram[np.triu_indices(4)], covariance[np.triu_indices(3)], 0.0, total=10.0, constant=0.7)
    np.testing.assert_allclose(pooled.vectors, gram[:3, :3] / 10, rtol=1e-8)
    np.testing.assert_allclose(pooled.covariance, covariance / 10, rtol=1e-8)
    assert pooled.scale == pytest.approx(5.0)
    whole = (pooled.vectors + pooled.covariance) / pooled.scale
    np.testing.assert_allclose(pooled.whitening() @ pooled.whitening(), whole, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_pure_noise_still_gives_positive_matrices(seed):
    rng = np.random.default_rng(seed)
    pooled = PooledGram.of(1e5 * rng.normal(size=10), 1e5 * rng.normal(size=6), 1e5, total=1.0, constant=0.7)
    for matrix in (pooled.vectors, pooled.covariance, pooled.whitening()):
        assert np.linalg.eigvalsh(matrix)[0] > 0
    assert pooled.scale > 0


@pytest.mark.parametrize("damping", [0.0, 0.3, 1.0])
def test_the_right_factors_stay_where_they_are(damping):
    """At the truth, residual times vector comes from the users having seen the rating: A_j C v_j."""
    rng = np.random.default_rng(3)
    factors, weights = rng.normal(size=(6, 2)), rng.uniform(10, 20, 6)
    pooled = PooledGram(np.diag([2.0, 1.0]), np.diag([0.5, 0.8]), 1.0, 0.0)
    known = Evidence.none(weights, 2)
    add_moments(known, weights[:, None] * (factors @ pooled.covariance), factors, pooled, 1e-6, damping)
    np.testing.assert_allclose(known.posterior(np.eye(2)).mean, factors, rtol=1e-6)


def test_a_measurement_that_is_mostly_noise_hardly_turns_anything():
    noise = 100.0
    matrix = noise * np.random.default_rng(5).normal(size=(4, 4))
    turned = PooledGram(matrix @ matrix.T / noise, np.zeros((4, 4)), scale=1.0, noise=noise).whitening()
    np.testing.assert_allclose(np.linalg.eigvalsh(turned), 1, atol=0.02)


def test_the_inverse_root_makes_the_identity():
    root = np.random.default_rng(5).normal(size=(4, 4))
    matrix = root @ root.T + np.eye(4)
    np.testing.assert_allclose(inverse_root(matrix) @ matrix @ inverse_root(matrix), np.eye(4), atol=1e-8)


def test_features_are_the_directions_in_which_the_people_of_items_differ():
    rng = np.random.default_rng(6)
    weights = np.r_[np.full(300, 400.0), np.zeros(5)]
    kind = np.where(np.arange(305) % 2, 0.3, -0.3)
    moments = weights[:, None] * (np.array([0.5, 0.2, 0.0]) + np.outer(kind, [0, 0.6, 0.8]))
    features, scales = cooccurrence_features(moments + rng.normal(size=moments.shape), weights, noise=1.0)
    assert scales[0] == pytest.approx(0.3, rel=0.05)
    assert scales[1] < 0.05
    assert abs(np.corrcoef(features[:300, 0], kind[:300])[0, 1]) > 0.99
    np.testing.assert_allclose(np.mean(features[:300, 0] ** 2), 1.0, atol=0.05)
    assert np.array_equal(features[300:], np.zeros((5, 3)))


def test_rounding_does_not_turn_the_features():
    """Directions in which items do not differ have equal, least scales; the features along them keep their basis."""
    rng = np.random.default_rng(6)
    weights = rng.uniform(1, 50, 500)
    truth = rng.normal(size=(500, 12)) * np.r_[0.3, 0.2, 0.1, np.zeros(9)]
    moments = weights[:, None] * truth + rng.normal(size=(500, 12))
    features, scales = cooccurrence_features(moments, weights, noise=1.0)
    assert np.sum(scales == scales.min()) > 3
    for _ in range(5):
        rounded = moments * (1 + 1e-15 * rng.normal(size=moments.shape))
        np.testing.assert_allclose(cooccurrence_features(rounded, weights, noise=1.0)[0], features, rtol=0, atol=1e-10)
