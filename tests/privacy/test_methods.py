"""Neighbouring data sets through whole methods: given the same releases, no release moves beyond its bound."""

import numpy as np
import pytest

import dpals
from dpals.methods.estimator import PrivateEstimator
from dpals.release.contribution import Offer
from dpals.release.mechanism import Door

SMALL = {"rank": 2, "ratings_per_user": 4, "frequent_fraction": 0.5, "ridge": 5.0}
METHODS = {
    "PrivateBiases": dpals.PrivateBiases(2.0, 1e-5),
    "DPALS": dpals.DPALS(2.0, 1e-5, **SMALL),
    "DPALS, uniform": dpals.DPALS(2.0, 1e-5, **SMALL, sampling="uniform"),
    "DPALS, power iteration": dpals.DPALS(2.0, 1e-5, **SMALL, start="power"),
    "DPALS, private PCA": dpals.DPALS(2.0, 1e-5, **SMALL, start="pca"),
    "DPALS, everything else": dpals.DPALS(
        2.0, 1e-5, rank=2, ratings_per_user=4, frequent_fraction=1.0, unseen_weight=0.5, orthonormal=True, project=False
    ),
    "DPALS, noise given": dpals.DPALS(
        None, 1e-5, **SMALL, gram_noise=20.0, moment_noise=10.0, count_noise=20.0, unseen_weight=0.1
    ),
    "AdaDPALS": dpals.AdaDPALS(2.0, 1e-5, **SMALL),
    "PooledDPALS": dpals.PooledDPALS(2.0, 1e-5, rank=2, steps=3),
    "PooledDPALS, its own rank": dpals.PooledDPALS(50.0, 1e-5, steps=2),
    "PooledDPALS, biases alone": dpals.PooledDPALS(2.0, 1e-5, rank=0, steps=2),
    "DPFrankWolfe": dpals.DPFrankWolfe(2.0, 1e-5, steps=3, frequent_fraction=0.7, row_clip=1.5),
    "DPFrankWolfe, covariance": dpals.DPFrankWolfe(
        2.0, 1e-5, steps=2, search="covariance", frequent_fraction=1.0, centre=False, user_shrinkage=None, row_clip=2.0
    ),
    "DPSVD": dpals.DPSVD(2.0, 1e-5, rank=2, most_items=8, row_clip=1.0),
    "DPSVD, plain": dpals.DPSVD(2.0, 1e-5, rank=2, form="plain", row_clip=1.0),
    "DPSGD": dpals.DPSGD(2.0, 1e-5, rank=2, steps=3, gradient_clip=1.0, average=0.5),
    "SGLD": dpals.SGLD(2.0, 1e-5, rank=2, steps=3, gradient_clip=1.0),
    "GlobalMean": dpals.GlobalMean(2.0, 1e-5),
    "ItemMean": dpals.ItemMean(2.0, 1e-5),
}
# With a seed, so that neighbours make the same tries: four of them with this one.
SEARCHES = {
    "PrivateSearch": dpals.PrivateSearch(
        dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, 2.0, tries=3, validation_fraction=0.3, insecure_seed=10
    ),
}
IMPLICIT = {
    "DPALS": dpals.DPALS(2.0, 1e-5, **SMALL),
    "AdaDPALS": dpals.AdaDPALS(2.0, 1e-5, **SMALL),
    "PooledDPALS": dpals.PooledDPALS(2.0, 1e-5, rank=2, steps=2),
    "PooledDPALS, its own rank": dpals.PooledDPALS(50.0, 1e-5, steps=2),
    "PooledDPALS, popularity alone": dpals.PooledDPALS(2.0, 1e-5, rank=0),
    "Popularity": dpals.Popularity(2.0, 1e-5),
    "PrivateSearch": dpals.PrivateSearch(
        dpals.PooledDPALS(rank=1, steps=1),
        {"clip": [1.0, 2.0]},
        2.0,
        tries=3,
        validation_fraction=0.3,
        insecure_seed=10,
    ),
}
MANY = {**METHODS, **SEARCHES, "PooledDPALS, large rank": dpals.PooledDPALS(2.0, 1e-5, rank=35, steps=1)}
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
            offers = [offers] if isinstance(offers, Offer) else list(offers)
            published = super().release(query, offers, cost)
            published = published if script is None else script[len(log)][3]
            log.append((query, self.exact.astype(object), self.releases[-1], published, offers))
            return published

    monkeypatch.setattr(PrivateEstimator, "door_class", RecordingDoor)
    method.fit(ratings)
    return log


