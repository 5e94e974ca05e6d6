"""How the budget is divided, and which rank suits it."""

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpals
from dpals.methods.pooled.budget import (
    GROWTH,
    Shares,
    rank_for_implicit,
    rank_for_ratings,
    rises_above,
    signal_of_tastes,
    signal_of_weights,
    spread_over,
)
from dpals.release.accounting import Budget

SHARES = Shares(first=0.005, weights=0.1, cooccurrence=0.25, biases=0.04, gram=0.03)
share, small = st.floats(0.001, 0.49), st.floats(0.001, 0.01)


def of_ratings(weights, noise, budget, typical_count=50.0):
    return rank_for_ratings(signal_of_tastes(signal_of_weights(weights, noise, budget), typical_count))


def of_implicit(weights, noise, budget, typical_count=50.0):
    return rank_for_implicit(signal_of_weights(weights, noise, budget), typical_count, n_popular=1000)


RANKS = (of_ratings, of_implicit)


def costs_of(step):
    return step.moments + step.gram + step.covariance + step.fit + step.history


@given(
    shares=st.builds(Shares, share, share, share, share, share, share, small),
    rank=st.integers(0, 40),
    steps=st.integers(1, 60),
)
def test_costs_are_whole_and_add_up_to_no_more_than_there_is(shares, rank, steps):
    rest = 10**15
    costs = shares.training(rest, rank, steps)
    parts = [*costs.cooccurrence, costs.biases, *costs.steps]
    total = costs.histories + sum(costs_of(part) for part in parts)
    assert rest * (1 - 1e-8) < total <= rest
    assert all(type(part.moments) is int and costs_of(part) > 0 for part in parts)
    assert sum(shares.before_training()) == pytest.approx(1)


@given(steps=st.integers(1, 20), number=st.integers(1, 60))
def test_steps_that_are_spread_again_cost_no_more_than_before(steps, number):
    before = SHARES.training(10**15, rank=3, steps=steps).steps
    after = spread_over(before, number)
    assert len(after) == number
    for kind in ("moments", "gram", "covariance", "fit", "history"):
        were, are = (sum(getattr(step, kind) for step in some) for some in (before, after))
        assert were * (1 - 1e-8) - number <= are <= were
    costs = [costs_of(step) for step in after]
    np.testing.assert_allclose(np.divide(costs[1:], costs[:-1]), min(GROWTH, 100 ** (1 / number)), rtol=1e-6)


@pytest.mark.parametrize("steps", [100, 5000])
def test_each_of_very_many_steps_can_be_paid_for(steps):
    rest = Budget(0.01, 1e-9).cost
    costs = Shares(first=0.005, weights=0.1, cooccurrence=0.25, biases=0.04, gram=0.03, fit=0.01, history=0.003)
    assert all(min(astuple(step)) > 0 for step in costs.training(rest, rank=3, steps=steps).steps)


def test_shares_are_of_what_they_say():
    rest = 10**15
    costs = SHARES.training(rest, rank=8, steps=10)
    assert sum(map(costs_of, costs.cooccurrence)) == pytest.approx(0.25 * rest)
    assert costs_of(costs.biases) == pytest.approx(0.04 * rest)
    assert costs.biases.covariance == 0, "vectors without factors have no covariance"
    for step in costs.steps:
        assert (step.gram + step.covariance) / costs_of(step) == pytest.approx(0.03)
    rising = np.array([costs_of(step) for step in costs.steps])
    np.testing.assert_allclose(rising[1:] / rising[:-1], GROWTH)


def test_without_factors_the_steps_get_what_cooccurrence_would_have_cost():
    rest = 10**15
    costs = SHARES.training(rest, rank=0, steps=3)
    assert costs.cooccurrence == ()
    assert sum(map(costs_of, costs.steps)) == pytest.approx(0.96 * rest)
    assert all(step.covariance == 0 for step in costs.steps)


def test_noise_alone_hardly_ever_rises_above_itself():
    rng = np.random.default_rng(0)
    found = [rises_above(rng.normal(0, 3.0, 200), noise=3.0) for _ in range(2000)]
    assert np.mean(found) < 0.01
    assert rises_above(rng.normal(0, 3.0, 200) + 3.0, noise=3.0)


@pytest.mark.parametrize("rank", RANKS)
def test_more_budget_never_lowers_the_rank_and_noise_has_none(rank):
    weights = np.geomspace(2000, 2, 500)
    ranks = [rank(weights, 10.0, dpals.Budget(epsilon, 1e-5)) for epsilon in (0.001, 0.1, 1, 10, 100)]
    assert ranks == sorted(ranks)
    assert ranks[0] == 0 < ranks[-1] <= 32
    assert rank(np.zeros(500), 10.0, dpals.Budget(100.0, 1e-5)) == 0


def test_the_rank_is_at_most_the_number_of_items():
    pairs = np.repeat(np.arange(3000), 3), np.tile([0, 1, 2], 3000)
    assert dpals.PooledDPALS(100.0, steps=1).fit(dpals.Ratings.from_arrays(*pairs)).rank_ == 3
    ratings = dpals.Ratings.from_arrays(*pairs, np.tile([1, 3, 5], 3000), rating_range=(1, 5))
    assert 0 <= dpals.PooledDPALS(100.0, steps=1).fit(ratings).rank_ <= 3


@pytest.mark.parametrize(("rank", "counts"), [(of_ratings, (1, 10, 100)), (of_implicit, (0.3, 3, 100))])
def test_users_with_few_ratings_leave_less_to_learn_about_tastes(rank, counts):
    ranks = [rank(np.full(500, 300.0), 10.0, dpals.Budget(2.0, 1e-5), count) for count in counts]
    assert ranks == sorted(set(ranks))


def test_the_smaller_the_signal_the_less_goes_to_cooccurrence():
    rest = 10**15
    spent = [sum(map(costs_of, SHARES.training(rest, 3, 5, signal).cooccurrence)) for signal in (2.0, 40.0, 1e9)]
    assert spent[1] == pytest.approx(0.125 * rest)
    assert spent[2] == pytest.approx(0.25 * rest)
    assert 0 < spent[0] < spent[1]
    assert min(map(costs_of, SHARES.training(10**6, 3, 5, signal=0.0).cooccurrence)) > 0, "for a rank that is given"
    assert sum(map(costs_of, SHARES.training(rest, 3, 5, 2.0).steps)) == pytest.approx(0.96 * rest - spent[0])
