"""Scores of canaries: standard normal for absent ones, shifted by mu for present ones."""

import pytest
from scipy import stats

import dpals
from dpals.audit.canary_scores import releases_by_mechanism, score_canaries
from dpals.audit.recorded_run import record_run
from dpals.audit.simulated_data import odd_users
from dpals.release import accounting

RATINGS = odd_users(40, 40, implicit=False).ratings()
METHODS = [dpals.ItemMean(epsilon=1.0), dpals.DPSGD(epsilon=1.0), dpals.DPSVD(epsilon=1.0)]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_scores_are_normal_as_the_threshold_between_them_assumes(method):
    scored = score_canaries(releases_by_mechanism(record_run(method, RATINGS)), 20_000)
    assert scored["all"].reach == pytest.approx(accounting.mu(1.0, 1e-5), rel=0.001)
    for canaries in scored.values():
        assert stats.kstest(canaries.absent, "norm").pvalue > 1e-7
        assert stats.kstest(canaries.present - canaries.reach, "norm").pvalue > 1e-7


def test_a_try_of_a_search_has_two_mechanisms_and_nothing_that_no_user_can_move():
    search = dpals.PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, 1.0, tries=3)
    run = record_run(search, RATINGS)
    training, scoring = releases_by_mechanism(run, n_mechanisms=2)
    assert [release.query.purpose for release in scoring.releases] == ["score on ratings held back"]
    assert training.budget.cost > scoring.budget.cost
    assert all(release.query.sensitivity > 0 for release in training.releases)
