import hashlib
import json
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

from dpals.ledger import hash_chain, transactions
from dpals.ledger.entries import SEEDED
from dpals.ledger.hash_chain import GENESIS, LedgerDamaged
from dpals.ledger.ledger import Ledger
from dpals.ledger.totals import Total
from dpals.release.accounting import Budget, PrivacyBudgetExceeded, cost_of, mu

KILLS = 50


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """On a busy machine a turn may be long in coming: SQLite is not fair to those who wait."""
    monkeypatch.setitem(transactions._OPEN, "timeout", 600)


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
    with pytest.raises(LedgerDamaged, match="never was in it"):
        ledger.verify(heads[0])


def test_every_entry_has_random_bytes_of_its_own(ledger):
    ledger.note_users("films", range(10))
    ledger.reserve("films", "training", Budget(0.1, 1e-6), "run")
    nonces = [entry.nonce for entry in ledger.entries()]
    assert len(set(nonces)) == len(nonces) == 9
    assert all(re.fullmatch("[0-9a-f]{32}", nonce) for nonce in nonces)


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
    monkeypatch.setitem(transactions._OPEN, "timeout", 0.1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(OSError, match=r"cannot be used: another process holds it\. Try again"):
        ledger.spend("films", "counts", cost=7)
    other.close()
    ledger.spend("films", "counts", cost=7)


def test_a_summary_is_of_one_moment(ledger):
    assert ledger.summary("films") == (Total(5_010), ledger.verify())
    ledger.spend("films", "counts" + SEEDED, cost=1)
    assert ledger.summary("films") == (Total(5_011, seeded=True), ledger.verify())
    assert ledger.summary("books") == (Total(), ledger.verify())


WHOLE = Budget(1.0, 1e-6)


class TestReservations:
    def test_count_until_the_run_ends_and_give_back_the_rest(self, path):
        ledger = Ledger(path)
        ledger.reserve("films", "training", WHOLE, "run")
        assert ledger.spent("films") == WHOLE.cost
        ledger.spend("films", "counts", 10, run="run")
        assert ledger.spent("films") == WHOLE.cost
        (held,) = Ledger(path).open_runs()
        assert (held.name, held.purpose, held.reserved, held.spent) == ("run", "training", WHOLE.cost, 10)
        assert ledger.end("run") == held
        assert ledger.spent("films") == 10
        assert ledger.open_runs() == []
        assert ledger.end("run") is None
        assert [entry.kind for entry in ledger.entries()] == ["reservation", "spend", "end"]

    def test_the_second_run_is_refused_as_a_whole(self, path):
        ledger = Ledger(path)
        ledger.declare("films", WHOLE.epsilon, WHOLE.delta)
        ledger.reserve("films", "first", WHOLE, "one")
        before = ledger.verify()
        with pytest.raises(
            PrivacyBudgetExceeded, match=r"'second' would bring .* Runs that have not ended hold mu 0\.2"
        ):
            ledger.reserve("films", "second", Budget(0.01, 1e-6), "two")
        assert ledger.verify() == before
        ledger.spend("films", "all of it", WHOLE.cost, run="one")
        ledger.end("one")
        assert ledger.spent("films") == WHOLE.cost

    def test_asking_twice_reserves_once(self, path):
        ledger = Ledger(path)
        for _ in range(2):
            ledger.reserve("films", "training", WHOLE, "run")
        assert ledger.spent("films") == WHOLE.cost
        assert len(ledger.entries()) == 1

    def test_belong_to_one_data_set_and_have_a_name(self):
        ledger = Ledger()
        ledger.reserve("films", "training", WHOLE, "run")
        with pytest.raises(RuntimeError, match="is on 'films', not on 'books'"):
            ledger.reserve("books", "training", WHOLE, "run")
        with pytest.raises(ValueError, match="needs a name"):
            ledger.reserve("films", "training", WHOLE, "")

    def test_a_spend_beyond_the_reservation_is_checked_like_any_other(self):
        ledger = Ledger()
        ledger.declare("films", WHOLE.epsilon, WHOLE.delta)
        ledger.reserve("films", "training", WHOLE, "run")
        ledger.spend("films", "all", WHOLE.cost, run="run")
        with pytest.raises(PrivacyBudgetExceeded):
            ledger.spend("films", "one more", 1, run="run")
        with pytest.raises(PrivacyBudgetExceeded):
            ledger.spend("films", "of nobody", 1)

    @pytest.mark.parametrize(("spent", "counts"), [(0, 0), (1, WHOLE.cost), (WHOLE.cost, WHOLE.cost)])
    def test_of_adaptive_costs_nothing_is_given_back_once_something_was_spent(self, spent, counts):
        ledger = Ledger()
        ledger.reserve("films", "training", WHOLE, "run", adaptive=True)
        if spent:
            ledger.spend("films", "counts", spent, run="run")
        ledger.end("run")
        assert ledger.spent("films") == counts

    def test_runs_that_spent_something_may_be_left_as_they_are(self):
        ledger = Ledger()
        for run in ("one", "two"):
            ledger.reserve("films", "training", WHOLE, run)
        ledger.spend("films", "counts", 1, run="one")
        assert ledger.end("one", only_unspent=True) is None
        assert ledger.end("two", only_unspent=True).name == "two"
        assert [run.name for run in ledger.open_runs()] == ["one"]

    def test_a_fresh_start_is_checked_with_what_it_gives_back(self):
        ledger = Ledger()
        ledger.declare("films", 1.2, 1e-6)
        ledger.reserve("films", "training", WHOLE, "run")
        ledger.spend("films", "counts", 10, run="run")
        ledger.check("films", "training", WHOLE.cost, run="run")
        ledger.check("films", "training", WHOLE.cost, run="run", fresh=True)
        with pytest.raises(PrivacyBudgetExceeded):
            ledger.check("films", "training", WHOLE.cost)
        assert [run.name for run in ledger.open_runs()] == ["run"]


class TestSearches:
    def test_add_up_with_trainings_and_count_against_the_budget(self, path):
        ledger = Ledger(path)
        ledger.declare("films", 2.0, 1e-5)
        ledger.enter_search("films", "search with DPALS", 1.0, 4e-6)
        assert ledger.total("films").searches == ((1.0, 4e-6),)
        assert ledger.allowance("films") == cost_of(mu(1.0, 6e-6))
        ledger.spend("films", "all that is left", cost=ledger.allowance("films"))
        assert ledger.total("films").at(1e-5) == (2.0, 1e-5)
        for refused in (
            lambda: ledger.spend("films", "one more", cost=1),
            lambda: ledger.enter_search("films", "a small one", 1e-6, 1e-12),
        ):
            before = ledger.verify()
            with pytest.raises(PrivacyBudgetExceeded, match="a search: epsilon 1 at delta 4e-06"):
                refused()
            assert ledger.verify() == before

    @pytest.mark.parametrize(("epsilon", "delta"), [(2.1, 1e-6), (1.0, 1.1e-5)])
    def test_that_alone_exceed_the_budget_are_refused(self, epsilon, delta):
        ledger = Ledger()
        ledger.declare("films", 2.0, 1e-5)
        with pytest.raises(PrivacyBudgetExceeded):
            ledger.enter_search("films", "search", epsilon, delta)
        ledger.enter_search("films", "search", 2.0, 1e-5)
        assert ledger.allowance("films") == 0
        with pytest.raises(PrivacyBudgetExceeded):
            ledger.spend("films", "counts", 1)

    @pytest.mark.parametrize(("epsilon", "delta"), [(-1.0, 1e-6), (1.0, 2.0), (float("nan"), 1e-6)])
    def test_without_a_promise_are_refused(self, epsilon, delta):
        ledger = Ledger()
        with pytest.raises(ValueError, match="must"):
            ledger.enter_search("films", "search", epsilon, delta)
        assert ledger.entries() == []


class TestPopulation:
    def test_people_under_a_new_name_are_warned_of(self, path, caplog):
        people = [f"user {number}" for number in range(3000)]
        Ledger(path).note_users("films", people)
        Ledger(path).note_users("films", people[:2000])
        assert caplog.text == ""
        Ledger(path).note_users("films of June", people[500:] + [f"new {number}" for number in range(900)])
        (warning,) = caplog.records
        assert warning.name.split(".")[0] == "dpals"
        assert "many users of 'films of June' are in this ledger as 'films' already" in warning.getMessage()

    @pytest.mark.parametrize("share", [0.2, 1.0, 5.0])
    def test_part_of_them_and_more_than_them_as_well(self, share, caplog):
        ledger = Ledger()
        ledger.note_users("films", range(10_000))
        ledger.note_users("other", range(int(10_000 * share)))
        assert "as 'films' already" in caplog.text

    def test_other_people_are_not(self, caplog):
        ledger = Ledger()
        ledger.note_users("films", range(5000))
        ledger.note_users("books", range(5000, 9000))
        ledger.note_users("nobody", [])
        assert caplog.text == ""

    def test_looking_remembers_nobody(self, path, caplog):
        ledger = Ledger(path)
        ledger.warn_of_shared_users("films", range(10))
        assert ledger.entries() == []
        ledger.note_users("films", range(10))
        before = ledger.verify()
        ledger.warn_of_shared_users("books", range(10))
        assert "as 'films' already" in caplog.text
        assert ledger.verify() == before

    def test_the_same_people_are_remembered_once(self, path):
        ledger = Ledger(path)
        for _ in range(3):
            ledger.note_users("films", range(2000))
        assert [len(entry.sketch) for entry in ledger.entries()] == [0, 1024]

    def test_nothing_about_people_leaves_the_file(self, path):
        """Heads of ledgers of the same people differ, and what may be shown of entries has no sketch and no key."""
        heads = set()
        for number in range(2):
            ledger = Ledger(path.with_name(f"{number}.db"))
            ledger.note_users("films", range(1000))
            heads.add(ledger.verify())
            shown = json.dumps([entry.public() for entry in ledger.entries()]) + repr(ledger.entries())
            for entry in ledger.entries():
                assert entry.nonce not in shown
                assert not any(tag in shown for tag in entry.sketch)
        assert len(heads) == 2

    def test_ids_are_hashed_under_a_key_of_the_ledger(self):
        sketches = []
        for _ in range(2):
            ledger = Ledger()
            ledger.note_users("films", range(10))
            sketches.append(set(ledger.entries()[-1].sketch))
        assert len(sketches[0]) == 10
        assert not sketches[0] & sketches[1]


OLD_SCHEMA = [
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, content TEXT NOT NULL, hash TEXT NOT NULL) STRICT;",
    "CREATE TABLE head (count INTEGER NOT NULL, hash TEXT NOT NULL) STRICT;",
    "CREATE TRIGGER no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'ledgers are append-only'); END;",
    "CREATE TRIGGER no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'ledgers are append-only'); END;",
]


