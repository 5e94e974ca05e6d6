"""Offsets and dispersion from rates, against simulated users."""

import numpy as np
import pytest

from dpals.public.implicit import Activity, calibrated


def test_offsets_give_the_rates_and_dispersion_tells_how_the_people_of_an_item_differ():
    rng = np.random.default_rng(1)
    rates, factor = np.geomspace(0.4, 0.001, 60), rng.normal(0, 1.0, 60)
    activity = Activity(np.array([2.0, 8.0]) * rates.sum() / 5, np.array([0.5, 0.5]), n_users=1000.0)
    offsets, dispersion = calibrated(rates, np.abs(factor), activity)

    taste = rng.normal(size=200_000)
    own = np.log(activity.counts)[rng.integers(2, size=len(taste))]
    # The level of each group, which only has to give it its number of items.
    for count in activity.counts:
        group = own == np.log(count)
        low, high = -20.0, 20.0
        for _ in range(40):
            level = (low + high) / 2
            expected = np.mean(
                1 / (1 + np.exp(-(level + offsets + np.outer(taste[group][:2000], factor)))), axis=0
            ).sum()
            low, high = (level, high) if expected < count else (low, level)
        own[group] = level
    chances = 1 / (1 + np.exp(-(own[:, None] + offsets + np.outer(taste, factor))))
    assert chances.mean(axis=0) == pytest.approx(rates, rel=0.1)
    people = (chances * taste[:, None]).mean(axis=0) / chances.mean(axis=0)
    assert people == pytest.approx(dispersion * factor, abs=0.05)


def test_without_factors_the_offset_orders_items_by_rate():
    offsets, dispersion = calibrated(
        np.array([0.5, 0.1, 0.01]), np.zeros(3), Activity(np.array([0.61]), np.ones(1), 1000.0)
    )
    log_odds = np.log([0.5 / 0.5, 0.1 / 0.9, 0.01 / 0.99])
    assert offsets - offsets[0] == pytest.approx(log_odds - log_odds[0], abs=0.02)
    assert dispersion == pytest.approx([0.5, 0.9, 0.99], rel=0.02)


def test_items_that_are_alike_share_the_work_and_keep_their_differences():
    """Many items that differ by less than a cell, against each item's own rate by simulation."""
    rng = np.random.default_rng(2)
    rates, lengths = np.exp(rng.uniform(-9, -1, 3000)), rng.uniform(0, 3, 3000)
    activity = Activity(np.array([rates.sum()]), np.ones(1), 1000.0)
    offsets, _ = calibrated(rates, lengths, activity)
    taste = rng.normal(size=20_000)
    level = np.median(np.log(rates) - offsets - lengths**2 / 2)
    for k in range(0, 3000, 300):
        assert np.mean(1 / (1 + np.exp(-(level + offsets[k] + lengths[k] * taste)))) == pytest.approx(
            rates[k], rel=0.15
        )


def test_groups_that_may_be_noise_count_as_empty():
    activity = Activity.of(np.array([2.0, -3.0, 500.0, 2.9]), noise=1.0)
    assert activity.shares.tolist() == [1.0]
    assert activity.counts == pytest.approx([2**1.25])
    assert activity.n_users == 500
    assert Activity.of(np.array([-1.0, 0.5]), noise=1.0).shares.tolist() == [1.0]


def test_rates_add_up_to_the_number_of_items_of_a_user():
    activity = Activity(np.array([1.0, 3.0]), np.array([0.5, 0.5]), n_users=100.0)
    assert activity.rates(np.array([1.0, 1.0, 1.0, 1.5])).sum() == pytest.approx(2.0)
    assert activity.rates(np.array([1.0, 0.001])).max() <= 0.9
