"""What AdaDPALS has that DPALS has not. What they share is tried in `test_dpals`."""

import numpy as np
import pytest

import dpals


@pytest.fixture(scope="module")
def ratings():
    return dpals.simulate.movielens_like(500, 40, 20, seed=3)


def test_the_exponent_of_the_weights_is_a_parameter():
    assert dpals.AdaDPALS(weight_exponent=0.4).get_params()["weight_exponent"] == 0.4
    assert "weight_exponent" not in dpals.DPALS().get_params()


def test_popularity_is_released_once_and_sampling_has_no_effect(ratings):
    settings = {"rank": 2, "steps": 1, "insecure_seed": 1}
    method, other = (
        dpals.AdaDPALS(4.0, **settings, **sampled).fit(ratings)
        for sampled in ({}, {"ratings_per_user": 3, "sampling": "uniform"})
    )
    assert np.array_equal(method.item_factors_, other.item_factors_)
    purposes = [release.purpose for release in method.privacy.releases]
    assert [purpose for purpose in purposes if "popularity" in purpose or "count" in purpose] == ["item popularity"]


def test_the_popularity_that_is_released_is_that_of_equal_weights(ratings):
    """At a budget without end, the items that are trained on are those with the largest sums of 1 / sqrt(n)."""
    sums = np.bincount(ratings.indices, 1 / np.sqrt(np.diff(ratings.indptr))[ratings.rows], ratings.n_items)
    model = dpals.AdaDPALS(1e4, rank=2, frequent_fraction=0.25, insecure_seed=1).fit(ratings).model_
    assert set(np.flatnonzero(model.is_trained)) == set(np.argsort(-sums)[:10])
