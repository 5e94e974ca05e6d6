"""Scales from released sums: those of the ratings where they are known, and what is expected where they are not."""

import numpy as np
import pytest

from dpals.public.scales import Fit, Response, Scales, Spread, typical_distance


def spread_of(rng, n_users, sigma, tau, noise):
    """What users with one to nine ratings say, as docs/privacy.md defines it, by a loop."""
    sums = np.zeros(4)
    for _ in range(n_users):
        n = rng.integers(1, 10)
        values = rng.normal(0, tau) + rng.normal(0, sigma, n)
        mean, least = values.mean(), max(n, 2)
        sums += [np.sum((values - mean) ** 2) / least, (n - 1) / least, n * mean**2 / least, n / least]
    return Spread(*sums, noise, noise)


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_variances_within_and_between_users_are_told_apart(scale):
    rng = np.random.default_rng(0)
    found = Scales.of(spread_of(rng, 20_000, 2 * scale, 0.5 * scale, noise=0.1), unit=scale)
    assert found.noise == pytest.approx(2 * scale, rel=0.02)
    assert np.sqrt(found.user_variance) == pytest.approx(0.5 * scale, rel=0.05)
    assert found.user_bias_ridge == pytest.approx(16, rel=0.1)


def test_where_noise_hides_everything_the_unit_decides():
    for number in (-1e6, 0.0, 1e6):
        found = Scales.of(Spread(4 * number, number, number, number, noise=1e9, deviation_error=1e9), unit=2.0)
        assert found.noise_variance == pytest.approx(2.0, rel=0.01)
        assert found.user_bias_ridge == pytest.approx(4.0, rel=0.05)


def test_scales_are_positive_whatever_noise_does():
    rng = np.random.default_rng(1)
    for _ in range(200):
        scales = Scales.of(Spread(*rng.normal(0, 100, 4), noise=100.0, deviation_error=100.0), unit=3.0)
        for _ in range(20):
            scales = scales.updated(Fit(*rng.normal(0, 100, 4), noise=100.0, error=100.0), parameters=0.2)
            assert 0 < scales.noise_variance < np.inf
            assert 0 < scales.user_bias_ridge < np.inf


def test_the_noise_is_followed_as_the_model_learns():
    """From 9 down to 1 by a third each time, measured with an error of 5 %."""
    rng, scales = np.random.default_rng(2), Scales(9.0, 0.1, 1.0, 9.0)
    for step in range(12):
        truth = max(9 * 0.67**step, 1.0)
        scales = scales.updated(
            Fit(0.0, truth * 1000 * (1 + 0.05 * rng.normal()), 1000.0, 0.0, 1.0, 50.0), parameters=0.0
        )
    assert scales.noise_variance == pytest.approx(1.0, rel=0.1)


def test_measurements_count_by_their_errors():
    before = Scales(4.0, 0.01, 1.0, 4.0)
    vague, precise = (before.updated(Fit(0.0, 100.0, 100.0, 0.0, 0.1, error), 0.0) for error in (1e4, 0.1))
    assert vague.noise_variance == pytest.approx(4.0, rel=0.01)
    assert precise.noise_variance == pytest.approx(1.0, rel=0.01)


def test_parameters_of_the_items_use_up_degrees_of_freedom():
    fit = Fit(0.0, 80.0, 100.0, 0.0, 1e-6, 1e-6)
    assert Scales(1.0, 1.0, 1.0, 1.0).updated(fit, parameters=0.2).noise_variance == pytest.approx(1.0, rel=1e-3)


def test_ratings_without_noise_leave_a_ridge_that_single_precision_can_do_with():
    scales = Scales(1.0, 0.1, 0.5, 1.0)
    for _ in range(50):
        scales = scales.updated(Fit(0.0, 0.0, 1e6, 0.0, 1.0, 1e-9), parameters=0.0)
    assert scales.noise < 2e-3
    assert scales.ridge_variance == pytest.approx(1e-3)


def test_the_typical_distance_is_near_the_median():
    rng = np.random.default_rng(3)
    for typical in (0.01, 0.1, 0.7):
        distances = np.minimum(typical * np.exp(rng.normal(0, 0.5, 10_001)), 1)
        bins = np.minimum(np.floor(-2 * np.log2(distances)), 23).astype(int)
        counts = np.bincount(bins, minlength=24) + rng.normal(0, 10, 24)
        found = typical_distance(counts, noise=10.0, largest=40.0)
        assert 40 * np.median(distances) / 2**0.75 < found < 40 * np.median(distances) * 2**0.25
    assert typical_distance(rng.normal(0, 1e-3, 24), noise=1e6, largest=40.0) == 10.0


def test_the_response_is_what_was_measured_where_noise_allows_and_otherwise_what_is_expected():
    assert Response().updated(0.5, error=1e-3).value == pytest.approx(0.5, abs=0.01)
    assert Response().updated(-50.0, error=100.0).value == pytest.approx(Response().value, abs=0.01)
    rng, found = np.random.default_rng(4), Response()
    for _ in range(100):
        found = found.updated(0.6 + 0.3 * rng.normal(), error=0.3)
    assert found.value == pytest.approx(0.6, abs=0.15)
    for measured in (-5.0, 5.0):
        assert 0 < Response().updated(measured, error=1e-6).value <= 1
