"""What a checkpoint tells besides releases."""

import json
from pathlib import Path

import pytest

import dpals
from dpals.audit.checkpoint_contents import checkpoint_leaks
from dpals.audit.simulated_data import four_users
from dpals.ledger.checkpoint import Checkpoint

FEW = four_users(40, implicit=False)


@pytest.mark.parametrize("method", [dpals.ItemMean(1.0), dpals.UserMean()])
def test_a_checkpoint_of_a_sound_method_tells_nothing(method):
    assert list(checkpoint_leaks(method, FEW)) == []


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
