"""A whole audit of a method."""

import pytest

import dpals
from dpals.audit.run import run_audit


def test_levels_come_in_order_and_are_announced():
    told = []
    report = run_audit(dpals.GlobalMean(1.0, 1e-6), levels=[3, 1], runs=2000, quick=True, tell=told.append)
    assert told == ["Level 1, replay", "Level 3, canary"]
    assert [level.number for level in report.levels] == [1, 3]
    assert report.verdict == "passed"
    assert report.method == "GlobalMean(epsilon=1.0, delta=1e-06)"
    assert report.epsilon == 1.0
    assert report.mu == pytest.approx(dpals.accounting.mu(1.0, 1e-6))


def test_the_method_itself_stays_as_it_is():
    method = dpals.ItemMean(1.0)
    run_audit(method, levels=[1], quick=True)
    assert "model_" not in vars(method)
    assert "mechanism_class" not in vars(method)


def test_data_is_of_the_kind_that_the_method_takes():
    assert run_audit(dpals.Popularity(1.0), levels=[3], quick=True).data == "simulated implicit feedback"
    assert run_audit(dpals.GlobalMean(1.0), levels=[3], quick=True).data == "simulated ratings"
    with pytest.raises(dpals.InputError, match="GlobalMean needs ratings"):
        run_audit(dpals.GlobalMean(1.0), levels=[3], implicit=True)


def test_too_few_runs_are_said_to_be_too_few():
    report = run_audit(dpals.GlobalMean(1.0), levels=[3], runs=3)
    assert report.verdict == "inconclusive"
    assert "pairs would do" in report.levels[0].checks[0].detail


def test_a_method_that_publishes_nothing_keeps_its_promise():
    report = run_audit(dpals.UserMean(), quick=True)
    assert report.verdict == "passed"
    assert report.epsilon == 0


def test_a_method_with_a_large_rank_is_given_enough_items():
    report = run_audit(dpals.DPALS(1.0, rank=60, frequent_fraction=1.0), levels=[3], runs=100)
    assert report.levels[0].facts["mu_claimed"] > 0


def test_what_ends_training_is_a_finding():
    class Dear(dpals.GlobalMean):
        def _fit(self, ratings, mechanism):
            super()._fit(ratings, mechanism)
            return super()._fit(ratings, mechanism)

    report = run_audit(Dear(1.0), quick=True)
    assert report.verdict == "failed"
    assert all("PrivacyBudgetExceeded" in level.checks[0].detail for level in report.levels[:3])


@pytest.mark.parametrize("number", [0, 5])
def test_there_are_no_other_levels(number):
    with pytest.raises(dpals.InputError, match=f"an audit has the levels 1 to 4, not {number}"):
        run_audit(dpals.GlobalMean(1.0), levels=[1, number])
