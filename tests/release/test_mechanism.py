import contextlib
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

from dpals.ledger.ledger import Ledger
from dpals.release import mechanism as mechanism_module
from dpals.release.accounting import Budget, PrivacyBudgetExceeded, compose
from dpals.release.contribution import Contribution, Pattern, Query
from dpals.release.mechanism import Mechanism
from dpals.release.noise import NoiseStream

BUDGET = Budget(epsilon=1.0, delta=1e-5)
N_USERS, N_ITEMS = 200, 4_000


@pytest.fixture
def contribution():
    rng = np.random.default_rng(3)
    items = np.sort(np.argsort(rng.random((N_USERS, N_ITEMS)), axis=1)[:, :4], axis=1)
    return Contribution(Pattern(np.arange(N_USERS + 1) * 4, items.ravel(), N_ITEMS), np.full(4 * N_USERS, 0.5))


def spends(ledger):
    return [entry.cost for entry in ledger.entries() if entry.kind == "spend"]


def counts(sensitivity=1.0):
    return Query("counts", N_ITEMS, sensitivity=sensitivity)


def test_publishes_the_sum_plus_noise_of_the_stated_size(contribution):
    mechanism = Mechanism(BUDGET)
    published = mechanism.release(counts(), contribution, BUDGET.cost)[:, 0]
    truth = 0.5 * np.bincount(contribution.pattern.items, minlength=N_ITEMS)
    noise = (published - truth) / mechanism.releases[0].sigma
    assert stats.kstest(noise, "norm").pvalue > 1e-6
    assert mechanism.releases[0].sigma == pytest.approx(1 / BUDGET.mu, rel=1e-6)


def test_the_matrix_form_has_less_noise_off_the_diagonal():
    """sigma on the diagonal, sigma / sqrt(2) off it."""
    mechanism = Mechanism(BUDGET)
    query = Query("matrices", N_ITEMS, sensitivity=1.0, form="symmetric", dimension=3)
    empty = Contribution(Pattern([0], [], N_ITEMS), np.empty(0), np.empty((0, 3)))
    published = mechanism.release(query, empty, BUDGET.cost) / mechanism.releases[0].sigma
    spread = published.std(axis=0)
    diagonal = [0, 3, 5]
    np.testing.assert_allclose(spread[diagonal], 1, rtol=0.07)
    np.testing.assert_allclose(np.delete(spread, diagonal), np.sqrt(0.5), rtol=0.07)


def test_published_numbers_are_integers_of_the_grid(contribution):
    """Noise is added to integers, so that no float rounding depends on the data."""
    mechanism = Mechanism(BUDGET)
    published = mechanism.release(counts(sensitivity=0.7), contribution, BUDGET.cost)
    steps = np.round(published / mechanism.releases[0].step)
    assert np.array_equal(published, steps * mechanism.releases[0].step)
    assert np.abs(steps).max() > 2**25, "the grid is fine against the noise"


def test_two_releases_of_the_same_query_have_independent_noise(contribution):
    mechanism = Mechanism(BUDGET)
    half, other_half = BUDGET.split(1, 1)
    first = mechanism.release(counts(), contribution, half)[:, 0]
    second = mechanism.release(counts(), contribution, other_half)[:, 0]
    sigma = mechanism.releases[0].sigma
    assert stats.kstest((first - second) / (sigma * np.sqrt(2)), "norm").pvalue > 1e-6
    truth = 0.5 * np.bincount(contribution.pattern.items, minlength=N_ITEMS)
    assert abs(np.corrcoef(first - truth, second - truth)[0, 1]) < 6 / np.sqrt(N_ITEMS)


def test_each_release_draws_from_a_stream_of_its_own(contribution, monkeypatch):
    streams = []

    class Watched(NoiseStream):
        def __init__(self):
            super().__init__()
            streams.append(self)

    monkeypatch.setattr(mechanism_module, "NoiseStream", Watched)
    mechanism = Mechanism(BUDGET)
    for cost in BUDGET.split(1, 1, 1):
        mechanism.release(counts(), contribution, cost)
    assert len(streams) == 3


