"""Evidence against Bayes' rule written out item by item."""

import numpy as np
import pytest

from dpals.public.evidence import Evidence, Sampling, _fitted


def by_bayes(weights, releases, prior):
    """Posterior mean of each item from a stack of linear observations, in dense matrices."""
    guesses = []
    for j, weight in enumerate(weights):
        rows = np.vstack([weight * response.T / noise for _, response, noise in releases])
        seen = np.concatenate([observed[j] / noise for observed, _, noise in releases])
        system = rows.T @ rows + np.linalg.inv(prior)
        guesses.append(np.linalg.solve(system, rows.T @ seen))
    return np.array(guesses)


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_the_posterior_is_that_of_bayes(rank):
    rng = np.random.default_rng(rank)
    weights = np.r_[0.0, rng.uniform(0, 50, 20)]
    root = rng.normal(size=(rank, rank))
    prior = root @ root.T + 0.1 * np.eye(rank)
    releases = [(rng.normal(size=(21, rank)), rng.normal(size=(rank, rank)), rng.uniform(1, 9)) for _ in range(3)]
    known = Evidence.none(weights, rank)
    for release in releases:
        known.add(*release)
    np.testing.assert_allclose(known.posterior(prior).mean, by_bayes(weights, releases, prior), rtol=1e-8)


def test_items_without_weight_stay_at_the_prior():
    known = Evidence.none(np.zeros(4), 2)
    known.add(np.full((4, 2), 1e6), np.eye(2), 1.0)
    assert np.array_equal(known.posterior(np.eye(2)).mean, np.zeros((4, 2)))


def test_a_change_of_basis_changes_the_coordinates_and_not_the_estimate():
    rng = np.random.default_rng(0)
    known = Evidence.none(rng.uniform(0, 5, 10), 3)
    known.add(rng.normal(size=(10, 3)), rng.normal(size=(3, 3)), 2.0)
    before = known.posterior(np.eye(3)).mean
    root = rng.normal(size=(3, 3))
    basis = root @ root.T + np.eye(3)
    known.change_basis(basis)
    np.testing.assert_allclose(known.posterior(basis @ basis).mean, before @ basis, rtol=1e-8)


def test_faded_evidence_counts_as_if_it_had_more_noise():
    rng = np.random.default_rng(1)
    observed, response = rng.normal(size=(5, 2)), rng.normal(size=(2, 2))
    faded, noisy = (Evidence.none(np.ones(5), 2) for _ in range(2))
    faded.add(observed, response, 1.0)
    faded.fade(0.25)
    noisy.add(observed, response, 2.0)
    np.testing.assert_allclose(faded.posterior(np.eye(2)).mean, noisy.posterior(np.eye(2)).mean, rtol=1e-10)


def test_features_tell_about_items_that_have_no_evidence_of_their_own():
    rng = np.random.default_rng(2)
    features, weights = rng.normal(size=(400, 3)), np.where(np.arange(400) < 200, 0.0, 5.0)
    truth = features @ rng.normal(size=(3, 2)) + 0.1 * rng.normal(size=(400, 2))
    known = Evidence.none(weights, 2)
    known.add(weights[:, None] * truth + rng.normal(size=(400, 2)), np.eye(2), 1.0)
    prior = np.eye(2) * 3.0
    alone, helped = known.posterior(prior).mean, known.posterior(prior, features).mean
    unseen = weights == 0
    assert np.abs(alone[unseen]).max() == 0
    assert np.sqrt(np.mean((helped - truth)[unseen] ** 2)) < 0.15
    assert np.mean((helped - truth)[~unseen] ** 2) < np.mean((alone - truth)[~unseen] ** 2)


def test_a_mean_by_features_is_a_regression_weighted_by_what_is_known():
    rng = np.random.default_rng(5)
    features, weights = rng.normal(size=(300, 4)), rng.pareto(1.0, 300)
    weights[:20] = 0
    precision = weights[:, None] ** 2 * np.array([0.01, 0.3, 20.0])
    seen = precision * (features @ rng.normal(size=(4, 3))) + np.sqrt(precision) * rng.normal(size=(300, 3))
    for k, found in enumerate(_fitted(seen, precision, features).T):
        known = precision[:, k] > 0
        variance = 1 + 1 / precision[known, k]  # of a coordinate around its mean, and of its measurement
        rows = features[known] / np.sqrt(variance)[:, None]
        measured = seen[known, k] / precision[known, k] / np.sqrt(variance)
        slopes = np.linalg.solve(rows.T @ rows + np.eye(4), rows.T @ measured)
        np.testing.assert_allclose(found, features @ slopes, atol=0.01 * np.abs(features @ slopes).max())


def test_features_that_tell_nothing_do_little_harm():
    rng = np.random.default_rng(3)
    weights, truth = np.full(500, 3.0), rng.normal(size=(500, 2))
    known = Evidence.none(weights, 2)
    known.add(weights[:, None] * truth + rng.normal(size=(500, 2)), np.eye(2), 1.0)
    errors = [np.mean((known.posterior(np.eye(2), z).mean - truth) ** 2) for z in (None, rng.normal(size=(500, 4)))]
    assert errors[1] < 1.05 * errors[0]


def test_few_users_count_like_noise_that_more_releases_do_not_average_out():
    """Two releases with independent noise, and one error that both share: its covariance is that of the sampling."""
    rng = np.random.default_rng(4)
    weights, prior = rng.uniform(1, 5, 8), 0.5
    sampling = rng.uniform(0.1, 3.0, 8)
    observed = [rng.normal(size=(8, 1)) for _ in range(2)]
    known = Evidence.none(weights, 1)
    for release in observed:
        known.add(release, np.eye(1), 2.0)
    found = known.posterior(np.eye(1) * prior, sampling=Sampling(sampling, np.eye(1) * 0.7))
    for j in range(8):
        design = np.full(2, weights[j])
        noise = 4.0 * np.eye(2) + 0.7 * sampling[j] * np.outer(design, design)
        total = noise + prior * np.outer(design, design)
        seen = np.array([release[j, 0] for release in observed])
        assert found.mean[j, 0] == pytest.approx(prior * design @ np.linalg.solve(total, seen))
        assert found.gains[j, 0] == pytest.approx(prior * design @ np.linalg.solve(total, design))


def test_a_prior_is_learned_from_items_with_evidence_and_stays_where_there_is_none():
    rng = np.random.default_rng(6)
    weights, spread = np.full(5000, 30.0), np.diag([2.0, 0.5])
    known, nothing = Evidence.none(weights, 2), Evidence.none(np.zeros(50), 2)
    truth = rng.normal(size=(5000, 2)) @ spread
    known.add(weights[:, None] * truth + rng.normal(size=(5000, 2)), np.eye(2), 1.0)
    prior = np.eye(2)
    np.testing.assert_allclose(known.posterior(prior).updated_prior(prior, 10.0), truth.T @ truth / 5000, atol=0.02)
    nothing.add(np.zeros((50, 2)), np.eye(2), 1.0)
    np.testing.assert_allclose(nothing.posterior(prior).updated_prior(prior, 10.0), prior)
