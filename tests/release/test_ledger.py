import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from dpals.release import ledger as ledger_module
from dpals.release.accounting import PrivacyBudgetExceeded, cost_of, mu
from dpals.release.ledger import Ledger, LedgerDamaged

KILLS = 50


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """On a busy machine a turn may be long in coming: SQLite is not fair to those who wait."""
    monkeypatch.setitem(ledger_module._OPEN, "timeout", 600)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path):
    ledger = Ledger(path)
    ledger.declare("films", epsilon=1.0, delta=1e-6)
    for number in range(5):
        ledger.spend("films", f"release {number}", cost=1_000 + number)
    return ledger


def test_spends_add_up_by_data_set(ledger):
    ledger.spend("books", "counts", cost=7)
    assert ledger.spent("films") == 5_010
    assert ledger.spent("books") == 7
    assert ledger.spent("unheard of") == 0
    assert [e.purpose for e in ledger.entries()[1:3]] == ["release 0", "release 1"]


def test_a_ledger_survives_being_closed(ledger, path):
    assert Ledger(path).entries() == ledger.entries()
    assert Ledger(path).verify() == ledger.verify()


def test_the_declared_budget_is_the_limit_to_the_last_unit(ledger):
    allowance = cost_of(mu(1.0, 1e-6))
    assert ledger.allowance("films") == allowance
    before = ledger.entries()
    with pytest.raises(PrivacyBudgetExceeded, match=r"'too much' would bring .* 'films'"):
        ledger.spend("films", "too much", cost=allowance - 5_010 + 1)
    assert ledger.entries() == before
    ledger.spend("films", "all that is left", cost=allowance - 5_010)
    with pytest.raises(PrivacyBudgetExceeded):
        ledger.spend("films", "one more", cost=1)


def test_the_last_declaration_counts_and_what_was_spent_stays_spent(ledger):
    ledger.declare("films", epsilon=0.5, delta=1e-6)
    assert ledger.allowance("films") == cost_of(mu(0.5, 1e-6))
    assert ledger.spent("films") == 5_010


def test_a_data_set_without_a_budget_is_recorded_without_limit():
    ledger = Ledger()
    ledger.spend("films", "counts", cost=10**30)
    assert ledger.spent("films") == 10**30
    assert ledger.allowance("films") is None


@pytest.mark.parametrize("cost", [-1, 1.0, float("nan"), True])
def test_a_cost_that_is_no_number_of_units_is_refused(ledger, cost):
    with pytest.raises(ValueError, match="not negative"):
        ledger.spend("films", "refund", cost=cost)


def test_a_ledger_cut_back_is_found_out_by_the_head_of_a_statement(ledger, path):
    old_head = ledger.verify()
    ledger.spend("films", "later", cost=1)
    assert ledger.verify(old_head) == ledger.verify()
    copy = path.read_bytes()
    ledger.spend("films", "too late", cost=1)
    newest = ledger.verify()
    path.write_bytes(copy)
    ledger.verify(old_head)
    with pytest.raises(LedgerDamaged, match="never was in it"):
        ledger.verify(newest)


