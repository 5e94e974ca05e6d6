"""The file of a ledger notices changes, and files of earlier versions are read."""

import hashlib
import json
import os
import sqlite3

import pytest

from dpals.ledger.hash_chain import GENESIS, LedgerDamaged
from dpals.ledger.ledger import Ledger
from dpals.release.accounting import Budget, PrivacyBudgetExceeded, cost_of, mu

WHOLE = Budget(1.0, 1e-6)


def test_a_ledger_cut_back_is_found_out_by_the_head_of_a_statement(ledger, path):
    old_head = ledger.verify()
    ledger.spend("films", "later", cost=1)
    assert ledger.verify(old_head) == ledger.verify()
    copy = path.read_bytes()
    ledger.spend("films", "too late", cost=1)
    newest = ledger.verify()
    path.write_bytes(copy)
    ledger.verify(old_head)
    with pytest.raises(LedgerDamaged, match="was never in this ledger"):
        ledger.verify(newest)


def test_a_ledger_that_spent_otherwise_within_the_same_second_is_found_out(path, monkeypatch):
    """Rolled back to a copy, it does the same again: everything in its entries but the random bytes is as it was."""
    monkeypatch.setattr("dpals.ledger.entries.now", lambda: "2026-01-01T00:00:00+00:00")
    ledger = Ledger(path)
    copy = path.read_bytes()
    heads = []
    for _ in range(2):
        path.write_bytes(copy)
        ledger.spend("films", "counts", cost=7)
        heads.append(ledger.verify())
    assert heads[0] != heads[1]
    with pytest.raises(LedgerDamaged, match="was never in this ledger"):
        ledger.verify(heads[0])


def test_the_head_before_the_first_entry_is_a_head(path):
    first = Ledger(path).verify()
    assert first == GENESIS
    Ledger(path).spend("films", "counts", cost=1)
    assert Ledger(path).verify(first) != first