@pytest.fixture
def old(path):
    """A ledger as version 1 of the format had it, written here byte by byte, with a run that was broken off."""
    budget = Budget(1.0, 1e-6)
    common = {"dataset": "films", "time": "2026-01-01T00:00:00+00:00"}
    rows = [
        {**common, "kind": "budget", "purpose": "epsilon 1.0, delta 1e-06", "cost": budget.cost, "receipt": ""},
        {**common, "kind": "spend", "purpose": "counts", "cost": 1_000, "receipt": ""},
        {**common, "kind": "spend", "purpose": "means", "cost": 500, "receipt": "broken/1"},
        {**common, "kind": "publication", "purpose": "digest", "cost": 0, "receipt": "broken/1"},
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
        assert ledger.published("broken/1") == "digest"
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

    def test_a_run_that_was_broken_off_reserves_what_it_has_not_spent(self, old):
        ledger = Ledger(old[0])
        ledger.spend("films", "other", WHOLE.cost // 2)
        small = Budget(0.5, 1e-6)
        ledger.reserve("films", "training", small, "broken")
        assert ledger.spent("films") == 1_000 + WHOLE.cost // 2 + small.cost
        ledger.spend("films", "means", 500, receipt="broken/1")
        ledger.end("broken")
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


TRAINER = """
import sys
from dpals.release.accounting import Budget, PrivacyBudgetExceeded
from dpals.ledger.ledger import Ledger
ledger, run, budget = Ledger(sys.argv[1]), sys.argv[2], Budget(0.5, 1e-6)
try:
    ledger.reserve("films", "training", budget, run)
except PrivacyBudgetExceeded:
    print("refused", flush=True)
    sys.exit()
print("reserved", flush=True)
sys.stdin.readline()
for number in range(4):
    ledger.spend("films", f"release {number}", budget.cost // 5, run=run)
    print("spent", flush=True)
ledger.end(run)
print("ended", flush=True)
"""


def trainer(path, run):
    command = [sys.executable, "-c", TRAINER, str(path), run]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_of_processes_that_begin_at_once_only_those_that_fit_begin_and_all_of_them_finish(path):
    Ledger(path).declare("films", 1.0, 1e-6)  # mu squared of which is room for three
    trainers = [trainer(path, f"run {number}") for number in range(6)]
    first = [process.stdout.readline().strip() for process in trainers]
    told = [process.communicate("go\n")[0].split() for process in trainers]
    cost, room = Budget(0.5, 1e-6).cost, Ledger(path).allowance("films") // Budget(0.5, 1e-6).cost
    assert first.count("reserved") == room
    assert first.count("refused") == 6 - room
    assert [lines for lines in told if lines] == [["spent"] * 4 + ["ended"]] * room
    assert Ledger(path).spent("films") == room * 4 * (cost // 5)


@pytest.mark.parametrize("lines", range(7))
def test_a_trainer_killed_after_any_step_leaves_a_total_that_is_not_too_small(path, lines):
    """After so many lines of its output; what it does next is under way."""
    process = trainer(path, "run")
    process.stdin.write("go\n")
    process.stdin.flush()
    told = [process.stdout.readline().strip() for _ in range(lines)]
    process.kill()
    told += process.stdout.read().split()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        pipe.close()
    budget, ledger = Budget(0.5, 1e-6), Ledger(path)
    if "reserved" not in told:
        assert ledger.spent("films") in (0, budget.cost)
    elif "ended" not in told:
        assert ledger.spent("films") in (budget.cost, 4 * (budget.cost // 5))
    else:
        assert ledger.spent("films") == 4 * (budget.cost // 5)
    assert ledger.spent("films") >= told.count("spent") * (budget.cost // 5)
    ledger.end("run")
    assert told.count("spent") <= ledger.spent("films") // (budget.cost // 5) <= told.count("spent") + 1
    assert ledger.open_runs() == []


def trained(ledger, log):
    """A whole run, which writes down what it may count on."""
    ledger.note_users("films", range(5))
    ledger.reserve("films", "training", WHOLE, "run", adaptive=False)
    os.write(log, b"r")
    for number in range(3):
        ledger.spend("films", "counts", WHOLE.cost // 4, receipt=f"run/{number}", run="run")
        os.write(log, b"s")
        ledger.publish("films", f"run/{number}", "digest")
    ledger.end("run")
    os.write(log, b"e")


def killing(when, which):
    """A double of `hash_chain.append` that ends the process, at once, at the chosen call."""
    real, calls = hash_chain.append, []

    def append(connection, content):
        calls.append(1)
        last = len(calls) == which
        if last and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        real(connection, content)
        if last and when == "after commit":
            connection.execute("COMMIT")
        if last:
            os.kill(os.getpid(), signal.SIGKILL)

    return append


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("when", ["before", "after insert", "after commit"])
@pytest.mark.parametrize("which", range(1, 11))
def test_wherever_a_run_is_killed_the_total_is_not_too_small_and_it_can_go_on(path, monkeypatch, which, when):
    Ledger(path).declare("films", WHOLE.epsilon, WHOLE.delta)
    log = path.with_name("log")
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(hash_chain, "append", killing(when, which))
        trained(Ledger(path), os.open(log, os.O_CREAT | os.O_WRONLY))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    ledger, told = Ledger(path), log.read_bytes()
    ledger.verify()
    assert ledger.spent("films") >= told.count(b"s") * (WHOLE.cost // 4)
    if b"r" in told and b"e" not in told:
        ended = when == "after commit" and which == 10
        assert ledger.spent("films") == (3 * (WHOLE.cost // 4) if ended else WHOLE.cost)
    trained(ledger, os.open(log, os.O_WRONLY))
    assert ledger.spent("films") == 3 * (WHOLE.cost // 4), "paid once"
    assert ledger.open_runs() == []