def test_the_spend_is_recorded_before_the_first_random_bit(contribution, monkeypatch):
    ledger = Ledger()
    seen = []

    class Watched(NoiseStream):
        def words(self, count):
            seen.extend(spends(ledger))
            return super().words(count)

    monkeypatch.setattr(mechanism_module, "NoiseStream", Watched)
    mechanism = Mechanism(BUDGET, ledger, "films")
    mechanism.release(counts(), contribution, BUDGET.cost)
    assert spends(ledger) == [mechanism.releases[0].cost]
    assert set(seen) == {spends(ledger)[0]}


def test_no_noise_is_drawn_where_the_ledger_refuses(contribution, monkeypatch):
    ledger = Ledger()
    ledger.declare("films", epsilon=0.1, delta=1e-5)

    def forbidden(*_):
        raise AssertionError("noise was drawn for a release that was not paid for")

    monkeypatch.setattr(NoiseStream, "words", forbidden)
    mechanism = Mechanism(BUDGET, ledger, "films")
    with pytest.raises(PrivacyBudgetExceeded, match="films"):
        mechanism.release(counts(), contribution, BUDGET.cost)
    assert mechanism.releases == []
    assert ledger.spent("films") == 0


def test_a_run_cannot_exceed_its_own_budget(contribution):
    mechanism = Mechanism(BUDGET)
    shares = BUDGET.split(*[1] * 7)
    for share in shares:
        mechanism.release(counts(), contribution, share)
    assert mechanism.spent <= BUDGET.cost
    assert compose(release.mu for release in mechanism.releases) == pytest.approx(BUDGET.mu, rel=1e-6)
    with pytest.raises(PrivacyBudgetExceeded, match="nothing was spent"):
        mechanism.release(counts(), contribution, shares[0])
    mechanism.close()
    assert mechanism.ledger.spent("ratings") == mechanism.spent


def test_the_budget_ends_at_the_last_unit(contribution):
    mechanism = Mechanism(BUDGET)
    mechanism.release(counts(), contribution, BUDGET.cost)
    left = BUDGET.cost - mechanism.spent
    with pytest.raises(PrivacyBudgetExceeded):
        mechanism.release(counts(), contribution, left + 1)


def test_a_release_inside_another_cannot_exceed_the_budget(contribution):
    mechanism = Mechanism(BUDGET)

    def contributions():
        mechanism.release(counts(), contribution, BUDGET.cost)
        yield contribution

    with pytest.raises(PrivacyBudgetExceeded):
        mechanism.release(counts(), contributions(), BUDGET.cost)
    assert mechanism.spent <= BUDGET.cost


