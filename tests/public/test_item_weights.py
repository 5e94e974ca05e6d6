"""Weights from released ones: unbiased on the whole, and not taken in by noise."""

import numpy as np
import pytest

from dpals.public.item_weights import WeightEstimates, groups_of_equal_weight, squares_per_weight, weight_estimates


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
    found = weight_estimates(released, 1.0)
    assert np.mean(np.abs(found.mean - 3 * chances)) < 0.5 * np.mean(np.abs(np.maximum(released, 0) - 3 * chances))
    assert np.mean(np.abs(found.size_biased_mean[released > 2] - 3)) < 0.3, "who is rated weighs 3"


def test_a_sum_over_ratings_tells_most_with_the_size_biased_moments():
    """b is known from A b + noise, and errors count A times: of all multiples of the sum, the one found is the best."""
    rng = np.random.default_rng(3)
    truth = rng.choice([0.0, 1.0, 6.0], 400_000, p=[0.6, 0.3, 0.1])
    found = weight_estimates(truth + 2 * rng.normal(size=len(truth)), 2.0)
    some = (found.mean > 0.9) & (found.mean < 1.5)  # about the same is known of these
    truth, biases = truth[some], rng.normal(size=some.sum())
    sums, noise = truth * biases + 3 * rng.normal(size=some.sum()), 9.0
    weight, reliability = found.size_biased_rms[some], found.reliability[some]
    multiple = np.mean(reliability * weight / (weight**2 + noise))
    errors = [np.mean(truth * (biases - factor * multiple * sums) ** 2) for factor in (0.8, 1.0, 1.25)]
    assert errors[1] < min(errors[0], errors[2])


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
        assert (found.root_mean_square >= found.mean * (1 - 1e-9) - 1e-100).all()
        assert (found.size_biased_rms >= found.size_biased_mean * (1 - 1e-9) - 1e-100).all()
        assert (found.reliability <= 1 + 1e-9).all()


def test_noise_far_above_the_weights_does_not_invent_heavy_items():
    """All items weigh 1, and the noise is 20 times that: even the size-biased weights stay within a factor of a few."""
    for seed in range(5):
        released = 1 + 20 * np.random.default_rng(seed).normal(size=10_000)
        found = weight_estimates(released, 20.0)
        assert np.median(found.size_biased_rms) < 6
        assert found.mean.mean() < 2


def test_groups_have_about_the_same_weight_in_all():
    weights = np.random.default_rng(4).pareto(1.5, 5000)
    groups = groups_of_equal_weight(weights, 12)
    totals = np.bincount(groups, weights, 12)
    assert np.all(np.abs(totals - totals.mean()) < 0.5 * totals.mean() + weights.max())
    order = np.argsort(weights)
    assert np.all(np.diff(groups[order]) >= 0), "the lightest items come first"
    assert not groups_of_equal_weight(np.zeros(3), 12).any()


def test_squares_per_weight_are_those_of_the_groups_as_far_as_noise_allows():
    weights, groups = np.array([4.0, 4.0, 2.0]), np.array([0, 0, 1], np.int32)
    squares = np.array([1.6, 1.8])
    exact, vague = (squares_per_weight(squares, noise, weights, groups, 3.4) for noise in (1e-9, 1e9))
    np.testing.assert_allclose(exact, [0.2, 0.2, 0.9], rtol=1e-6)
    np.testing.assert_allclose(vague, 0.34, rtol=1e-6)
    assert np.all(squares_per_weight(np.array([-50.0, 50.0]), 1e-9, weights, groups, 3.4) <= 1)
    assert np.all(squares_per_weight(np.array([-50.0, 50.0]), 1e-9, weights, groups, 3.4) > 0)
    assert np.isfinite(squares_per_weight(np.zeros(2), 1.0, np.zeros(3), groups, 0.0)).all()


def test_popular_items_are_as_many_as_share_the_weight():
    weights = np.append(np.full(50, 10.0), np.zeros(10_000))
    assert WeightEstimates.certain(weights).n_popular == pytest.approx(50)
    released = weights + np.random.default_rng(5).normal(size=len(weights))
    assert 50 < weight_estimates(released, 1.0).n_popular < 500, "few are popular, as far as can be known"
    assert WeightEstimates.certain(np.zeros(3)).n_popular == 0
