"""P-values of an audit, against formulas of others."""

import math

import numpy as np
import pytest
from scipy import stats

from dpals.audit.p_values import (
    CHECKS,
    RISK,
    chi_square_p_value,
    coin_p_values,
    correlation_p_values,
    judge_p_values,
    samples_for_half_variance,
    standardised,
    variance_p_value,
)
from dpals.release.noise import InsecureSeededStream, rounded_gaussian


@pytest.mark.parametrize("sigma", [0.3, 1.0, 50.0, 2.0**33])
def test_scores_are_standard_normal_whatever_sigma_is(sigma):
    normal = stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    rounded = np.rint(normal * sigma).astype(np.int64)[:, None]
    scores = [standardised(rounded, np.array([sigma]), seed).ravel() for seed in (1, 2)]
    assert stats.kstest(scores[0], "norm").statistic < 0.01
    assert np.mean(scores[0] ** 2) == pytest.approx(1, abs=0.02)
    order = np.argsort(np.sin(np.arange(100_000) ** 2))  # unrelated rows of one distribution
    assert abs(np.mean(scores[0] * scores[1][order])) < 0.02


def test_cells_that_are_rarely_expected_are_joined():
    counts, chances = [300, 100, 10, 5, 0], [0.7, 0.25, 0.03, 0.01, 0.01]
    joined = stats.chisquare([300, 115], [0.7 * 415, 0.3 * 415]).pvalue
    assert chi_square_p_value(counts, chances) == pytest.approx(joined)


def test_half_the_variance_shows_in_as_many_numbers_as_are_said_to_be_enough():
    limit = 1e-7
    n = samples_for_half_variance(limit)
    least_seen = 2 * math.sqrt(stats.chi2.ppf(limit / 2, n) / n) ** 2
    assert stats.chi2.sf(least_seen * n, n) < 1e-4 < stats.chi2.sf(least_seen * n * (1 - 0.1), n)


@pytest.mark.parametrize("sigma", [1, 3, 2**30])
def test_p_values_of_sound_noise_are_uniform(sigma):
    """Seeded noise, so that this test cannot fail by chance. The weight makes the smallest sigma 0.38."""
    values = {"variance": [], "relation": []}
    for number in range(400):
        noise = rounded_gaussian(InsecureSeededStream(1, number), 60, sigma**2, np.array([1, 7]))
        scores = standardised(noise, sigma / np.sqrt([1, 7]), number)
        values["variance"].append(variance_p_value(scores))
        values["relation"] += correlation_p_values(scores[:, 0], scores[:, 1]).tolist()
    for name, found in values.items():
        assert stats.kstest(found, "uniform").pvalue > 1e-3, name


def test_correlations_are_judged_as_by_student():
    one, other = np.sin(np.arange(30.0) ** 2), np.cos(np.arange(30.0) ** 3)
    one, other = one - one.mean(), other - other.mean()
    cosine = one @ other / math.sqrt((one @ one) * (other @ other))
    student = 2 * stats.t.sf(abs(cosine) * math.sqrt(29 / (1 - cosine**2)), 29)
    assert correlation_p_values(one, other)[0] == pytest.approx(student)
    assert correlation_p_values(one, one)[0] < 1e-200


def test_coins_are_judged_on_both_sides():
    for heads in (0, 3, 10, 19):
        assert coin_p_values(heads, 20)[0] == pytest.approx(stats.binomtest(heads, 20).pvalue)


def test_many_p_values_are_judged_together():
    limit = RISK / CHECKS / 4
    assert judge_p_values("", [0.5, 0.5, 0.5, 1.01 * limit], "").verdict == "passed"
    assert judge_p_values("", [0.5, 0.5, 0.5, 0.99 * limit], "").verdict == "failed"
    assert judge_p_values("", [0.5, math.nan], "").verdict == "failed"
