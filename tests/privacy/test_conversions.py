"""Conversions between epsilon, delta and mu never promise more than is true, compared in 60 digits."""

import mpmath
import pytest
from scipy.stats import norm

from dpals.audit.accounting_checks import exact_delta
from dpals.release import accounting

MUS = (0.01, 0.2367, 0.5, 1.0, 3.0, 10.0)


def exact_power(mu, false_alarms):
    """Members that an optimal attack recognises, but for the last digits of floating point."""
    with mpmath.workdps(60):
        line = mpmath.findroot(lambda x: mpmath.ncdf(-x) - false_alarms, 2.3)
        return float(mpmath.ncdf(mu - line)) * (1 - 1e-12)


def test_the_exact_delta_is_that_of_the_textbook():
    textbook = norm.cdf(0.5 - 1.0) - 2.718281828459045 * norm.cdf(-0.5 - 1.0)
    assert float(exact_delta(1.0, 1.0)) == pytest.approx(textbook, rel=1e-12)


def test_mus_compose_to_no_less_than_the_root_of_their_squares():
    assert accounting.compose([3.0, 4.0, 12.0]) >= 13.0


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_delta_is_rounded_up(mu, epsilon):
    assert accounting.delta(mu, epsilon) >= exact_delta(mu, epsilon)


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-5, 1e-2])
def test_epsilon_is_rounded_up(mu, delta):
    assert exact_delta(mu, accounting.epsilon(mu, delta)) <= delta


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-5])
def test_mu_is_rounded_down(epsilon, delta):
    assert exact_delta(accounting.mu(epsilon, delta), epsilon) <= delta


@pytest.mark.parametrize("mu", MUS)
def test_the_power_of_attacks_is_not_underestimated(mu):
    assert accounting.attack_power(mu, 0.01) >= exact_power(mu, 0.01)
