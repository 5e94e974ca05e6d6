"""A sound ledger has nothing to report, and each hole in it is reported."""

from dpals.audit.ledger_drills import ledger_breaches
from dpals.ledger import hash_chain, ledger
from dpals.ledger.totals import Run


def test_a_sound_ledger_passes():
    assert list(ledger_breaches()) == []


def test_holes_in_the_ledger_are_reported(monkeypatch):
    monkeypatch.setattr(ledger, "_check_allowance", lambda *_: None)
    assert set(ledger_breaches()) == {
        "the ledger lets a data set's budget be exceeded",
        "a budget that was lowered still stands",
        "two processes may spend the same budget at once",
        "two runs may begin where there is room for one",
        "searches are not counted against a budget",
    }


def test_a_ledger_that_looks_at_nothing_is_reported(monkeypatch):
    monkeypatch.setattr(hash_chain, "read", lambda connection: [])  # noqa: ARG005
    found = list(ledger_breaches())
    assert "a ledger in which a cost was changed is trusted" in found
    assert "a ledger in which a cost and the head were changed is trusted" in found
    assert "a ledger without its last entry is trusted" in found
    assert "a ledger without what keeps it append-only is trusted" in found


def test_a_chain_of_equal_links_is_reported(monkeypatch):
    monkeypatch.setattr(hash_chain, "link", lambda *_: "always the same")
    assert list(ledger_breaches()) == [
        "a ledger that was cut back and written on within a second has the head of before",
        "a ledger in which a cost was changed is trusted",
    ]


def test_runs_that_count_for_too_little_are_reported(monkeypatch):
    monkeypatch.setattr(Run, "charge", property(lambda run: run.spent))
    assert list(ledger_breaches()) == [
        "two runs may begin where there is room for one",
        "what a run that was broken off may have spent is not counted",
        "costs that depend on releases are counted in part",
    ]
