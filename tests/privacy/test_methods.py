"""Every private method, in every form, on neighbouring data sets: level 1 of the audit."""

import pytest

import dpals
from dpals.audit.replay import audit_replay

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
    "PooledDPALS, large rank": dpals.PooledDPALS(2.0, 1e-5, rank=35, steps=1),
    "DPFrankWolfe": dpals.DPFrankWolfe(2.0, 1e-5, steps=3, frequent_fraction=0.7, row_clip=1.5),
    "DPFrankWolfe, covariance": dpals.DPFrankWolfe(
        2.0, 1e-5, steps=2, search="covariance", frequent_fraction=1.0, centre=False, user_shrinkage=None, row_clip=2.0
    ),
    "DPSVD": dpals.DPSVD(2.0, 1e-5, rank=2, most_items=8, row_clip=1.0),
    "DPSVD, plain": dpals.DPSVD(2.0, 1e-5, rank=2, form="plain", row_clip=1.0),
    "DPSGD": dpals.DPSGD(2.0, 1e-5, rank=2, steps=3, gradient_clip=1.0, average=0.5),
    "SGLD": dpals.SGLD(2.0, 1e-5, rank=2, steps=3, gradient_clip=1.0),
    "GlobalMean": dpals.GlobalMean(2.0, 1e-5),
    "UserMean": dpals.UserMean(2.0, 1e-5),
    "ItemMean": dpals.ItemMean(2.0, 1e-5),
    "PrivateSearch": dpals.PrivateSearch(
        dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, 2.0, tries=3, validation_fraction=0.3
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
        dpals.PooledDPALS(rank=1, steps=1), {"clip": [1.0, 2.0]}, 2.0, tries=3, validation_fraction=0.3
    ),
}


@pytest.mark.parametrize(
    ("implicit", "name"), [*((False, name) for name in METHODS), *((True, name) for name in IMPLICIT)]
)
def test_neighbours_differ_by_what_the_bounds_allow_and_by_nothing_else(implicit, name):
    level = audit_replay((IMPLICIT if implicit else METHODS)[name], implicit, n_users=16)
    assert [check for check in level.checks if check.verdict != "passed"] == []
    assert level.facts["largest_share_of_bound"] <= 1


@pytest.mark.parametrize(
    ("implicit", "name"),
    [
        *((False, name) for name in ("PooledDPALS", "DPALS, power iteration", "DPSVD", "DPSGD", "PrivateSearch")),
        *((True, name) for name in ("AdaDPALS", "PooledDPALS")),
    ],
)
def test_the_same_where_a_user_moves_the_edges_between_blocks(implicit, name, monkeypatch):
    monkeypatch.setattr("dpals.data.ratings._RATINGS_PER_BLOCK", 40)
    test_neighbours_differ_by_what_the_bounds_allow_and_by_nothing_else(implicit, name)


def test_a_method_that_forgets_its_own_bounds_costs_accuracy_and_not_privacy(monkeypatch):
    """The mechanism scales users down whatever a method contributes, so the audit has nothing to report."""
    monkeypatch.setattr("dpals.private.dpals.clip_rows", lambda users, _: 100 * users)
    monkeypatch.setattr("dpals.private.dpals.clipped_entries", lambda ratings, *_: 1000.0 * ratings.values)
    level = audit_replay(METHODS["DPALS"], n_users=16)
    assert [check for check in level.checks if check.verdict != "passed"] == []
    assert level.facts["largest_share_of_bound"] > 0.98
