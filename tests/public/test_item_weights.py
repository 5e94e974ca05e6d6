"""Weights from released ones: unbiased on the whole, and not taken in by noise."""

import numpy as np
import pytest

from dpals.public.item_weights import weight_estimates


@pytest.mark.parametrize("noise", [0.5, 30.0])
def test_estimates_are_closer_than_what_was_released(noise):
    rng = np.random.default_rng(0)
    truth = noise * rng.pareto(1.0, 20_000)
    released = truth + noise * rng.normal(size=20_000)
    found = weight_estimates(released, noise)
    unsure = released < 5 * noise
    errors = [np.mean((guess - truth)[unsure] ** 2) for guess in (found.mean, np.maximum(released, 0))]
    assert errors[0] < 0.8 * errors[1]
    assert found.mean[unsure].sum() == pytest.approx(truth[unsure].sum(), rel=0.05)
    assert np.mean(found.root_mean_square[unsure] ** 2) == pytest.approx(np.mean(truth[unsure] ** 2), rel=0.1)


def test_they_are_those_of_bayes_for_two_kinds_of_items():
    """Nine of ten items weigh nothing and one weighs 3: with noise of 1 the chances follow from two densities."""
    rng = np.random.default_rng(1)
    truth = np.where(np.arange(50_000) % 10, 0.0, 3.0)
    released = truth + rng.normal(size=50_000)
    heavy = 0.1 * np.exp(-((released - 3) ** 2) / 2)
    chances = heavy / (heavy + 0.9 * np.exp(-(released**2) / 2))
    assert np.mean(np.abs(weight_estimates(released, 1.0).mean - 3 * chances)) < 0.08


def test_what_is_known_is_counted_and_not_what_is_positive():
    rng = np.random.default_rng(2)
    released = np.append(np.full(100, 50.0), np.zeros(10_000)) + rng.normal(size=10_100)
    known = weight_estimates(released, 1.0).known
    assert known[:100].all()
    assert known[100:].mean() < 0.001
    assert (released[100:] > 0).mean() > 0.4


def test_any_weights_give_numbers_from_zero_on():
    for released in (np.zeros(1), np.array([-1e9, 0.0, 1e9]), np.full(5, -3.0)):
        found = weight_estimates(released, 1.0)
        assert np.isfinite(found.mean).all()
        assert (found.mean >= 0).all()
        assert (found.root_mean_square >= found.mean).all()
