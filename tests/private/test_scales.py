"""What users say about the scales of ratings, against plain loops over each user's ratings."""

import numpy as np
import pytest

import dpals
from dpals.private.pooled import Bounds, PooledStep, RatingWeights, step_contributions
from dpals.private.scales import (
    LARGEST_GAIN,
    MOST_DEVIATION,
    MOST_SPREAD,
    Centre,
    Distances,
    FitUnits,
    centre_contribution,
    distance_contribution,
    spread_contribution,
)
from dpals.private.user_vectors import LeastSquaresProblem

N_ITEMS = 40


@pytest.fixture(scope="module")
def ratings():
    """Users with 1 to 30 ratings, one whose ratings are all equal, and one without any."""
    rng = np.random.default_rng(0)
    counts = [1, 1, 2, 3, 7, 15, 30]
    users = np.repeat(np.arange(len(counts)), counts)
    items = np.concatenate([rng.choice(N_ITEMS, count, replace=False) for count in counts])
    values = rng.integers(0, 11, len(users)) / 1.0
    users, items = np.append(users, [90, 90, 91]), np.append(items, [3, 4, 99])
    values = np.append(values, [5.0, 5.0, 1.0])
    return dpals.Ratings.from_arrays(
        users, items, values, rating_range=(0, 10), catalogue=range(N_ITEMS), on_unknown_items="drop"
    )


def each(ratings):
    for start, stop in zip(ratings.indptr[:-1], ratings.indptr[1:], strict=True):
        yield ratings.indices[start:stop], ratings.values[start:stop].astype(float)


def test_distances_are_counted_in_two_bins_for_each_halving(ratings):
    found = distance_contribution(ratings, Distances(mean=5.0, largest=10.0, n_bins=24))
    for (_, values), item, coefficient in zip(each(ratings), found.pattern.items, found.coefficients, strict=True):
        assert coefficient == (len(values) > 0)
        if len(values) == 0:
            continue
        share = np.sqrt(np.mean((values - 5) ** 2)) / 10
        assert item == 23 if share == 0 else 2 ** (-(item + 1) / 2) <= share * (1 + 1e-12) <= 2 ** (-item / 2)


def test_spread_is_that_of_each_user(ratings):
    expected, unit = np.linspace(4, 6, N_ITEMS), 1.5
    found = spread_contribution(ratings, Centre(expected, unit))
    for (items, values), vector in zip(each(ratings), found.vectors, strict=True):
        n, least = len(values), max(len(values), 2)
        residuals = values - expected[items]
        deviation = residuals.mean() if n else 0.0
        squares = np.sum((residuals - deviation) ** 2) / least / (MOST_SPREAD * unit**2)
        between = n * deviation**2 / least / (MOST_DEVIATION * unit**2)
        wanted = [min(squares, 1), max(n - 1, 0) / least, min(between, 1), n / least]
        np.testing.assert_allclose(vector, wanted, atol=1e-12)
    assert np.linalg.norm(found.vectors, axis=1).max() <= 2


def test_the_centre_is_asked_of_all_users_with_ratings(ratings):
    expected = np.linspace(4, 6, N_ITEMS)
    found = centre_contribution(ratings, Centre(expected, 2.0))
    for (items, values), vector, weight in zip(each(ratings), found.vectors, found.coefficients, strict=True):
        assert weight == (len(values) > 0)
        if len(values):
            assert vector[0] == pytest.approx(np.clip(np.mean(values - expected[items]) / 2, -1, 1))
            assert vector[1] == 1


@pytest.mark.parametrize("rank", [0, 3])
def test_fits_are_those_of_the_users_own_systems(ratings, rank):
    rng = np.random.default_rng(1)
    factors, biases = rng.normal(size=(N_ITEMS, rank)), rng.normal(size=N_ITEMS)
    ridge, bias_ridge, unit, penalty = 2.0, 3.0, 2.5 / LARGEST_GAIN**0.5, 1.2
    problem = LeastSquaresProblem.of(factors, biases, 5.0, ridge, bias_ridge=bias_ridge)
    public = PooledStep(
        RatingWeights(np.ones(N_ITEMS), 20.0), problem, 1.6, Bounds(1.0, 1.0, 1.0), FitUnits(unit, penalty)
    )
    *_, fits, _ = step_contributions(ratings, public)
    for (items, values), vector in zip(each(ratings), fits.vectors, strict=True):
        n, least = len(values), max(len(values), 2)
        design = np.column_stack([factors[items], np.ones(n)])
        targets = values - 5 - biases[items]

        def cross_validation(design, ridges, n=n, least=least, targets=targets):
            hat = design @ np.linalg.solve(design.T @ design + np.diag(ridges), design.T)
            squares, used = np.sum((targets - hat @ targets) ** 2), np.trace(hat)
            return squares, used, n * squares / max(n - used, 0.1 * least) ** 2

        squares, used, error = cross_validation(design, [*[ridge] * rank, bias_ridge])
        _, _, alone = cross_validation(design[:, rank:], [bias_ridge])
        gain = np.clip((alone - penalty * error) / (LARGEST_GAIN * unit**2), -1, 1) * n / (n + 20)
        # The bias counts as much as it would without vectors, which is nearly what it does.
        np.testing.assert_allclose(vector[0], gain, atol=0.03 if rank else 1e-5)
        assert vector[1] == pytest.approx(min(squares / least / (MOST_SPREAD * unit**2), 1), abs=1e-5)
        assert vector[2] * least == pytest.approx(max(n - used, 0), abs=0.3 if rank else 1e-5)
    assert np.linalg.norm(fits.vectors, axis=1).max() <= 2


@pytest.mark.parametrize("clip", [0.8, 1e3])
def test_responses_are_by_how_much_contributions_follow_the_ratings(ratings, clip):
    """Each rating is raised a little in turn, and the change of the user's own part for that item added up."""
    weights, problem = (
        RatingWeights(np.ones(N_ITEMS), 20.0),
        LeastSquaresProblem.of(np.zeros((N_ITEMS, 0)), np.zeros(N_ITEMS), 5.0, 2.0, bias_ridge=3.0),
    )
    public = PooledStep(weights, problem, 1.0, Bounds(clip, 1.0, 1.0), FitUnits(2.5, 1.0))

    def parts(values):
        changed = dpals.Ratings.from_arrays(
            ratings.users[ratings.rows],
            ratings.items[ratings.indices],
            values,
            rating_range=(-1, 11),
            catalogue=range(N_ITEMS),
        )
        *_, fits, moments = step_contributions(changed, public)
        return fits.vectors[:, 3], moments.coefficients

    values = ratings.values.astype(float)
    responses, before = parts(values)
    rows, followed = ratings.rows, np.zeros(ratings.n_users)
    for k in range(len(values)):
        followed[rows[k]] += (parts(values + (np.arange(len(values)) == k) / 64)[1][k] - before[k]) * 64
    some = np.diff(ratings.indptr) > 0
    np.testing.assert_allclose(responses, (followed / 20)[some], atol=0.02)
