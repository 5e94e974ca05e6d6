"""What is promised for a search covers what it truly loses, worked out exactly for searches over Gaussians."""

import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

import dpals
from dpals.audit.search_canary import generating_function
from dpals.audit.simulated_data import odd_users
from dpals.release import accounting, selection
from dpals.release.selection import DISTRIBUTIONS, Poisson, tries_distribution

CELLS = np.concatenate([[-np.inf], np.linspace(-9.0, 9.0, 6001), [np.inf]])
SETTINGS = [
    (mu, delta, distribution, mean)
    for mu in (0.05, 0.2, 1.0)
    for delta in (1e-6, 1e-4)
    for distribution in DISTRIBUTIONS
    for mean in (3.0, 10.0, 100.0)
]
"""Settings at which the terms of the formula matter in turn."""
ROUNDING = 1 + 1e-9


def exact_delta(mu, epsilon, tries):
    """A delta that the best of `tries` needs at least at this epsilon, if tries are N(0, 1) or N(mu, 1).

    What a try publishes is put into cells, and the cells into an order by score. The chances of the best cell are
    then known, and so is the delta of this one search. Rounding to cells can only lose information, so that every
    order gives a true lower bound. Orders tried: rising, falling, and both with the far end of the scores put on top.
    There the tries besides the best tell the most: the less likely they make a try that beats the outcome, the likelier
    the outcome.
    """
    chances = [cell_chances(0.0), cell_chances(mu)]
    worst = 0.0
    for order in cell_orders(chances[0], tries):
        one, other = (best_chances(tries, chance[order]) for chance in chances)
        for a, b in ((one, other), (other, one)):
            with np.errstate(divide="ignore"):
                allowed = np.exp(np.minimum(epsilon + np.log(b), 0.0))
            worst = max(worst, float(np.maximum(a - allowed, 0).sum()))
    return worst


def cell_chances(mean):
    """Of each cell, from the nearer tail, so that small ones are exact."""
    low, high = CELLS[:-1] - mean, CELLS[1:] - mean
    return np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))


def best_chances(tries, chances):
    """The chance of each cell to be the best one; the first cell beats all others.

    It is the difference of two values of the `generating_function`, written so that small ones keep all their digits:
    exp(epsilon) would make large ones of rounding errors.
    """
    beyond = np.minimum(np.concatenate([[0.0], np.cumsum(chances[:-1])]), 1.0)
    if isinstance(tries, Poisson):
        return -np.exp(-tries.mean * beyond) * np.expm1(-tries.mean * chances)
    rest = tries.gamma + (1 - tries.gamma) * beyond
    growth = np.log1p((1 - tries.gamma) * chances / rest)
    if tries.eta == 0:
        return growth / -math.log(tries.gamma)
    return -(rest**-tries.eta) * np.expm1(-tries.eta * growth) / (tries.gamma**-tries.eta - 1)


def cell_orders(chances, tries):
    """Cells from the best to the worst, in several ways."""
    rising = np.arange(len(chances))
    for cells in (rising, rising[::-1]):
        for part in (0.0, 0.1, 0.3, 1.0, 3.0):
            top = int(np.searchsorted(np.cumsum(chances[cells]), min(part / tries.mean, 0.45))) if part else 0
            yield np.concatenate([cells[:top], cells[top:][::-1]])


def needed_share():
    """The largest delta that a search needs, as a share of what is promised, over all settings."""
    shares = []
    for mu, delta, distribution, mean in SETTINGS:
        tries = tries_distribution(distribution, mean)
        shares.append(exact_delta(mu, selection.epsilon(mu, delta, tries), tries) / delta)
    return max(shares)


def test_the_promise_of_searches_covers_their_exact_loss():
    assert 0.1 < needed_share() <= ROUNDING


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("mean", [1.5, 3.0, 40.0])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 8.0])
def test_the_statement_of_a_search_covers_its_exact_loss(distribution, mean, epsilon):
    search = dpals.PrivateSearch(
        dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, epsilon, 1e-6, tries=mean, distribution=distribution
    )
    statement = search.fit(odd_users(12, 40, implicit=False).ratings()).privacy
    tries = tries_distribution(statement.selection.distribution, statement.selection.tries)
    assert exact_delta(statement.selection.mu, statement.epsilon, tries) <= statement.delta * ROUNDING


def without_growth(mu, delta, tries):
    return min(accounting.epsilon(mu, delta / tries.mean), selection._by_renyi(mu, delta, tries))


def without_mean(mu, delta, tries):
    return min(accounting.epsilon(mu, delta) + tries.log_likelihood_shift(mu), selection._by_renyi(mu, delta, tries))


@pytest.mark.parametrize("broken", [without_growth, without_mean])
def test_terms_missing_from_the_promise_are_noticed(monkeypatch, broken):
    monkeypatch.setattr(selection, "epsilon", broken)
    assert needed_share() > ROUNDING


@pytest.mark.parametrize(
    "tries",
    [tries_distribution("geometric", 4.0), tries_distribution("logarithmic", 3.0), tries_distribution("poisson", 2.0)],
)
def test_the_generating_function_is_that_of_the_chances(tries):
    chances = []
    for number, chance in tries.probabilities(mpmath.mp):
        chances.append((number, float(chance)))
        if number > 200:
            break
    for beyond in (0.0, 0.2, 0.9, 1.0):
        due = sum(chance * (1 - beyond) ** number for number, chance in chances)
        assert generating_function(tries, np.array([beyond]))[0] == pytest.approx(due, abs=1e-9)


def test_a_search_with_hardly_a_second_try_loses_what_one_try_loses():
    mu, epsilon = 0.5, 1.0
    delta = exact_delta(mu, epsilon, tries_distribution("geometric", 1.00001))
    assert delta == pytest.approx(accounting.delta(mu, epsilon), rel=1e-3)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize(("epsilon", "delta"), [(20.0, 1e-6), (30.0, 1e-5), (12.0, 1e-9), (400.0, 1e-9)])
def test_large_epsilons_of_searches_are_covered(distribution, epsilon, delta):
    tries = tries_distribution(distribution, 3.0)
    mu = selection.mu(epsilon, delta, tries)
    assert 0.1 * delta < exact_delta(mu, epsilon, tries) <= delta
