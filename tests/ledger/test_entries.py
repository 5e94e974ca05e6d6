import json
from dataclasses import fields

import pytest

from dpals.ledger.entries import Entry

FULL = Entry(
    "reservation",
    "films",
    "training",
    cost=2**70,
    receipt="run/1",
    run="run",
    adaptive=True,
    epsilon=0.5,
    delta=1e-6,
    sketch=("00ff", "01ab"),
    nonce="c0ffee",
)


@pytest.mark.parametrize("entry", [FULL, Entry("spend", "films", "counts", 7)])
def test_a_row_is_read_as_it_was_written(entry):
    assert Entry.from_json(entry.to_json()) == entry


def test_only_what_differs_from_the_defaults_is_written():
    written = json.loads(Entry("spend", "films", "counts", 7, time="2026-01-01").to_json())
    assert written == {"kind": "spend", "dataset": "films", "purpose": "counts", "cost": 7, "time": "2026-01-01"}


def test_sketch_and_nonce_are_never_shown():
    """Not even in a traceback or a log that prints the entry."""
    assert set(FULL.public()) == {field.name for field in fields(Entry)} - {"sketch", "nonce"}
    for text in (json.dumps(FULL.public()), repr(FULL)):
        assert "c0ffee" not in text
        assert "00ff" not in text


def test_rows_of_format_one_are_read():
    """They had the budget only in words, and the run only in the receipt."""
    row = {"dataset": "films", "time": "2026-01-01", "cost": 5, "receipt": ""}
    budget = Entry.from_json(json.dumps({**row, "kind": "budget", "purpose": "epsilon 1.5, delta 1e-06"}))
    assert (budget.epsilon, budget.delta, budget.run) == (1.5, 1e-6, "")
    spend = Entry.from_json(json.dumps({**row, "kind": "spend", "purpose": "counts", "receipt": "a/run/3"}))
    assert (spend.run, spend.receipt, spend.nonce) == ("a/run", "a/run/3", "")
