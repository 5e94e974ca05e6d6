"""Threads and processes that use a ledger at once, and processes that are killed while they do."""

import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from dpals.ledger import transactions
from dpals.ledger.ledger import Ledger
from dpals.release.accounting import Budget

KILLS = {"quick": 12, "long": 100}


def test_every_entry_has_random_bytes_of_its_own(ledger):
    ledger.note_users("films", range(10))
    ledger.reserve("films", "training", Budget(0.1, 1e-6), "run")
    nonces = [entry.nonce for entry in ledger.entries()]
    assert len(set(nonces)) == len(nonces) == 9
    assert all(re.fullmatch("[0-9a-f]{32}", nonce) for nonce in nonces)


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


def test_a_ledger_that_another_process_holds_says_so(path, ledger, monkeypatch):
    monkeypatch.setitem(transactions._OPEN, "timeout", 0.1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(OSError, match=r"cannot be used: another process holds it\. Try again"):
        ledger.spend("films", "counts", cost=7)
    other.close()
    ledger.spend("films", "counts", cost=7)


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


def test_threads_that_create_a_ledger_at_once_share_it(path):
    def create():
        Ledger(path).spend("films", "from a thread", cost=1)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Ledger(path).spent("films") == 8


SPENDER = """
import sys
from dpals.ledger import transactions
from dpals.ledger.ledger import Ledger
from dpals.release.accounting import PrivacyBudgetExceeded
transactions._OPEN["timeout"] = 600
ledger = Ledger(sys.argv[1])
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


@pytest.mark.parametrize("length", ["quick", pytest.param("long", marks=pytest.mark.slow)])
def test_kill_at_any_point_loses_no_spend(path, length):
    """What a process said it had spent, before it was killed, is in the ledger afterwards."""
    rng = random.Random(5)
    acknowledged = 0
    for kill in range(KILLS[length]):
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
