"""Where noise comes from: what a watch sees, and what other processes may not repeat."""

from dataclasses import replace

import pytest

import dpals
from dpals.audit.simulated_data import odd_users
from dpals.audit.recorded_run import record_run
from dpals.audit.streams import check_labels, check_no_reuse, check_processes, other_processes, watched_streams
from dpals.release.accounting import Budget
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism
from dpals.release.noise import InsecureSeededStream, NoiseStream


def test_a_search_that_calls_a_known_seed_private_is_noticed():
    ratings = odd_users(40, 40, implicit=False).ratings()
    search = dpals.PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, 1.0, tries=3)
    secure, seeded = record_run(search, ratings), record_run(search, ratings, insecure_seed=1)
    assert check_labels(secure, seeded).verdict == "passed"
    lying = replace(seeded.model.privacy, is_private=True)
    seeded.estimator.model_ = seeded.model.with_privacy(lying)
    assert check_labels(secure, seeded).verdict == "failed"
    assert check_labels(secure, secure).verdict == "failed"


def test_a_seeded_run_whose_text_does_not_say_so_is_noticed(monkeypatch):
    ratings = odd_users(40, 40, implicit=False).ratings()
    secure, seeded = record_run(dpals.ItemMean(), ratings), record_run(dpals.ItemMean(), ratings, insecure_seed=1)
    assert check_labels(secure, seeded).verdict == "passed"
    monkeypatch.setattr(type(seeded.model.privacy), "to_html", lambda _: "<p>All is well.</p>")
    assert "does not tell its readers" in check_labels(secure, seeded).detail


def test_keys_that_the_operating_system_did_not_give_are_noticed():
    with watched_streams() as sound:
        NoiseStream().words(3)
    with watched_streams() as seeded:
        InsecureSeededStream(1, release=1).words(3)
    assert [check_no_reuse(watch).verdict for watch in (sound, seeded)] == ["passed", "failed"]


def test_a_watch_sees_who_paid_and_leaves_nothing_behind():
    before = NoiseStream.words, NoiseStream._start, dpals.Ledger.spend
    with watched_streams() as watch:
        Mechanism(Budget(1.0, 1e-5)).release(Query("counts", 3, 1.0), (), 2**50)
        assert (watch.spends, watch.owed, watch.unpaid, sum(map(len, watch.words))) == (1, 0, 0, 3)
        NoiseStream()
        dpals.Ledger().spend("ratings", "nothing", 1)
    assert (watch.spends, watch.owed, watch.unpaid) == (2, 1, 1)
    assert (NoiseStream.words, NoiseStream._start, dpals.Ledger.spend) == before


BROKEN = """
import dpals.release.noise as r
r.NoiseStream.__init__ = lambda stream: stream._start(bytes(32))
r.NoiseStream.words = lambda stream, count: r.np.frombuffer(stream._cipher.update(bytes(8 * count)), "<u8")
r.os.getpid = lambda: 1
"""


@pytest.mark.parametrize(
    ("first", "verdict", "found"),
    [
        ("", "passed", "0 of them twice; 4 streams and mechanisms used after a fork, 0 of them still worked"),
        (BROKEN, "failed", "20 of them twice; 4 streams and mechanisms used after a fork, 4 of them still worked"),
        ("raise SystemExit(1)", "inconclusive", "another process failed"),
    ],
)
def test_processes_that_would_repeat_noise_are_noticed(tmp_path, monkeypatch, first, verdict, found):
    """The other processes run a module of this name before they do anything else."""
    (tmp_path / "sitecustomize.py").write_text(first)
    monkeypatch.syspath_prepend(tmp_path)
    check = check_processes(other_processes())
    assert check.verdict == verdict
    assert found in check.detail
