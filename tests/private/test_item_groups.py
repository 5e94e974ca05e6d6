"""Groups of items, against sums over all items."""

import numpy as np
import pytest

from dpals.private.item_groups import group_items


def catalogue(n_items, rank, seed=0):
    rng = np.random.default_rng(seed)
    themes = rng.normal(size=(30, rank))
    factors = 0.8 * themes[rng.integers(0, 30, n_items)] + 0.3 * rng.normal(size=(n_items, rank))
    return factors.astype(np.float32), rng.normal(-6, 1.5, n_items).astype(np.float32)


@pytest.mark.parametrize("n_items", [0, 1, 300])
def test_few_items_are_groups_of_their_own(n_items):
    factors, offsets = catalogue(n_items, 3)
    groups = group_items(factors, offsets)
    np.testing.assert_allclose(groups.counts, np.ones(n_items), rtol=1e-6)
    np.testing.assert_allclose(groups.offsets, offsets, rtol=1e-5)
    np.testing.assert_allclose(groups.means, np.column_stack([factors, np.ones(n_items)]), rtol=1e-6)
    np.testing.assert_allclose(groups.variances, 0, atol=1e-9)


def test_sums_of_odds_and_of_squared_odds_stay_as_they_are():
    factors, offsets = catalogue(5000, 6)
    groups = group_items(factors, offsets)
    assert len(groups.counts) <= 512
    for power in (1, 2):
        in_groups = np.sum(groups.counts * np.exp(power * groups.offsets.astype(float)))
        assert in_groups == pytest.approx(np.sum(np.exp(power * offsets.astype(float))), rel=1e-5)
    odds = np.exp(offsets.astype(float))
    weights = groups.counts * np.exp(groups.offsets.astype(float))
    np.testing.assert_allclose(weights @ groups.means[:, :6], odds @ factors, rtol=1e-4)
    assert np.array_equal(groups.means[:, 6], np.ones(len(groups.counts)))
    assert not groups.variances[:, 6].any()


def test_groups_stand_for_the_items_whatever_the_users_vector():
    factors, offsets = catalogue(20_000, 6)
    groups = group_items(factors, offsets)
    for x in np.random.default_rng(1).normal(size=(20, 6)):
        chances = 1 / (1 + np.exp(-(offsets + factors @ x)))
        mean = groups.offsets + groups.means[:, :6] @ x + groups.variances[:, :6] @ x**2 / 2
        of_groups = groups.counts / (1 + np.exp(-mean))
        assert of_groups.sum() == pytest.approx(chances.sum(), rel=0.08)
        toward = groups.means[:, :6] + groups.variances[:, :6] * x
        np.testing.assert_allclose(of_groups @ toward / of_groups.sum(), chances @ factors / chances.sum(), atol=0.1)


def test_items_of_a_vast_catalogue_without_users_change_nothing():
    factors, offsets = catalogue(1000, 4)
    more = np.zeros((200_000, 4), np.float32), np.full(200_000, -60, np.float32)
    groups = group_items(np.vstack([factors, more[0]]), np.concatenate([offsets, more[1]]))
    total = np.sum(groups.counts * np.exp(groups.offsets.astype(float)))
    assert total == pytest.approx(np.sum(np.exp(offsets.astype(float))), rel=1e-5)
    assert np.isfinite(np.concatenate([part.ravel() for part in groups])).all()
