"""Samples of noise: of every kind of release, and as many as are asked for."""

import numpy as np
import pytest

import dpals
from dpals.audit.noise_samples import (
    fits_with_releases,
    noise_of_releases,
    pooled_scores,
    taller_table,
    weights_by_definition,
)
from dpals.audit.simulated_data import odd_users
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism

RATINGS = odd_users(40, 40, implicit=False).ratings()


def test_weights_are_those_of_upper_triangles():
    for dimension in (1, 2, 7):
        triangle = (2 - np.eye(dimension, dtype=int))[np.triu_indices(dimension)]
        assert weights_by_definition(Query("Gram matrix", 1, 1.0, "symmetric", dimension)).tolist() == triangle.tolist()
    assert weights_by_definition(Query("means", 1, 1.0, "vector", 2, weights=(3, 1))).tolist() == [3, 1]


def test_every_release_has_enough_numbers_of_the_stated_variance():
    noises = noise_of_releases(fits_with_releases(dpals.ItemMean(1.0), RATINGS), 6_000)
    assert [noise.purpose for noise in noises] == [
        release.purpose for release in dpals.ItemMean(1.0).fit(RATINGS).privacy.releases
    ]
    assert all(noise.scores.size >= 2_000 for noise in noises)
    assert np.mean(pooled_scores(noises) ** 2) == pytest.approx(1, abs=0.15)
    for noise in noises:
        assert len(noise.as_released) == sum(len(release.sums) for release in noise.releases)


def test_a_taller_table_has_noise_alone():
    (noise, *_) = noise_of_releases(fits_with_releases(dpals.GlobalMean(1.0), RATINGS), 100)
    table = taller_table(noise.releases[0], 3000, Mechanism)
    assert table.shape == (3000, 2)
    assert np.std(table[:, 0]) == pytest.approx(noise.sigmas[0], rel=0.1)


def test_a_search_is_fitted_until_two_fits_have_releases():
    search = dpals.PrivateSearch(
        dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, 1.0, tries=1.5, distribution="poisson"
    )
    runs = fits_with_releases(search, RATINGS)
    assert sum(bool(run.releases) for run in runs) == 2 or len(runs) == 12
