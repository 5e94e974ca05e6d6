"""The compiled posterior of biases, against a sum over a fine grid of biases, item by item."""

import numpy as np
import pytest
from scipy.stats import norm

from dpals.kernels.bias_posterior import posterior_means


@pytest.mark.parametrize("sampling", [0.0, 3.0])
def test_is_the_mean_over_a_grid_of_weights_and_biases(sampling):
    rng = np.random.default_rng(0)
    weights, variance, noise = np.sort(rng.exponential(3, (6, 5)), axis=1), 0.3, 2.0
    taken, sums = rng.normal(size=(4, 6)), 3 * rng.normal(size=(4, 6))
    evidence = np.column_stack([sums.sum(0), taken.sum(0), (taken**2).sum(0), (sums * taken).sum(0)]) / noise**2
    found = posterior_means(weights, 4 / noise**2, evidence, np.full(6, sampling), variance)
    for j in range(6):
        biases, shifts = np.linspace(-4, 4, 801), np.linspace(-12, 12, 601) if sampling else np.zeros(1)
        total = expected = 0.0
        for weight in weights[j]:
            chances = norm.pdf(biases, scale=np.sqrt(variance))[:, None]
            if sampling:
                chances = chances * norm.pdf(shifts, scale=np.sqrt(sampling / weight)) * (shifts[1] - shifts[0])
            for k in range(4):
                chances = chances * norm.pdf(sums[k, j], weight * (biases[:, None] + shifts - taken[k, j]), noise)
            total += weight * chances.sum()
            expected += weight * (biases @ chances).sum()
        assert found[j] == pytest.approx(expected / total, abs=0.01)


def test_weights_of_zero_say_nothing():
    evidence = np.array([[5.0, 1.0, 1.0, 5.0], [5.0, 0.0, 0.0, 0.0]])
    found = posterior_means(np.array([[0.0, 0.0], [0.0, 2.0]]), 1.0, evidence, np.zeros(2), 1.0)
    assert found[0] == 0
    assert found[1] == pytest.approx(2.0)


def test_overwhelming_evidence_does_not_overflow():
    weights, truth = np.array([[1.0, 1e4, 1e5]]), 0.5
    sums = np.array([1e4 * truth])
    evidence = np.column_stack([sums, np.zeros(1), np.zeros(1), np.zeros(1)]) * 1e12
    found = posterior_means(weights, 1e12, evidence, np.zeros(1), 1.0)
    assert np.isfinite(found).all()
    assert 0 < found[0] < 1
