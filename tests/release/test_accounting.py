import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting import pld
from hypothesis import given
from hypothesis import strategies as st

from dpals.release import accounting
from dpals.release.accounting import Budget, PrivacyBudgetExceeded

EPSILONS = np.geomspace(1e-3, 1e3, 19).tolist()
DELTAS = [*np.geomspace(1e-15, 0.1, 13).tolist(), 0.3, 0.5]

budgets = st.builds(Budget, st.floats(1e-3, 1e3), st.floats(1e-15, 0.5))
costs = st.integers(1, 2**76)


def exact_delta(mu, epsilon):
    """The definition, in 80 digits."""
    with mpmath.workdps(80):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_mu_is_just_below_the_largest_that_keeps_the_promise(epsilon, delta):
    mu = accounting.mu(epsilon, delta)
    assert exact_delta(mu, epsilon) <= delta
    assert exact_delta(mu * (1 + 1e-9), epsilon) > delta


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_epsilon_is_just_above_the_smallest_that_is_true(epsilon, delta):
    mu = accounting.mu(epsilon, delta)
    found = accounting.epsilon(mu, delta)
    assert exact_delta(mu, found) <= delta
    assert exact_delta(mu, found * (1 - 1e-9)) > delta
    assert found == pytest.approx(epsilon, rel=1e-8)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("target", DELTAS)
def test_delta_is_just_above_the_definition(epsilon, target):
    mu = accounting.mu(epsilon, target)
    truth = exact_delta(mu, epsilon)
    assert truth <= accounting.delta(mu, epsilon) <= truth * (1 + mpmath.mpf("1e-9"))


@given(log_mu=st.floats(-14.5, 9.0), steps=st.floats(-8.0, 8.0), share=st.floats(0.0, 1.0))
def test_delta_is_as_close_as_it_says(log_mu, steps, share):
    """From the smallest mu with a delta of 1e-15 to the largest, some sigmas from the mean of the privacy loss."""
    mu = 10**log_mu
    epsilon = max(mu * (steps + mu / 2), share * mu * min(1.0, mu))
    truth, found = exact_delta(mu, epsilon), accounting.delta(mu, epsilon)
    assert found >= truth
    if truth >= 1e-15:
        assert found <= truth * (1 + 2e-13 * (mpmath.mpf(mu) + 1 / mpmath.mpf(mu)))


def test_delta_is_far_off_for_a_mu_that_is_far_off():
    """Why it does not say 1e-9 for every mu."""
    mu, epsilon = 1.0049272449387216e-09, 4.118751417172443e-09
    truth = exact_delta(mu, epsilon)
    assert 1.5e-5 < accounting.delta(mu, epsilon) / truth - 1 < 1.6e-5


@pytest.mark.parametrize(("sigma", "delta"), [(5.0, 1e-5), (2.0, 1e-6), (1.0, 1e-8), (0.4, 1e-3)])
def test_agrees_with_dp_accounting(sigma, delta):
    theirs = pld.privacy_loss_distribution.from_gaussian_mechanism(
        sigma, value_discretization_interval=1e-4, pessimistic_estimate=True
    )
    ours = accounting.epsilon(1 / sigma, delta)
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=2e-3)


def test_composition_agrees_with_dp_accounting():
    sigmas = [3.0, 4.0, 7.0]
    single = [
        pld.privacy_loss_distribution.from_gaussian_mechanism(s, value_discretization_interval=1e-4) for s in sigmas
    ]
    theirs = single[0].compose(single[1]).compose(single[2])
    ours = accounting.epsilon(accounting.compose([1 / s for s in sigmas]), 1e-6)
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=2e-3)


@given(st.lists(st.floats(1e-6, 50), max_size=20))
def test_composition_is_the_root_of_the_sum_of_squares_rounded_up(mus):
    exact = sum((Fraction(mu) ** 2 for mu in mus), Fraction(0))
    composed = Fraction(accounting.compose(mus))
    assert exact <= composed**2 <= exact * (1 + Fraction(1, 10**6)) + Fraction(1, 2**50)


def test_the_ends_of_the_range():
    assert accounting.delta(0.0, 1.0) == 0
    assert accounting.delta(math.inf, 1.0) == 1
    assert accounting.delta(200.0, 1.0) == 1
    assert 0 < accounting.delta(0.01, 100.0) < 1e-300
    assert accounting.delta(1.0, math.inf) > 0
    assert accounting.epsilon(0.0, 1e-5) == 0
    assert accounting.epsilon(0.1, 0.5) == 0
    assert accounting.epsilon(math.inf, 1e-5) == math.inf


@pytest.mark.parametrize("wrong", [-1.0, math.nan])
def test_refuses_what_is_not_a_privacy_parameter(wrong):
    for call in (accounting.epsilon, accounting.delta, accounting.mu):
        with pytest.raises(ValueError, match="must"):
            call(wrong, 0.1)
        with pytest.raises(ValueError, match="must"):
            call(0.1, wrong)


