"""How noise is used: twice, without payment, or from a known seed."""

from dataclasses import replace

import dpals
from dpals.audit.noise_use import check_no_repeats, check_refused_spend, check_seed_marks
from dpals.audit.recorded_run import record_run
from dpals.audit.simulated_data import odd_users
from dpals.release.accounting import PrivacyBudgetExceeded
from dpals.release.mechanism import Mechanism

RATINGS = odd_users(40, 40, implicit=False).ratings()


def releases(method, **changes):
    return [release for _ in range(2) for release in record_run(method, RATINGS, **changes).releases]


def test_noise_that_is_used_twice_is_noticed_however_short_the_table():
    assert check_no_repeats(releases(dpals.GlobalMean(1.0))).verdict == "passed"
    assert check_no_repeats(releases(dpals.ItemMean(1.0))).verdict == "passed"
    assert check_no_repeats(releases(dpals.GlobalMean(1.0), insecure_seed=1)).verdict == "failed"
    one = releases(dpals.ItemMean(1.0))
    assert check_no_repeats([*one, one[1]]).verdict == "failed"


def test_noise_so_small_that_tables_agree_by_chance_is_no_finding():
    some = releases(dpals.GlobalMean(1.0))[0]
    small = replace(some, record=replace(some.record, variance=1), published=some.sums * some.record.step)
    assert check_no_repeats([small, small]).verdict == "passed"


def test_a_mechanism_that_publishes_what_its_ledger_refuses_is_noticed():
    class Deaf(Mechanism):
        def _pay(self, record, receipt):
            try:
                return super()._pay(record, receipt)
            except PrivacyBudgetExceeded:
                return Mechanism(self.budget)._pay(record, receipt)

    (release,) = releases(dpals.GlobalMean(1.0))[:1]
    assert check_refused_spend(release, Mechanism).verdict == "passed"
    assert check_refused_spend(release, Deaf).verdict == "failed"


def test_a_search_that_calls_a_known_seed_private_is_noticed():
    ratings = odd_users(40, 40, implicit=False).ratings()
    search = dpals.PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, 1.0, tries=3)
    secure, seeded = record_run(search, ratings), record_run(search, ratings, insecure_seed=1)
    assert check_seed_marks(secure, seeded).verdict == "passed"
    lying = replace(seeded.model.privacy, is_private=True)
    seeded.estimator.model_ = seeded.model.with_privacy(lying)
    assert check_seed_marks(secure, seeded).verdict == "failed"
    assert check_seed_marks(secure, secure).verdict == "failed"


def test_a_seeded_run_whose_text_does_not_say_so_is_noticed(monkeypatch):
    ratings = odd_users(40, 40, implicit=False).ratings()
    secure, seeded = record_run(dpals.ItemMean(), ratings), record_run(dpals.ItemMean(), ratings, insecure_seed=1)
    assert check_seed_marks(secure, seeded).verdict == "passed"
    monkeypatch.setattr(type(seeded.model.privacy), "to_html", lambda _: "<p>All is well.</p>")
    assert "does not warn its readers" in check_seed_marks(secure, seeded).detail
