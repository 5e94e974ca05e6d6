"""Neighbouring data sets through whole methods: given the same releases, no release moves beyond its bound."""

import numpy as np
import pytest

import dpals
from dpals.methods import estimator
from dpals.release.mechanism import Door

METHODS = [dpals.PrivateBiases(epsilon=2.0, delta=1e-5)]
N_USERS, N_ITEMS = 40, 12


def run(method, ratings, monkeypatch, script=None):
    """Fit with a door that keeps exact sums and published results.

    With a script, the log of another run, it publishes what that run published: both see the same releases.
    """
    log = []

    class RecordingDoor(Door):
        def _exact_sums(self, query, grid, offers):
            self.exact = super()._exact_sums(query, grid, offers)
            return self.exact.copy()

        def release(self, query, offers, cost):
            published = super().release(query, offers, cost)
            published = published if script is None else script[len(log)][3]
            log.append((query, self.exact.astype(object), self.releases[-1], published))
            return published

    monkeypatch.setattr(estimator, "Door", RecordingDoor)
    method.fit(ratings)
    return log


def odd_ratings(seed):
    """Users with many, few and extreme ratings."""
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < rng.random((N_USERS, 1)))
    values = rng.choice([0.5, 2.5, 3.3, 5.0], size=len(users))
    return users, items, values


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.parametrize("seed", range(4))
def test_removing_any_user_moves_each_release_by_at_most_its_bound(method, seed, monkeypatch):
    users, items, values = odd_ratings(seed)

    def ratings(keep):
        return dpals.Ratings.from_arrays(
            users[keep], items[keep], values[keep], rating_range=(0.5, 5.0), catalogue=range(N_ITEMS)
        )

    reference = run(method, ratings(users >= 0), monkeypatch)
    for removed in np.unique(users):
        neighbour = run(method, ratings(users != removed), monkeypatch, script=reference)
        assert len(neighbour) == len(reference)
        for (query, sums, release, _), (_, other_sums, other_release, _) in zip(reference, neighbour, strict=True):
            assert release == other_release, "noise, grid or cost depend on the data"
            moved = ((sums - other_sums) ** 2 * query.coordinate_weights.astype(object)).sum()
            assert moved <= release.bound**2, query.purpose


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_the_statement_is_the_sum_of_what_went_through_the_door(method, monkeypatch):
    users, items, values = odd_ratings(0)
    ratings = dpals.Ratings.from_arrays(users, items, values, rating_range=(0.5, 5.0), catalogue=range(N_ITEMS))
    log = run(method, ratings, monkeypatch)
    assert [release for _, _, release, _ in log] == list(method.privacy.releases)
    assert method.privacy.epsilon <= method.epsilon