@pytest.mark.parametrize("delta", [0.0, 1.0, 2.0])
def test_refuses_a_delta_that_promises_nothing_or_too_much(delta):
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        accounting.mu(1.0, delta)
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        Budget(1.0, delta)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_a_budget_needs_a_positive_epsilon(epsilon):
    with pytest.raises(ValueError, match="epsilon must be a positive number"):
        Budget(epsilon, 1e-5)


@given(sensitivity=st.integers(0, 2**30), variance=st.integers(1, 2**80))
def test_a_cost_is_the_squared_ratio_rounded_up(sensitivity, variance):
    exact = Fraction(sensitivity**2, variance) * 2**64
    assert exact <= accounting.cost(sensitivity, variance) < exact + 1


@given(sensitivity=st.integers(1, 2**30), cost=costs)
def test_the_variance_for_a_cost_never_costs_more(sensitivity, cost):
    variance = accounting.variance_for(sensitivity, cost)
    assert accounting.cost(sensitivity, variance) <= cost
    assert variance == 1 or accounting.cost(sensitivity, variance - 1) > cost


@given(cost=costs)
def test_mu_of_a_cost_is_rounded_up_and_back_down(cost):
    mu = Fraction(accounting.mu_of(cost))
    assert mu**2 * 2**64 >= cost
    assert mu**2 * 2**64 <= cost * (1 + Fraction(1, 2**50)) + 2**33 * mu
    assert accounting.cost_of(float(mu)) >= cost


@given(budget=budgets, weights=st.lists(st.floats(0, 1e6), min_size=1, max_size=40).filter(any))
def test_shares_never_add_up_to_more_than_the_budget(budget, weights):
    shares = budget.split(*weights)
    assert sum(shares) <= budget.cost
    assert sum(shares) >= budget.cost - len(weights)
    for share, weight in zip(shares, weights, strict=True):
        assert share == pytest.approx(budget.cost * weight / sum(weights), rel=1e-9, abs=1)


@given(budget=budgets)
def test_a_budget_is_rounded_down(budget):
    assert budget.cost <= Fraction(budget.mu) ** 2 * 2**64 < budget.cost + 1


def test_extreme_arguments_end_and_stay_on_the_safe_side():
    assert accounting.epsilon(1e200, 1e-5) == math.inf
    assert accounting.delta(22.79706715060691, 1125.7515054076803) >= exact_delta(22.79706715060691, 1125.7515054076803)
    with pytest.raises(ValueError, match="epsilon must lie between"):
        accounting.mu(1e300, 1e-5)
    with pytest.raises(ValueError, match="not below 1e-250"):
        accounting.mu(1.0, 1e-310)


@given(budget=budgets)
def test_a_budget_spent_whole_is_within_its_epsilon(budget):
    spent = accounting.epsilon(accounting.mu_of(budget.cost), budget.delta)
    assert spent == pytest.approx(budget.epsilon, rel=1e-4)


def test_a_budget_refuses_senseless_shares():
    for weights in [(), (0.0,), (-1.0, 2.0), (math.nan,), (math.inf, 1.0)]:
        with pytest.raises(ValueError, match="shares must be"):
            Budget(1.0, 1e-5).split(*weights)


def test_attack_power_is_the_gaussian_trade_off():
    assert accounting.attack_power(0.0, 0.01) == pytest.approx(0.01)
    with mpmath.workdps(30):
        threshold = mpmath.findroot(lambda z: mpmath.ncdf(-z) - 0.01, 2.3)
        assert accounting.attack_power(0.7, 0.01) == pytest.approx(float(mpmath.ncdf(0.7 - threshold)))


def test_attack_power_of_a_guarantee_that_is_not_gaussian():
    """At most e^epsilon * rate + delta, and the same for those who did not take part."""
    assert accounting.general_attack_power(1.0, 1e-3, 0.01) == pytest.approx(math.e * 0.01 + 1e-3)
    assert accounting.general_attack_power(5.0, 1e-3, 0.01) == pytest.approx(1 - math.exp(-5) * (0.99 - 1e-3))
    assert accounting.general_attack_power(1e6, 1e-3, 0.01) == 1
    for mu in (0.1, 1.0, 3.0):
        for epsilon in (0.1, 1.0, 5.0):
            bound = accounting.general_attack_power(epsilon, accounting.delta(mu, epsilon), 0.01)
            assert bound >= accounting.attack_power(mu, 0.01)


@given(cost=st.integers(2**12, 2**76))
def test_a_part_of_a_budget_costs_no_more_and_hardly_less(cost):
    assert cost * (1 - 1e-6) - 2 <= Budget.of_cost(cost).cost <= cost


def test_a_part_of_a_budget_can_be_too_small():
    with pytest.raises(ValueError, match="too small to spend"):
        Budget.of_cost(1)


def test_budget_errors_can_be_caught_as_runtime_errors():
    assert issubclass(PrivacyBudgetExceeded, RuntimeError)
