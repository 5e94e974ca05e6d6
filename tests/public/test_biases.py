"""Biases of items from noisy sums, against simulations of where they come from."""

import numpy as np
import pytest

from dpals.public.biases import BiasEvidence, bias_estimates, shrunken_ratio
from dpals.public.item_weights import WeightEstimates, weight_estimates


def test_is_the_posterior_mean_of_a_gaussian():
    """Against the average of biases drawn from the prior, given moments near the one observed."""
    rng = np.random.default_rng(0)
    weight, noise, prior = 3.0, 2.0, 0.7
    biases = rng.normal(0, prior, 2_000_000)
    moments = weight * biases + rng.normal(0, noise, biases.size)
    near = np.abs(moments - 1.5) < 0.02
    result = shrunken_ratio(np.array([1.5]), np.array([weight]), noise, prior)
    np.testing.assert_allclose(result, biases[near].mean(), atol=0.02)


def test_nothing_known_gives_zero_and_everything_known_the_ratio():
    result = shrunken_ratio(np.array([5.0, 5.0, 6.0]), np.array([0.0, -3.0, 1e6]), noise=1.0, prior=0.5)
    np.testing.assert_allclose(result, [0.0, 0.0, 6e-6], rtol=1e-9)


def known_from(*releases):
    """Evidence from releases: sums, what was taken off, noise."""
    known = BiasEvidence.none(len(releases[0][0]))
    for sums, taken, noise in releases:
        known.add(sums, np.broadcast_to(taken, sums.shape), response=1.0, noise=noise)
    return known


def estimated(known, weights, expected=0.25, sampling=0.0):
    return bias_estimates(known, weights, expected, expected, np.full(len(known.sums), sampling))


def test_biases_of_rare_items_follow_the_popular_trend():
    weights = np.geomspace(0.1, 1000, 300)
    truth = 0.1 * np.log(weights) - 0.3
    sums = weights * truth + 2 * np.random.default_rng(0).normal(size=300)
    guesses = estimated(known_from((sums, 0.0, 2.0)), WeightEstimates.certain(weights), 0.01).biases
    np.testing.assert_allclose(guesses[200:], truth[200:], atol=0.1)
    np.testing.assert_allclose(guesses[:100], truth[:100], atol=0.1)


def test_few_ratings_limit_what_many_releases_can_say():
    """However often a bias of 1 is measured, it is not believed whole if the item's users might be others."""
    weights, sums = WeightEstimates.certain(np.ones(50)), np.where(np.arange(50) % 2, 1.0, -1.0)
    known = known_from(*[(sums, 0.0, 1.0)] * 1000)
    sure, doubtful = (estimated(known, weights, 1.0, few) for few in (0.0, 0.5))
    np.testing.assert_allclose(np.abs(sure.biases), 1.0, atol=0.01)
    # The variance is between the 1.0 that is expected and the 0.5 that is left without sampling.
    assert np.all((np.abs(doubtful.biases) > 0.5) & (np.abs(doubtful.biases) < 1 / 1.5))
    assert sure.n_parameters == pytest.approx(50, rel=0.01)
    assert doubtful.n_parameters == pytest.approx(50 * np.abs(doubtful.biases).mean(), rel=0.01)


@pytest.mark.parametrize("spread", [0.1, 2.0])
def test_how_much_biases_vary_is_learned(spread):
    """Closer to the best linear estimate, which knows the spread, than to the one that believes what is expected."""
    rng = np.random.default_rng(7)
    weights, truth = rng.uniform(1, 30, 30_000), spread * rng.normal(size=30_000)
    sums = weights * truth + 5 * rng.normal(size=30_000)
    variance, known = 0.25, known_from((sums, 0.0, 5.0))
    for _ in range(9):  # as in the steps of a training
        guesses, variance, _ = bias_estimates(known, WeightEstimates.certain(weights), 0.25, variance, np.zeros(30_000))
    best, expected = (sd**2 / (sd**2 + (5 / weights) ** 2) * sums / weights for sd in (spread, 0.5))
    found, least, most = (np.mean((guess - truth) ** 2) for guess in (guesses, best, expected))
    assert found < 0.6 * least + 0.4 * most


def test_where_nothing_is_known_biases_are_zero():
    guesses = estimated(known_from((np.ones(20), 0.0, 1.0)), WeightEstimates.certain(np.zeros(20)), sampling=1e9)
    assert not guesses.biases.any()
    assert guesses.n_parameters == pytest.approx(0, abs=1e-6)


def test_with_uncertain_weights_no_simple_rule_does_better():
    """Squared errors, weighted by the true weights, against ratios with the released weights or with their means."""
    rng = np.random.default_rng(5)
    truth, biases = rng.exponential(5, 20_000), 0.5 * rng.normal(size=20_000)
    released = truth + 4 * rng.normal(size=len(truth))
    weights, biases = weight_estimates(released, 4.0), biases + 0.2
    known, guesses = BiasEvidence.none(len(truth)), np.zeros(len(truth))
    for _ in range(5):
        known.add(truth * (biases - guesses) + 6 * rng.normal(size=len(truth)), guesses, 1.0, 6.0)
        guesses = estimated(known, weights).biases

    def error(guesses):
        return np.average((guesses - biases) ** 2, weights=truth)

    for weight in (np.maximum(released, 0.0), weights.mean, weights.size_biased_rms):
        ratios = known.sums + known.precision * 0 + weight * known.taken
        plain = [error(ratios * weight / (weight**2 * known.precision + ridge)) for ridge in (2.0, 4.0, 8.0, 16.0)]
        assert error(guesses) < min(plain)


def test_later_releases_make_up_for_a_wrong_weight():
    """The item weighs half of what is believed. Once its bias is taken off, nothing is left to find."""
    truth, weights = 0.8, WeightEstimates.certain(np.array([20.0]))
    known, guesses = BiasEvidence.none(1), np.zeros(1)
    for _ in range(200):
        known.add(10 * (truth - guesses), guesses, 1.0, 0.1)
        guesses = estimated(known, weights).biases
    assert guesses[0] == pytest.approx(truth, abs=0.05)
