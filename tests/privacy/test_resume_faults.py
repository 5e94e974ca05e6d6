"""Runs that can be resumed, under the worst luck: crashes, lost numbers, checkpoints that were copied."""

import hashlib

import numpy as np
import pytest

from dpals.ledger.checkpoint import Checkpoint
from dpals.ledger.ledger import Ledger
from dpals.release.accounting import Budget, PrivacyBudgetExceeded
from dpals.release.contribution import Contribution, Pattern, Query
from dpals.release.mechanism import Mechanism
from dpals.system.files import draft

BUDGET = Budget(epsilon=1.0, delta=1e-5)
NAME = "ratings"


class Forgetful:
    """A checkpoint that loses the tables that it is given, but remembers them for the test."""

    run = "run"

    def __init__(self, ledger):
        self.ledger = ledger
        self.given = []
        self.unpaid = 0
        self.discarded = 0

    def load(self, *_):
        return None

    def save(self, _number, _record, table):
        self.given.append(table.copy())
        self.unpaid += not any(entry.kind == "spend" for entry in self.ledger.entries())

    def discard(self, _):
        self.discarded += 1


class Overtaken(Forgetful):
    """A copy of the checkpoint publishes another table at the same time."""

    def save(self, number, record, table):
        super().save(number, record, table)
        self.ledger.publish(NAME, f"{self.run}/{number}", "of the copy")


def release(ledger, store):
    """A release of the number of two users, in steps of the grid."""
    mechanism = Mechanism(BUDGET, ledger, NAME, store=store)
    published = mechanism.release(
        Query("number of users", 1, 1.0), Contribution(Pattern.one_item(2), np.ones(2)), BUDGET.cost
    )
    return np.rint(published / mechanism.releases[-1].step).astype(np.int64)


def test_what_is_kept_is_paid_for_and_is_what_is_published():
    ledger = Ledger()
    store = Forgetful(ledger)
    published = release(ledger, store)
    assert store.unpaid == 0
    assert [table.tobytes() for table in store.given] == [published.tobytes()]


def test_the_ledger_knows_numbers_before_they_leave_the_mechanism():
    ledger = Ledger()
    release(ledger, Forgetful(ledger))
    assert ledger.published(f"{Forgetful.run}/1") is not None


def test_numbers_that_were_published_and_lost_are_not_drawn_again():
    ledger = Ledger()
    release(ledger, Forgetful(ledger))
    again = Forgetful(ledger)
    with pytest.raises(RuntimeError, match="published before"):
        release(ledger, again)
    assert again.given == []


def test_two_tables_are_not_published_under_one_spend():
    ledger = Ledger()
    ledger.spend(NAME, "counts", 1000, receipt="run/1")
    ledger.publish(NAME, "run/1", hashlib.sha256(b"one table").hexdigest())
    with pytest.raises(RuntimeError):
        ledger.publish(NAME, "run/1", hashlib.sha256(b"another table").hexdigest())


def test_numbers_that_may_not_be_published_do_not_stay_in_the_checkpoint():
    ledger = Ledger()
    store = Overtaken(ledger)
    with pytest.raises(RuntimeError):
        release(ledger, store)
    assert store.discarded == 1


def test_a_receipt_does_not_stand_for_a_dearer_release():
    ledger = Ledger()
    ledger.spend(NAME, "counts", 1, receipt="run/1")
    with pytest.raises(RuntimeError):
        ledger.spend(NAME, "counts", 1000, receipt="run/1")


def test_a_run_that_can_be_resumed_keeps_to_the_budget_of_the_data_set():
    ledger = Ledger()
    ledger.declare(NAME, BUDGET.epsilon, BUDGET.delta)
    ledger.spend(NAME, "counts", BUDGET.cost, receipt="run/1")
    with pytest.raises(PrivacyBudgetExceeded):
        ledger.spend(NAME, "sums", BUDGET.cost, receipt="run/2")


def test_numbers_that_a_killed_process_left_behind_are_removed(tmp_path):
    with draft(tmp_path / "release-0001.safetensors") as place:
        place.write_bytes(b"numbers")
    place.write_bytes(b"numbers")
    with Checkpoint(tmp_path, {"method": "a test"}):
        assert not place.exists()
