"""Runs that can be resumed: nothing to report of a sound mechanism and checkpoint, and each hole is reported."""

import json
from pathlib import Path

import pytest

import dpals
from dpals.audit.simulated_data import four_users
from dpals.audit.resume_drills import resume_breaches, checkpoint_leaks
from dpals.ledger import ledger
from dpals.ledger.checkpoint import Checkpoint
from dpals.release import mechanism as mechanism_module

FEW = four_users(40, implicit=False)


def test_sound_runs_pass():
    assert list(resume_breaches()) == []
    assert list(checkpoint_leaks(dpals.ItemMean(1.0), FEW)) == []


def test_holes_are_reported(monkeypatch):
    monkeypatch.setattr(ledger, "_check_allowance", lambda *_: None)
    monkeypatch.setattr(ledger.Ledger, "publish", lambda *_: None)
    monkeypatch.setattr("dpals.ledger.checkpoint.remove_drafts", lambda *_: None)
    assert set(resume_breaches()) == {
        "numbers leave the mechanism before the ledger knows them",
        "numbers that were published and lost are drawn again for free",
        "two tables are published under one spend",
        "a run that can be resumed may exceed the data set's budget",
        "numbers that were never published stay in the checkpoint after a crash",
    }


def test_numbers_without_noise_on_disk_are_reported(monkeypatch):
    draw = mechanism_module.Mechanism._draw

    def kept_too_early(mechanism, query, grid, record, contributions, receipt=""):
        mechanism.keeper.keep(1, record, mechanism.exact_sums(query, grid, contributions))
        return draw(mechanism, query, grid, record, contributions, receipt)

    monkeypatch.setattr(mechanism_module.Mechanism, "_draw", kept_too_early)
    assert "numbers are kept on disk that are not those that are paid for and published" in list(resume_breaches())


@pytest.mark.parametrize("fact", ["number of users", "new"])
def test_facts_about_the_data_in_a_checkpoint_are_reported(monkeypatch, fact):
    opened = Checkpoint._opened

    def talkative(checkpoint, training):
        run = opened(checkpoint, training)
        path = Path(checkpoint.folder, "run.json")
        facts = json.loads(path.read_bytes())
        facts["training"][fact] = facts["run"]  # other than in any other run
        path.write_text(json.dumps(facts))
        return run

    monkeypatch.setattr(Checkpoint, "_opened", talkative)
    assert list(checkpoint_leaks(dpals.ItemMean(1.0), FEW)) == [
        f"the checkpoint says {fact!r}, which is not the same without a user"
    ]