def odd_ratings(seed):
    """Users with many, few and extreme ratings."""
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < rng.random((N_USERS, 1)))
    values = rng.choice([0.5, 2.5, 3.3, 5.0], size=len(users))
    return users, items, values


@pytest.mark.parametrize("name", [*METHODS, *SEARCHES])
@pytest.mark.parametrize("seed", range(3))
def test_removing_any_user_moves_each_release_by_at_most_its_bound(name, seed, monkeypatch):
    users, items, values = odd_ratings(seed)

    def ratings(keep):
        return dpals.Ratings.from_arrays(
            users[keep], items[keep], values[keep], rating_range=(0.5, 5.0), catalogue=range(N_ITEMS)
        )

    check_neighbours({**METHODS, **SEARCHES}[name], users, ratings, monkeypatch)


@pytest.mark.parametrize("name", IMPLICIT)
def test_removing_any_user_of_implicit_feedback(name, monkeypatch):
    users, items, _ = odd_ratings(0)

    def ratings(keep):
        return dpals.Ratings.from_arrays(users[keep], items[keep], catalogue=range(N_ITEMS))

    check_neighbours(IMPLICIT[name], users, ratings, monkeypatch)


def check_neighbours(method, users, ratings, monkeypatch):
    reference = run(method, ratings(users >= 0), monkeypatch)
    for removed in np.unique(users):
        neighbour = run(method, ratings(users != removed), monkeypatch, script=reference)
        assert len(neighbour) == len(reference)
        for (query, sums, release, *_), (_, other_sums, other_release, *_) in zip(reference, neighbour, strict=True):
            assert release == other_release, "noise, grid or cost depend on the data"
            moved = ((sums - other_sums) ** 2 * query.coordinate_weights.astype(object)).sum()
            assert moved <= release.bound**2, query.purpose


@pytest.mark.parametrize(
    ("implicit", "name"), [*((False, name) for name in MANY), *((True, name) for name in IMPLICIT)]
)
def test_what_many_users_add_is_what_each_part_of_them_adds_alone(implicit, name, monkeypatch):
    """To the last bit: whoever else is there, and whatever the size of the products they would be part of."""
    n_items = 150
    rng = np.random.default_rng(5)
    users, items = np.nonzero(rng.random((3001, n_items)) < rng.random((3001, 1)) * 0.2)
    values = rng.choice([0.5, 2.5, 3.3, 5.0], size=len(users))
    method = (IMPLICIT if implicit else MANY)[name]

    def ratings(keep):
        rated = {} if implicit else {"values": values[keep], "rating_range": (0.5, 5.0)}
        return dpals.Ratings.from_arrays(users[keep], items[keep], **rated, catalogue=range(n_items))

    everyone = run(method, ratings(users >= 0), monkeypatch)
    first, others = (run(method, ratings(part), monkeypatch, everyone) for part in (users < 7, users >= 7))
    for whole, *parts in zip(everyone, first, others, strict=True):
        assert np.array_equal(whole[1], parts[0][1] + parts[1][1]), whole[0].purpose
        # What is offered is compared as well, because the grid of the sums hides differences in the last bits.
        for part in ("coefficients", "vectors"):
            if whole[0].form == "scalar" and part == "vectors":
                continue
            together, *alone = ([getattr(offer, part) for offer in run[4]] for run in (whole, *parts))
            assert np.array_equal(np.concatenate(together), np.concatenate([*alone[0], *alone[1]])), whole[0].purpose


@pytest.mark.parametrize("name", METHODS)
def test_the_statement_is_the_sum_of_what_went_through_the_door(name, monkeypatch):
    method = METHODS[name]
    users, items, values = odd_ratings(0)
    ratings = dpals.Ratings.from_arrays(users, items, values, rating_range=(0.5, 5.0), catalogue=range(N_ITEMS))
    log = run(method, ratings, monkeypatch)
    assert [release for _, _, release, *_ in log] == list(method.privacy.releases)
    assert method.epsilon is None or 0.98 * method.epsilon < method.privacy.epsilon <= method.epsilon