def test_a_ledger_is_for_its_owner_alone(path):
    before = os.umask(0)
    try:
        Ledger(path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600


TAMPERING = {
    "a cost made smaller": "UPDATE entries SET content = replace(content, '1002', '1') WHERE number = 3",
    "a purpose reworded": "UPDATE entries SET content = replace(content, 'release', 'free') WHERE number = 2",
    "the last entry removed": "DELETE FROM entries WHERE number = 5",
    "a middle entry removed": "DELETE FROM entries WHERE number = 2",
    "all entries removed": "DELETE FROM entries",
    "two entries swapped": (
        "UPDATE entries SET number = -1 WHERE number = 2; UPDATE entries SET number = 2 WHERE number = 3;"
        "UPDATE entries SET number = 3 WHERE number = -1"
    ),
    "an entry added": "INSERT INTO entries VALUES (6, '{}', 'abc')",
    "the head set back": "UPDATE head SET count = 4",
    "the head removed": "DELETE FROM head",
    "a table dropped": "DROP TABLE head",
    "another format": "PRAGMA user_version = 9",
}


@pytest.mark.parametrize("how", TAMPERING)
def test_tampering_is_detected_and_refused_by_every_call(ledger, path, how):
    schema = "SELECT sql FROM sqlite_schema WHERE type = 'trigger'"
    with sqlite3.connect(path) as connection:
        triggers = connection.execute(schema).fetchall()
        connection.executescript("DROP TRIGGER no_update; DROP TRIGGER no_delete;" + TAMPERING[how])
        for (trigger,) in triggers:
            connection.execute(trigger)
    connection.close()
    for call in (
        ledger.verify,
        ledger.entries,
        lambda: ledger.spend("films", "more", cost=1),
        lambda: ledger.declare("films", 1.0, 1e-6),
        lambda: ledger.spent("films"),
        lambda: Ledger(path),
    ):
        with pytest.raises(LedgerDamaged, match="cannot be trusted"):
            call()


def test_a_change_that_the_head_follows_is_detected(ledger, path):
    """The link of the entry that was changed is left as it was."""
    with sqlite3.connect(path) as connection:
        triggers = connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        connection.executescript("DROP TRIGGER no_update; DROP TRIGGER no_delete;" + TAMPERING["a cost made smaller"])
        last = GENESIS
        for number, content in connection.execute("SELECT number, content FROM entries ORDER BY number").fetchall():
            last = hashlib.sha256(f"{last}\n{number}\n{content}".encode()).hexdigest()
        connection.execute("UPDATE head SET hash = ?", (last,))
        for (trigger,) in triggers:
            connection.execute(trigger)
    connection.close()
    with pytest.raises(LedgerDamaged, match="the chain breaks at entry 3"):
        ledger.verify()


def test_removing_the_triggers_is_detected(ledger, path):
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER no_update")
    connection.close()
    with pytest.raises(LedgerDamaged, match="triggers"):
        ledger.verify()


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize("statement", ["DELETE FROM entries", "UPDATE entries SET content = ''"])
def test_the_database_itself_refuses_changes(path, statement):
    with sqlite3.connect(path) as connection, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()


@pytest.mark.usefixtures("ledger")
def test_damaged_files_are_refused(path):
    sound = path.read_bytes()
    for damage in (b"", b"not a ledger", sound[: len(sound) // 2], sound[:4000] + bytes(4000) + sound[8000:]):
        path.write_bytes(damage)
        with pytest.raises(LedgerDamaged):
            Ledger(path).verify()


OLD_SCHEMA = [
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, content TEXT NOT NULL, hash TEXT NOT NULL) STRICT;",
    "CREATE TABLE head (count INTEGER NOT NULL, hash TEXT NOT NULL) STRICT;",
    "CREATE TRIGGER no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'ledgers are append-only'); END;",
    "CREATE TRIGGER no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'ledgers are append-only'); END;",
]


@pytest.fixture
def old(path):
    """A ledger as version 1 of the format had it, written here byte by byte, with an interrupted run."""
    budget = Budget(1.0, 1e-6)
    common = {"dataset": "films", "time": "2026-01-01T00:00:00+00:00"}
    rows = [
        {**common, "kind": "budget", "purpose": "epsilon 1.0, delta 1e-06", "cost": budget.cost, "receipt": ""},
        {**common, "kind": "spend", "purpose": "counts", "cost": 1_000, "receipt": ""},
        {**common, "kind": "spend", "purpose": "means", "cost": 500, "receipt": "interrupted/1"},
        {**common, "kind": "publication", "purpose": "digest", "cost": 0, "receipt": "interrupted/1"},
    ]
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in OLD_SCHEMA:
        connection.execute(statement)
    connection.execute("PRAGMA user_version = 1")
    last = hashlib.sha256(b"dpals ledger 1").hexdigest()
    for number, row in enumerate(rows):
        content = json.dumps(row, sort_keys=True)
        last = hashlib.sha256(f"{last}\n{number}\n{content}".encode()).hexdigest()
        connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (number, content, last))
    connection.execute("INSERT INTO head VALUES (?, ?)", (len(rows), last))
    connection.close()
    path.chmod(0o664)
    return path, last


def version(path):
    connection = sqlite3.connect(path)
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return found


class TestFormatOne:
    def test_is_read_and_verified_without_a_change(self, old):
        path, head = old
        before = path.read_bytes()
        ledger = Ledger(path)
        assert ledger.verify(head) == head
        assert ledger.spent("films") == 1_500
        assert ledger.allowance("films") == WHOLE.cost
        assert ledger.total("films").at(1e-6)[1] == 1e-6
        assert ledger.total("films").text(1e-6).startswith("at least epsilon ")
        assert ledger.published("interrupted/1") == "digest"
        assert path.read_bytes() == before

    def test_is_spent_on_and_becomes_format_two_with_its_first_new_row(self, old):
        path, head = old
        ledger = Ledger(path)
        rows = stored(path)
        with pytest.raises(PrivacyBudgetExceeded):
            ledger.spend("films", "too much", WHOLE.cost)
        assert version(path) == 1, "a row that was refused changes nothing"
        ledger.spend("films", "more", 7)
        assert version(path) == 2
        assert stored(path)[: len(rows)] == rows
        assert ledger.verify(head) != head
        assert ledger.spent("films") == 1_507
        ledger.enter_search("films", "search", 0.5, 5e-7)
        assert ledger.allowance("films") == cost_of(mu(0.5, 5e-7))

    def test_an_interrupted_run_reserves_what_it_has_not_spent(self, old):
        ledger = Ledger(old[0])
        ledger.spend("films", "other", WHOLE.cost // 2)
        small = Budget(0.5, 1e-6)
        ledger.reserve("films", "training", small, "interrupted")
        assert ledger.spent("films") == 1_000 + WHOLE.cost // 2 + small.cost
        ledger.spend("films", "means", 500, receipt="interrupted/1")
        ledger.end("interrupted")
        assert ledger.spent("films") == 1_500 + WHOLE.cost // 2

    def test_is_hidden_from_others_before_it_knows_people(self, old):
        path, _ = old
        Ledger(path).spend("films", "more", 7)
        assert path.stat().st_mode & 0o777 == 0o664
        Ledger(path).note_users("films", range(5))
        assert path.stat().st_mode & 0o777 == 0o660


def stored(path):
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT * FROM entries ORDER BY number").fetchall()
    connection.close()
    return rows