def test_threads_cannot_exceed_the_budget_together(contribution):
    mechanism = Mechanism(BUDGET)
    share = BUDGET.split(1, 1)[0]

    def spend():
        with contextlib.suppress(PrivacyBudgetExceeded):
            mechanism.release(counts(), contribution, share)

    threads = [threading.Thread(target=spend) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(mechanism.releases) == 2
    mechanism.close()
    assert mechanism.ledger.spent("ratings") == mechanism.spent <= BUDGET.cost


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_mechanism_dies_on_fork(contribution):
    mechanism = Mechanism(BUDGET)
    child = os.fork()
    if child == 0:
        try:
            mechanism.release(counts(), contribution, BUDGET.cost)
            os._exit(0)
        except RuntimeError as refusal:
            os._exit(7 if "survive a fork" in str(refusal) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_each_coordinate_has_the_noise_of_its_weight():
    mechanism = Mechanism(BUDGET)
    query = Query("weighted", N_ITEMS, sensitivity=1.0, form="vector", dimension=3, weights=(1, 4, 9))
    published = mechanism.release(query, [], BUDGET.cost) / mechanism.releases[0].sigma
    np.testing.assert_allclose(published.std(axis=0), [1, 1 / 2, 1 / 3], rtol=0.07)


KILLED = """
import sys
from pathlib import Path
import numpy as np
from dpals.release.accounting import Budget
from dpals.release.contribution import Query
from dpals.ledger.ledger import Ledger
from dpals.release.mechanism import Mechanism
budget = Budget(1000.0, 1e-5)
mechanism = Mechanism(budget, Ledger(sys.argv[1]), "films")
while True:
    mechanism.release(Query("counts", 3, sensitivity=1.0), [], budget.cost // 10**9)
    sys.stdout.write("x")
    sys.stdout.flush()
"""


def test_a_killed_run_has_paid_for_all_it_published(tmp_path):
    path, published = tmp_path / "ledger.db", 0
    for kill in range(5):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE)
        assert process.stdout.read(1) == b"x"
        time.sleep(0.02 * kill)
        process.kill()
        published += 1 + len(process.communicate()[0])
        assert len(spends(Ledger(path))) >= published
        assert Ledger(path).spent("films") == (kill + 1) * Budget(1000.0, 1e-5).cost, "each may have gone on"


def test_blocks_of_users_give_the_same_result_as_one(contribution):
    whole = Mechanism(BUDGET, insecure_seed=1).release(counts(), contribution, BUDGET.cost)
    pattern = contribution.pattern
    half = N_USERS // 2
    blocks = [
        Contribution(
            Pattern(pattern.indptr[a : b + 1] - pattern.indptr[a], pattern.items[4 * a : 4 * b], N_ITEMS, a),
            contribution.coefficients[4 * a : 4 * b],
        )
        for a, b in [(half, N_USERS), (0, half)]
    ]
    assert np.array_equal(whole, Mechanism(BUDGET, insecure_seed=1).release(counts(), iter(blocks), BUDGET.cost))


def users_from(first, stop):
    size = stop - first
    return Contribution(Pattern(np.arange(size + 1), np.zeros(size), N_ITEMS, first), np.ones(size))


@pytest.mark.parametrize("blocks", [[(0, 3), (0, 3)], [(0, 3), (3, 6), (0, 3)], [(0, 3), (2, 5)], [(2, 5), (0, 3)]])
def test_a_user_in_two_blocks_is_refused(blocks):
    with pytest.raises(ValueError, match="contribute twice"), Mechanism(BUDGET) as mechanism:
        mechanism.release(counts(), [users_from(*block) for block in blocks], BUDGET.cost)
    assert mechanism.spent == mechanism.ledger.spent("ratings") == 0


def test_bad_offers_spend_nothing(contribution):
    bad = Contribution(contribution.pattern, np.full(4 * N_USERS, np.nan))
    with pytest.raises(ValueError, match="finite"), Mechanism(BUDGET) as mechanism:
        mechanism.release(counts(), bad, BUDGET.cost)
    assert mechanism.spent == mechanism.ledger.spent("ratings") == 0


def test_nobody_is_released_with_noise_and_a_sensitivity_of_zero_is_free(contribution):
    mechanism = Mechanism(BUDGET)
    nothing = mechanism.release(counts(), [], BUDGET.split(1, 1)[0])
    assert nothing.std() == pytest.approx(mechanism.releases[0].sigma, rel=0.1)
    mechanism.release(counts(sensitivity=0.0), contribution, BUDGET.split(1, 1)[0])
    assert mechanism.releases[1].cost == 0


@pytest.mark.parametrize("cost", [0, -1, 1e15, np.int64(10**15), float("nan")])
def test_a_release_without_a_proper_cost_is_refused(contribution, cost):
    with pytest.raises(ValueError, match="positive integer as its cost"):
        Mechanism(BUDGET).release(counts(), contribution, cost)


def test_the_smallest_cost_still_works(contribution):
    mechanism = Mechanism(BUDGET)
    published = mechanism.release(counts(), contribution, cost=1)
    assert mechanism.releases[0].cost <= 1
    assert published.std() > 2**31
    assert mechanism.releases[0].variance <= 2**80


def test_seeded_noise_repeats(contribution):
    first, second = (Mechanism(BUDGET, insecure_seed=9).release(counts(), contribution, BUDGET.cost) for _ in range(2))
    fresh = [Mechanism(BUDGET).release(counts(), contribution, BUDGET.cost) for _ in range(2)]
    assert np.array_equal(first, second)
    assert not np.array_equal(*fresh)


class Memory:
    """The simplest store there is."""

    run = "run"

    def __init__(self):
        self.tables = {}

    def load(self, number, record):
        kept = self.tables.get(number)
        assert kept is None or kept[0] == record
        return None if kept is None else kept[1].copy()

    def save(self, number, record, table):
        assert number not in self.tables
        self.tables[number] = record, table.copy()

    def discard(self, number):
        del self.tables[number]


def release_thrice(mechanism, contribution):
    return [mechanism.release(counts(), contribution, BUDGET.cost // 3) for _ in range(3)]


@pytest.fixture
def interrupted(contribution):
    """The ledger, store and numbers of a run that was interrupted before its third release."""
    ledger, store = Ledger(), Memory()
    ledger.declare("films", BUDGET.epsilon, BUDGET.delta)
    mechanism = Mechanism(BUDGET, ledger, "films", store=store)
    first = [mechanism.release(counts(), contribution, BUDGET.cost // 3) for _ in range(2)]
    return ledger, store, first


def test_a_resumed_run_gives_the_same_numbers_and_pays_once(contribution, interrupted):
    ledger, store, first = interrupted
    with Mechanism(BUDGET, ledger, "films", store=store) as mechanism:
        again = release_thrice(mechanism, contribution)
    assert np.array_equal(again[0], first[0])
    assert np.array_equal(again[1], first[1])
    assert not np.array_equal(again[2], first[1])
    assert ledger.spent("films") == mechanism.spent <= BUDGET.cost
    assert len(mechanism.releases) == 3


def test_a_release_that_was_paid_but_never_published_is_not_paid_again(contribution, interrupted):
    """As after a crash between the spend and the moment at which the numbers are safe."""
    ledger, store, _ = interrupted

    class Full(Memory):
        def save(self, *_):
            raise OSError("no space left")

    full = Full()
    full.tables = store.tables
    with pytest.raises(OSError, match="no space"):
        release_thrice(Mechanism(BUDGET, ledger, "films", store=full), contribution)
    paid = spends(ledger)
    assert len(paid) == 3
    with Mechanism(BUDGET, ledger, "films", store=store) as mechanism:
        release_thrice(mechanism, contribution)
    assert spends(ledger) == paid
    assert ledger.spent("films") == sum(paid) == mechanism.spent


def test_numbers_leave_only_once_they_are_recorded_as_published(contribution):
    ledger, store = Ledger(), Memory()
    ledger.publish = lambda *_: (_ for _ in ()).throw(OSError("crash"))
    with pytest.raises(OSError, match="crash"):
        Mechanism(BUDGET, ledger, "films", store=store).release(counts(), contribution, BUDGET.cost)
    del ledger.publish
    released = Mechanism(BUDGET, ledger, "films", store=store).release(counts(), contribution, BUDGET.cost)
    record, kept = store.tables[1]
    assert np.array_equal(released, kept * record.step)
    assert ledger.published("run/1") is not None


def test_published_numbers_that_were_lost_are_not_drawn_again(contribution, interrupted, monkeypatch):
    ledger, store, _ = interrupted
    del store.tables[2]

    def forbidden(*_):
        raise AssertionError("a second table was drawn under one spend")

    monkeypatch.setattr(NoiseStream, "words", forbidden)
    paid = ledger.spent("films")
    with pytest.raises(RuntimeError, match="no longer stored: start over"):
        release_thrice(Mechanism(BUDGET, ledger, "films", store=store), contribution)
    assert ledger.spent("films") == paid


def test_one_spend_never_stands_for_two_tables(contribution, interrupted):
    """Two copies of a checkpoint, both interrupted after the spend: the slower one may not publish."""
    ledger, store, _ = interrupted
    copies = [Memory(), Memory()]
    for copy in copies:
        copy.tables = dict(store.tables)
    release_thrice(Mechanism(BUDGET, ledger, "films", store=copies[0]), contribution)
    unaware = Mechanism(BUDGET, ledger, "films", store=copies[1])
    unaware.ledger.published, published = (lambda _: None), ledger.published
    with pytest.raises(RuntimeError, match="other numbers were published"):
        release_thrice(unaware, contribution)
    assert published("run/3") is not None
    assert sorted(copies[1].tables) == [1, 2]


def test_threads_with_a_keeper_take_turns(contribution):
    ledger, store = Ledger(), Memory()
    with ThreadPoolExecutor(4) as pool, Mechanism(BUDGET, ledger, "films", store=store) as mechanism:
        tables = list(pool.map(lambda _: mechanism.release(counts(), contribution, BUDGET.cost // 4), range(4)))
    assert len({table.tobytes() for table in tables}) == 4 == len(store.tables)
    assert ledger.spent("films") == mechanism.spent
    kept = {(table * record.step).tobytes() for record, table in store.tables.values()}
    assert kept == {table.tobytes() for table in tables}


def test_a_run_that_is_paid_for_goes_on_whatever_was_spent_since(contribution, interrupted):
    ledger, store, _ = interrupted
    release_thrice(Mechanism(BUDGET, ledger, "films", store=store), contribution)
    ledger.declare("films", 0.1, 1e-5)
    release_thrice(Mechanism(BUDGET, ledger, "films", store=store), contribution)


def test_a_run_that_the_ledger_cannot_pay_for_as_a_whole_spends_nothing(contribution):
    ledger = Ledger()
    ledger.declare("films", BUDGET.epsilon, BUDGET.delta)
    ledger.spend("films", "last month", BUDGET.cost // 2)
    with pytest.raises(PrivacyBudgetExceeded, match=r"training with epsilon 1 and delta 1e-05"):
        Mechanism(BUDGET, ledger, "films").release(counts(), contribution, BUDGET.cost // 4)
    assert ledger.spent("films") == BUDGET.cost // 2


def test_a_quiet_mechanism_logs_nothing(contribution, caplog):
    with caplog.at_level("DEBUG"):
        Mechanism(BUDGET, quiet=True).release(counts(), contribution, BUDGET.cost)
        assert not caplog.records
        Mechanism(BUDGET).release(counts(), contribution, BUDGET.cost)
        assert "released counts" in caplog.text


class TestReservation:
    """A run holds its whole budget from its first release until it ends."""

    def test_is_made_before_the_data_is_looked_at(self, contribution):
        ledger, held = Ledger(), []

        def contributions():
            held.append(ledger.spent("films"))
            yield contribution

        Mechanism(BUDGET, ledger, "films").release(counts(), contributions(), BUDGET.cost // 3)
        assert held == [BUDGET.cost]

    def test_the_second_of_two_runs_at_once_is_refused_and_the_first_one_finishes(self, contribution):
        ledger = Ledger()
        ledger.declare("films", 1.3, 1e-5)
        with Mechanism(BUDGET, ledger, "films") as first:
            first.release(counts(), contribution, BUDGET.cost // 3)
            with (
                pytest.raises(PrivacyBudgetExceeded, match="Runs that have not ended hold"),
                Mechanism(BUDGET, ledger, "films") as second,
            ):
                second.release(counts(), contribution, BUDGET.cost // 3)
            for _ in range(2):
                first.release(counts(), contribution, BUDGET.cost // 3)
        assert second.releases == []
        assert ledger.spent("films") == first.spent

    @pytest.mark.parametrize("problem", [None, ValueError, KeyboardInterrupt])
    def test_what_is_left_is_refunded_whatever_ends_the_run(self, contribution, problem):
        ledger = Ledger()
        with contextlib.suppress(*[problem] if problem else []), Mechanism(BUDGET, ledger, "films") as mechanism:
            mechanism.release(counts(), contribution, BUDGET.cost // 3)
            assert ledger.spent("films") == BUDGET.cost
            if problem:
                raise problem
        assert ledger.spent("films") == mechanism.spent < 0.4 * BUDGET.cost
        assert ledger.open_runs() == []

    def test_nothing_is_refunded_of_adaptive_costs_unless_nothing_was_spent(self, contribution):
        ledger = Ledger()
        with Mechanism(BUDGET, ledger, "films", adaptive=True) as mechanism:
            mechanism.release(counts(), contribution, BUDGET.cost // 3)
        assert ledger.spent("films") == BUDGET.cost
        with contextlib.suppress(ValueError), Mechanism(BUDGET, ledger, "films", adaptive=True) as mechanism:
            mechanism.release(counts(), Contribution(contribution.pattern, np.full(4 * N_USERS, np.nan)), BUDGET.cost)
        assert ledger.spent("films") == BUDGET.cost

    def test_a_run_that_can_be_resumed_keeps_it_when_it_is_interrupted(self, contribution):
        ledger, store = Ledger(), Memory()
        with contextlib.suppress(ValueError), Mechanism(BUDGET, ledger, "films", store=store) as mechanism:
            mechanism.release(counts(), contribution, BUDGET.cost // 3)
            raise ValueError
        assert [run.name for run in ledger.open_runs()] == [store.run]
        with contextlib.suppress(ValueError), Mechanism(BUDGET, ledger, "films", store=store):
            raise ValueError("before anything was recalled")
        assert ledger.spent("films") == BUDGET.cost
        with Mechanism(BUDGET, ledger, "films", store=store) as mechanism:
            release_thrice(mechanism, contribution)
        assert ledger.spent("films") == mechanism.spent
        assert ledger.open_runs() == []

    def test_a_run_that_spent_nothing_has_nothing_to_resume(self, contribution):
        ledger = Ledger()
        with (
            pytest.raises(ValueError, match="finite"),
            Mechanism(BUDGET, ledger, "films", store=Memory()) as mechanism,
        ):
            mechanism.release(counts(), Contribution(contribution.pattern, np.full(4 * N_USERS, np.nan)), BUDGET.cost)
        assert ledger.spent("films") == 0

    def test_a_run_that_was_released_must_reserve_again_to_go_on(self, contribution, interrupted):
        ledger, store, first = interrupted
        ledger.end(store.run)
        ledger.spend("films", "meanwhile", BUDGET.cost // 3)
        mechanism = Mechanism(BUDGET, ledger, "films", store=store)
        assert np.array_equal(mechanism.release(counts(), contribution, BUDGET.cost // 3), first[0]), "that is paid for"
        mechanism.release(counts(), contribution, BUDGET.cost // 3)
        with pytest.raises(PrivacyBudgetExceeded):
            mechanism.release(counts(), contribution, BUDGET.cost // 3)
        assert ledger.spent("films") <= BUDGET.cost

    def test_a_run_that_has_ended_is_recalled_for_nothing(self, contribution, interrupted):
        ledger, store, _ = interrupted
        with Mechanism(BUDGET, ledger, "films", store=store) as mechanism:
            release_thrice(mechanism, contribution)
        ledger.declare("films", 0.1, 1e-5)
        with Mechanism(BUDGET, ledger, "films", store=store) as mechanism:
            release_thrice(mechanism, contribution)
        assert ledger.spent("films") == mechanism.spent

    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_a_child_does_not_end_the_run_of_its_parent(self, contribution, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        with Mechanism(BUDGET, ledger, "films") as mechanism:
            mechanism.release(counts(), contribution, BUDGET.cost // 3)
            child = os.fork()
            if child == 0:
                mechanism.close()
                os._exit(0)
            os.waitpid(child, 0)
            assert ledger.spent("films") == BUDGET.cost
        assert ledger.spent("films") == mechanism.spent

    def test_what_ended_the_run_is_heard_of_even_if_the_ledger_is_gone(self, contribution, tmp_path, caplog):
        def failing_run():
            with Mechanism(BUDGET, Ledger(tmp_path / "ledger.db"), "films") as mechanism:
                mechanism.release(counts(), contribution, BUDGET.cost // 3)
                (tmp_path / "ledger.db").unlink()
                raise KeyError

        with pytest.raises(KeyError):
            failing_run()
        assert "was not refunded" in caplog.text