def test_a_ledger_stays_where_it_is_when_the_folder_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("ledger.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.spend("films", "counts", cost=1)
    assert Ledger(tmp_path / "ledger.db").spent("films") == 1


def test_threads_that_create_a_ledger_at_once_share_it(path):
    def create():
        Ledger(path).spend("films", "from a thread", cost=1)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Ledger(path).spent("films") == 8


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


def test_a_place_that_cannot_be_written_is_an_ordinary_error(tmp_path):
    with pytest.raises(OSError, match="cannot be created"):
        Ledger(tmp_path / "no such folder" / "ledger.db")
    with pytest.raises(OSError, match="cannot be used"):
        Ledger(tmp_path)


def test_writes_wait_for_the_disk(ledger):
    """Durability rests on SQLite's rollback journal with full synchronisation, directory included."""
    with ledger._transaction() as (connection, _):
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_threads_share_a_ledger(ledger):
    def spend():
        for _ in range(10):
            ledger.spend("films", "in a thread", cost=1)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.spent("films") == 5_010 + 40


SPENDER = """
import sys
from dpals.release import ledger as ledger_module
from dpals.release.accounting import PrivacyBudgetExceeded
ledger_module._OPEN["timeout"] = 600
ledger = ledger_module.Ledger(sys.argv[1])
done = 0
try:
    for number in range(int(sys.argv[2])):
        ledger.spend("films", f"{sys.argv[3]} {number}", cost=int(sys.argv[4]))
        done += 1
        sys.stdout.write("x")
        sys.stdout.flush()
except PrivacyBudgetExceeded:
    pass
"""


def spender(path, count, name, cost):
    command = [sys.executable, "-c", SPENDER, str(path), str(count), name, str(cost)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def test_processes_that_spend_at_once_stay_within_the_budget(path):
    ledger = Ledger(path)
    ledger.declare("films", epsilon=1.0, delta=1e-6)
    allowance = ledger.allowance("films")
    cost = allowance // 50
    spenders = [spender(path, 40, f"process {k}", cost) for k in range(4)]
    acknowledged = sum(len(process.communicate()[0]) for process in spenders)
    assert ledger.spent("films") == acknowledged * cost
    assert acknowledged == 50
    ledger.verify()


def test_processes_that_create_a_ledger_at_once_share_it(path):
    spenders = [spender(path, 3, f"process {k}", 1) for k in range(4)]
    acknowledged = sum(len(process.communicate()[0]) for process in spenders)
    assert acknowledged == Ledger(path).spent("films") == 12
    assert os.listdir(path.parent) == [path.name]


def test_kill_at_any_point_loses_no_spend(path):
    """What a process said it had spent, before it was killed, is in the ledger afterwards."""
    rng = random.Random(5)
    acknowledged = 0
    for kill in range(KILLS):
        process = spender(path, 10**9, f"run {kill}", 1)
        assert process.stdout.read(1) == b"x"
        time.sleep(rng.uniform(0, 0.03))
        process.send_signal(signal.SIGKILL)
        acknowledged += 1 + len(process.stdout.read())
        process.stdout.close()
        assert process.wait() == -signal.SIGKILL
        recorded = Ledger(path).spent("films")
        assert acknowledged <= recorded <= acknowledged + kill + 1, "a spend was lost or invented"
    Ledger(path).verify()


def test_a_receipt_is_paid_once(ledger):
    for _ in range(2):
        ledger.spend("films", "counts", cost=7, receipt="run/1")
    assert ledger.spent("films") == 5_017
    ledger.spend("films", "counts", cost=7, receipt="run/2")
    ledger.spend("films", "counts", cost=7)
    ledger.spend("films", "counts", cost=7)
    assert ledger.spent("films") == 5_038


@pytest.mark.parametrize("other", [("books", "counts", 7), ("films", "means", 7), ("films", "counts", 6)])
def test_a_receipt_is_good_for_one_spend_only(ledger, other):
    ledger.spend("films", "counts", cost=7, receipt="run/1")
    dataset, purpose, cost = other
    with pytest.raises(RuntimeError, match=r"run/1 is for 'counts'"):
        ledger.spend(dataset, purpose, cost, receipt="run/1")
    assert ledger.spent("films") == 5_017
    assert ledger.verify()


def test_a_receipt_stands_for_one_publication(ledger, path):
    with pytest.raises(RuntimeError, match="nothing was paid"):
        ledger.publish("films", "run/1", "digest a")
    ledger.spend("films", "counts", cost=7, receipt="run/1")
    assert ledger.published("run/1") is None
    for _ in range(2):
        ledger.publish("films", "run/1", "digest a")
    with pytest.raises(RuntimeError, match="other numbers were published"):
        Ledger(path).publish("films", "run/1", "digest b")
    assert Ledger(path).published("run/1") == "digest a"
    assert [entry.kind for entry in Ledger(path).entries()].count("publication") == 1
    assert ledger.spent("films") == 5_017


def test_a_whole_run_can_be_checked_before_it_begins(ledger):
    left = ledger.allowance("films") - ledger.spent("films")
    before = ledger.verify()
    ledger.check("films", "training", left)
    with pytest.raises(PrivacyBudgetExceeded, match=r"'training' would bring"):
        ledger.check("films", "training", left + 1)
    assert ledger.verify() == before
    ledger.spend("films", "counts", left - 10, receipt="run/1")
    ledger.check("films", "training", left, run="run")  # it has begun to pay: `spend` decides
    for other in ("", "ru", "run/1"):
        with pytest.raises(PrivacyBudgetExceeded):
            ledger.check("films", "training", left, run=other)


def test_a_ledger_that_another_process_holds_says_so(path, ledger, monkeypatch):
    monkeypatch.setitem(ledger_module._OPEN, "timeout", 0.1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(OSError, match=r"cannot be used: another process holds it\. Try again"):
        ledger.spend("films", "counts", cost=7)
    other.close()
    ledger.spend("films", "counts", cost=7)


def test_a_summary_is_of_one_moment(ledger):
    assert ledger.summary("films") == (5_010, False, ledger.verify())
    ledger.spend("films", "counts" + ledger_module.SEEDED, cost=1)
    assert ledger.summary("films") == (5_011, True, ledger.verify())
    assert ledger.summary("books")[:2] == (0, False)
