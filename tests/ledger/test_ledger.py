import os
import signal
import subprocess
import sys

import pytest

from dpals.ledger import hash_chain
from dpals.ledger.entries import SEEDED
from dpals.ledger.ledger import Ledger
from dpals.ledger.totals import Total
from dpals.release.accounting import Budget, PrivacyBudgetExceeded, cost_of, mu


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


def test_a_ledger_stays_where_it_is_when_the_folder_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("ledger.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.spend("films", "counts", cost=1)
    assert Ledger(tmp_path / "ledger.db").spent("films") == 1


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


def test_a_summary_is_of_one_moment(ledger):
    assert ledger.summary("films") == (Total(5_010), ledger.verify())
    ledger.spend("films", "counts" + SEEDED, cost=1)
    assert ledger.summary("films") == (Total(5_011, seeded=True), ledger.verify())
    assert ledger.summary("books") == (Total(), ledger.verify())


WHOLE = Budget(1.0, 1e-6)


class TestReservations:
    def test_count_until_the_run_ends_and_refund_the_rest(self, path):
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
    def test_of_adaptive_costs_nothing_is_refunded_once_something_was_spent(self, spent, counts):
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

    def test_a_fresh_start_is_checked_with_what_it_refunds(self):
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
    Ledger(path).declare("films", 1.0, 1e-6)  # enough for three
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
def test_wherever_a_run_is_killed_the_total_is_not_too_small_and_it_can_resume(path, monkeypatch, which, when):
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
