"""Bounds of audits, against the exact chances of all outcomes of small experiments."""

import numpy as np
import pytest
from scipy import stats

from dpals.audit.confidence_bounds import (
    epsilon_from_scores,
    epsilon_lower_bound,
    expected_mu_lower_bound,
    mu_lower_bound,
    share_bounds,
    trials_to_refute,
)
from dpals.release import accounting


def chance_above(bound, limit, rates, trials):
    """The chance that a bound exceeds a limit, over all counts of two binomial experiments."""
    chances = [stats.binom.pmf(np.arange(trials + 1), trials, rate) for rate in rates]
    above = np.array([[bound(a, b) > limit for b in range(trials + 1)] for a in range(trials + 1)])
    return float((np.outer(*chances) * above).sum())


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_the_true_share_is_within_its_bounds(share):
    trials = 60
    chances = stats.binom.pmf(np.arange(trials + 1), trials, share)
    low, high = np.array([share_bounds(k, trials, confidence=0.95) for k in range(trials + 1)]).T
    assert chances[low > share].sum() <= 0.05
    assert chances[high < share].sum() <= 0.05


@pytest.mark.parametrize("mu", [0.2, 1.0, 2.5])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.5])
def test_mu_is_rarely_below_its_lower_bound(mu, threshold):
    trials = 20
    rates = stats.norm.sf(threshold), stats.norm.cdf(threshold - mu)
    assert chance_above(lambda a, b: mu_lower_bound(a, trials, b, trials, 0.95), mu, rates, trials) <= 0.05


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_epsilon_is_rarely_below_its_lower_bound(epsilon, delta):
    """Randomised response that tells the truth with probability delta: no event tells more."""
    trials = 20
    slips = (1 - delta) / (1 + np.exp(epsilon))
    rates = delta + slips * np.exp(epsilon), slips
    assert (
        chance_above(lambda a, b: epsilon_lower_bound(a, trials, b, trials, delta, 0.95), epsilon, rates, trials)
        <= 0.05
    )


def test_bounds_come_close_with_many_trials():
    false_alarms, misses, trials = stats.norm.sf(0.5), stats.norm.cdf(0.5 - 1.0), 10**9
    assert mu_lower_bound(round(false_alarms * trials), trials, round(misses * trials), trials) == pytest.approx(
        1, 1e-3
    )
    assert epsilon_lower_bound(3 * 10**8, 10**9, 10**8, 10**9, delta=0.0) == pytest.approx(np.log(3), abs=1e-3)


def test_nothing_seen_proves_nothing():
    assert mu_lower_bound(5, 10, 5, 10) == 0
    assert epsilon_lower_bound(0, 100, 100, 100, delta=1e-5) == 0
    assert epsilon_lower_bound(1, 10**6, 0, 10**6, delta=1e-3) == 0, "that rare an event is what delta allows"


def test_expected_bound_is_what_quantiles_of_the_normal_distribution_give():
    trials, mu = 200_000, 0.3
    at = (np.arange(trials) + 0.5) / trials
    for noise in (1.0, 0.5):
        absent, present = noise * stats.norm.ppf(at), mu + noise * stats.norm.ppf(at)
        seen = mu_lower_bound(int((absent > 0.2).sum()), trials, int((present <= 0.2).sum()), trials)
        assert expected_mu_lower_bound(mu, 0.2, trials, noise) == pytest.approx(seen, abs=1e-4)


@pytest.mark.parametrize("mu", [0.05, 0.3, 2.0])
def test_so_many_trials_are_enough_and_half_as_many_are_not(mu):
    trials = trials_to_refute(mu)
    assert expected_mu_lower_bound(mu, mu / 2, trials, noise=0.5) > mu
    assert expected_mu_lower_bound(mu, mu / 2, trials // 2, noise=0.5) <= mu


@pytest.mark.parametrize("telling", [1, -1])
def test_epsilon_of_scores_uses_the_side_on_which_they_tell_more(telling):
    """Quantiles of normal scores; on the other side of the middle all are made the same."""
    trials, mu, delta = 400_000, 1.0, 1e-5
    noise = stats.norm.ppf((np.arange(trials) + 0.5) / trials)
    kept = [np.where(telling * (scores - mu / 2) > 0, scores, mu / 2) for scores in (noise, noise + mu)]
    epsilon = epsilon_from_scores(*kept, lambda t: (stats.norm.cdf(t), stats.norm.cdf(t - mu)), delta)
    assert 0.6 * accounting.epsilon(mu, delta) < epsilon < accounting.epsilon(mu, delta)
