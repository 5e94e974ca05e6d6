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

from dpals.release import mechanism
from dpals.release.accounting import Budget, PrivacyBudgetExceeded, compose
from dpals.release.contribution import Offer, Pattern, Query
from dpals.release.ledger import Ledger
from dpals.release.mechanism import Door
from dpals.release.randomness import NoiseStream

BUDGET = Budget(epsilon=1.0, delta=1e-5)
N_USERS, N_ITEMS = 200, 4_000


@pytest.fixture
def offer():
    rng = np.random.default_rng(3)
    items = np.sort(np.argsort(rng.random((N_USERS, N_ITEMS)), axis=1)[:, :4], axis=1)
    return Offer(Pattern(np.arange(N_USERS + 1) * 4, items.ravel(), N_ITEMS), np.full(4 * N_USERS, 0.5))


def counts(bound=1.0):
    return Query("counts", N_ITEMS, bound=bound)


def test_publishes_the_sum_plus_noise_of_the_stated_size(offer):
    door = Door(BUDGET)
    published = door.release(counts(), offer, BUDGET.cost)[:, 0]
    truth = 0.5 * np.bincount(offer.pattern.items, minlength=N_ITEMS)
    noise = (published - truth) / door.releases[0].sigma
    assert stats.kstest(noise, "norm").pvalue > 1e-6
    assert door.releases[0].sigma == pytest.approx(1 / BUDGET.mu, rel=1e-6)


def test_the_matrix_form_has_less_noise_off_the_diagonal():
    """sigma on the diagonal, sigma / sqrt(2) off it."""
    door = Door(BUDGET)
    query = Query("matrices", N_ITEMS, bound=1.0, form="symmetric", dimension=3)
    empty = Offer(Pattern([0], [], N_ITEMS), np.empty(0), np.empty((0, 3)))
    published = door.release(query, empty, BUDGET.cost) / door.releases[0].sigma
    spread = published.std(axis=0)
    diagonal = [0, 3, 5]
    np.testing.assert_allclose(spread[diagonal], 1, rtol=0.07)
    np.testing.assert_allclose(np.delete(spread, diagonal), np.sqrt(0.5), rtol=0.07)


def test_published_numbers_are_integers_of_the_grid(offer):
    """Noise is added to integers, so that no float rounding depends on the data."""
    door = Door(BUDGET)
    published = door.release(counts(bound=0.7), offer, BUDGET.cost)
    steps = np.round(published / door.releases[0].step)
    assert np.array_equal(published, steps * door.releases[0].step)
    assert np.abs(steps).max() > 2**25, "the grid is fine against the noise"


def test_two_releases_of_the_same_query_have_independent_noise(offer):
    door = Door(BUDGET)
    half, other_half = BUDGET.split(1, 1)
    first = door.release(counts(), offer, half)[:, 0]
    second = door.release(counts(), offer, other_half)[:, 0]
    sigma = door.releases[0].sigma
    assert stats.kstest((first - second) / (sigma * np.sqrt(2)), "norm").pvalue > 1e-6
    truth = 0.5 * np.bincount(offer.pattern.items, minlength=N_ITEMS)
    assert abs(np.corrcoef(first - truth, second - truth)[0, 1]) < 6 / np.sqrt(N_ITEMS)


def test_each_release_draws_from_a_stream_of_its_own(offer, monkeypatch):
    streams = []

    class Watched(NoiseStream):
        def __init__(self):
            super().__init__()
            streams.append(self)

    monkeypatch.setattr(mechanism, "NoiseStream", Watched)
    door = Door(BUDGET)
    for cost in BUDGET.split(1, 1, 1):
        door.release(counts(), offer, cost)
    assert len(streams) == 3


def test_the_spend_is_recorded_before_the_first_random_bit(offer, monkeypatch):
    ledger = Ledger()
    seen = []

    class Watched(NoiseStream):
        def words(self, count):
            seen.append(ledger.spent("films"))
            return super().words(count)

    monkeypatch.setattr(mechanism, "NoiseStream", Watched)
    door = Door(BUDGET, ledger, "films")
    door.release(counts(), offer, BUDGET.cost)
    assert set(seen) == {door.releases[0].cost}


def test_no_noise_is_drawn_where_the_ledger_refuses(offer, monkeypatch):
    ledger = Ledger()
    ledger.declare("films", epsilon=0.1, delta=1e-5)

    def forbidden(*_):
        raise AssertionError("noise was drawn for a release that was not paid for")

    monkeypatch.setattr(NoiseStream, "words", forbidden)
    door = Door(BUDGET, ledger, "films")
    with pytest.raises(PrivacyBudgetExceeded, match="films"):
        door.release(counts(), offer, BUDGET.cost)
    assert door.releases == []
    assert ledger.spent("films") == 0


def test_a_run_cannot_exceed_its_own_budget(offer):
    door = Door(BUDGET)
    shares = BUDGET.split(*[1] * 7)
    for share in shares:
        door.release(counts(), offer, share)
    assert door.spent <= BUDGET.cost
    assert compose(release.mu for release in door.releases) == pytest.approx(BUDGET.mu, rel=1e-6)
    with pytest.raises(PrivacyBudgetExceeded, match="nothing was spent"):
        door.release(counts(), offer, shares[0])
    assert door.ledger.spent("ratings") == door.spent


def test_the_budget_ends_at_the_last_unit(offer):
    door = Door(BUDGET)
    door.release(counts(), offer, BUDGET.cost)
    left = BUDGET.cost - door.spent
    with pytest.raises(PrivacyBudgetExceeded):
        door.release(counts(), offer, left + 1)


def test_a_release_inside_another_cannot_exceed_the_budget(offer):
    door = Door(BUDGET)

    def offers():
        door.release(counts(), offer, BUDGET.cost)
        yield offer

    with pytest.raises(PrivacyBudgetExceeded):
        door.release(counts(), offers(), BUDGET.cost)
    assert door.spent <= BUDGET.cost


def test_threads_cannot_exceed_the_budget_together(offer):
    door = Door(BUDGET)
    share = BUDGET.split(1, 1)[0]

    def spend():
        with contextlib.suppress(PrivacyBudgetExceeded):
            door.release(counts(), offer, share)

    threads = [threading.Thread(target=spend) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(door.releases) == 2
    assert door.ledger.spent("ratings") == door.spent <= BUDGET.cost


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_door_dies_on_fork(offer):
    door = Door(BUDGET)
    child = os.fork()
    if child == 0:
        try:
            door.release(counts(), offer, BUDGET.cost)
            os._exit(0)
        except RuntimeError as refusal:
            os._exit(7 if "survive a fork" in str(refusal) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_each_coordinate_has_the_noise_of_its_weight():
    door = Door(BUDGET)
    query = Query("weighted", N_ITEMS, bound=1.0, form="vector", dimension=3, weights=(1, 4, 9))
    published = door.release(query, [], BUDGET.cost) / door.releases[0].sigma
    np.testing.assert_allclose(published.std(axis=0), [1, 1 / 2, 1 / 3], rtol=0.07)


KILLED = """
import sys
from pathlib import Path
import numpy as np
from dpals.release.accounting import Budget
from dpals.release.contribution import Query
from dpals.release.ledger import Ledger
from dpals.release.mechanism import Door
budget = Budget(1000.0, 1e-5)
door = Door(budget, Ledger(sys.argv[1]), "films")
while True:
    door.release(Query("counts", 3, bound=1.0), [], budget.cost // 10**9)
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
        assert len(Ledger(path).entries()) >= published


def test_blocks_of_users_give_the_same_result_as_one(offer):
    whole = Door(BUDGET, insecure_seed=1).release(counts(), offer, BUDGET.cost)
    pattern = offer.pattern
    half = N_USERS // 2
    blocks = [
        Offer(
            Pattern(pattern.indptr[a : b + 1] - pattern.indptr[a], pattern.items[4 * a : 4 * b], N_ITEMS, a),
            offer.coefficients[4 * a : 4 * b],
        )
        for a, b in [(half, N_USERS), (0, half)]
    ]
    assert np.array_equal(whole, Door(BUDGET, insecure_seed=1).release(counts(), iter(blocks), BUDGET.cost))


def users_from(first, stop):
    size = stop - first
    return Offer(Pattern(np.arange(size + 1), np.zeros(size), N_ITEMS, first), np.ones(size))


@pytest.mark.parametrize("blocks", [[(0, 3), (0, 3)], [(0, 3), (3, 6), (0, 3)], [(0, 3), (2, 5)], [(2, 5), (0, 3)]])
def test_a_user_in_two_blocks_is_refused(blocks):
    door = Door(BUDGET)
    with pytest.raises(ValueError, match="offered twice"):
        door.release(counts(), [users_from(*block) for block in blocks], BUDGET.cost)
    assert door.spent == door.ledger.spent("ratings") == 0


def test_bad_offers_spend_nothing(offer):
    door = Door(BUDGET)
    bad = Offer(offer.pattern, np.full(4 * N_USERS, np.nan))
    with pytest.raises(ValueError, match="finite"):
        door.release(counts(), bad, BUDGET.cost)
    assert door.spent == door.ledger.spent("ratings") == 0


def test_nobody_is_released_with_noise_and_a_bound_of_zero_is_free(offer):
    door = Door(BUDGET)
    nothing = door.release(counts(), [], BUDGET.split(1, 1)[0])
    assert nothing.std() == pytest.approx(door.releases[0].sigma, rel=0.1)
    door.release(counts(bound=0.0), offer, BUDGET.split(1, 1)[0])
    assert door.releases[1].cost == 0


@pytest.mark.parametrize("cost", [0, -1, 1e15, np.int64(10**15), float("nan")])
def test_a_release_without_a_proper_cost_is_refused(offer, cost):
    with pytest.raises(ValueError, match="positive integer as its cost"):
        Door(BUDGET).release(counts(), offer, cost)


def test_the_smallest_cost_still_works(offer):
    door = Door(BUDGET)
    published = door.release(counts(), offer, cost=1)
    assert door.releases[0].cost <= 1
    assert published.std() > 2**31
    assert door.releases[0].variance <= 2**80


def test_seeded_noise_repeats(offer):
    first, second = (Door(BUDGET, insecure_seed=9).release(counts(), offer, BUDGET.cost) for _ in range(2))
    fresh = [Door(BUDGET).release(counts(), offer, BUDGET.cost) for _ in range(2)]
    assert np.array_equal(first, second)
    assert not np.array_equal(*fresh)


class Memory:
    """The simplest keeper there is."""

    run = "run"

    def __init__(self):
        self.tables = {}

    def recall(self, number, record):
        kept = self.tables.get(number)
        assert kept is None or kept[0] == record
        return None if kept is None else kept[1].copy()

    def keep(self, number, record, table):
        assert number not in self.tables
        self.tables[number] = record, table.copy()

    def drop(self, number):
        del self.tables[number]


def release_thrice(door, offer):
    return [door.release(counts(), offer, BUDGET.cost // 3) for _ in range(3)]


@pytest.fixture
def interrupted(offer):
    """The ledger, keeper and numbers of a run that was broken off before its third release."""
    ledger, keeper = Ledger(), Memory()
    ledger.declare("films", BUDGET.epsilon, BUDGET.delta)
    door = Door(BUDGET, ledger, "films", keeper=keeper)
    first = [door.release(counts(), offer, BUDGET.cost // 3) for _ in range(2)]
    return ledger, keeper, first


def test_a_resumed_run_gives_the_same_numbers_and_pays_once(offer, interrupted):
    ledger, keeper, first = interrupted
    door = Door(BUDGET, ledger, "films", keeper=keeper)
    again = release_thrice(door, offer)
    assert np.array_equal(again[0], first[0])
    assert np.array_equal(again[1], first[1])
    assert not np.array_equal(again[2], first[1])
    assert ledger.spent("films") == door.spent <= BUDGET.cost
    assert len(door.releases) == 3


def test_a_release_that_was_paid_but_never_published_is_not_paid_again(offer, interrupted):
    """As after a crash between the spend and the moment at which the numbers are safe."""
    ledger, keeper, _ = interrupted

    class Full(Memory):
        def keep(self, *_):
            raise OSError("no space left")

    full = Full()
    full.tables = keeper.tables
    with pytest.raises(OSError, match="no space"):
        release_thrice(Door(BUDGET, ledger, "films", keeper=full), offer)
    paid = ledger.spent("films")
    assert paid > 0.99 * BUDGET.cost
    door = Door(BUDGET, ledger, "films", keeper=keeper)
    release_thrice(door, offer)
    assert ledger.spent("films") == paid == door.spent


def test_numbers_leave_only_once_they_are_recorded_as_published(offer):
    ledger, keeper = Ledger(), Memory()
    ledger.publish = lambda *_: (_ for _ in ()).throw(OSError("crash"))
    with pytest.raises(OSError, match="crash"):
        Door(BUDGET, ledger, "films", keeper=keeper).release(counts(), offer, BUDGET.cost)
    del ledger.publish
    released = Door(BUDGET, ledger, "films", keeper=keeper).release(counts(), offer, BUDGET.cost)
    record, kept = keeper.tables[1]
    assert np.array_equal(released, kept * record.step)
    assert ledger.published("run/1") is not None


def test_published_numbers_that_were_lost_are_not_drawn_again(offer, interrupted, monkeypatch):
    ledger, keeper, _ = interrupted
    del keeper.tables[2]

    def forbidden(*_):
        raise AssertionError("a second table was drawn under one spend")

    monkeypatch.setattr(NoiseStream, "words", forbidden)
    paid = ledger.spent("films")
    with pytest.raises(RuntimeError, match="no longer kept: start over"):
        release_thrice(Door(BUDGET, ledger, "films", keeper=keeper), offer)
    assert ledger.spent("films") == paid


def test_one_spend_never_stands_for_two_tables(offer, interrupted):
    """Two copies of a checkpoint, both broken off after the spend: the slower one may not publish."""
    ledger, keeper, _ = interrupted
    copies = [Memory(), Memory()]
    for copy in copies:
        copy.tables = dict(keeper.tables)
    release_thrice(Door(BUDGET, ledger, "films", keeper=copies[0]), offer)
    unaware = Door(BUDGET, ledger, "films", keeper=copies[1])
    unaware.ledger.published, published = (lambda _: None), ledger.published
    with pytest.raises(RuntimeError, match="other numbers were published"):
        release_thrice(unaware, offer)
    assert published("run/3") is not None
    assert sorted(copies[1].tables) == [1, 2]


def test_threads_with_a_keeper_take_turns(offer):
    ledger, keeper = Ledger(), Memory()
    door = Door(BUDGET, ledger, "films", keeper=keeper)
    with ThreadPoolExecutor(4) as pool:
        tables = list(pool.map(lambda _: door.release(counts(), offer, BUDGET.cost // 4), range(4)))
    assert len({table.tobytes() for table in tables}) == 4 == len(keeper.tables)
    assert ledger.spent("films") == door.spent
    kept = {(table * record.step).tobytes() for record, table in keeper.tables.values()}
    assert kept == {table.tobytes() for table in tables}


def test_a_run_that_is_paid_for_goes_on_whatever_was_spent_since(offer, interrupted):
    ledger, keeper, _ = interrupted
    release_thrice(Door(BUDGET, ledger, "films", keeper=keeper), offer)
    ledger.declare("films", 0.1, 1e-5)
    release_thrice(Door(BUDGET, ledger, "films", keeper=keeper), offer)


def test_a_run_that_the_ledger_cannot_pay_for_as_a_whole_spends_nothing(offer):
    ledger = Ledger()
    ledger.declare("films", BUDGET.epsilon, BUDGET.delta)
    ledger.spend("films", "last month", BUDGET.cost // 2)
    with pytest.raises(PrivacyBudgetExceeded, match=r"training with epsilon 1 and delta 1e-05"):
        Door(BUDGET, ledger, "films").release(counts(), offer, BUDGET.cost // 4)
    assert ledger.spent("films") == BUDGET.cost // 2


def test_a_quiet_door_logs_nothing(offer, caplog):
    with caplog.at_level("DEBUG"):
        Door(BUDGET, quiet=True).release(counts(), offer, BUDGET.cost)
        assert not caplog.records
        Door(BUDGET).release(counts(), offer, BUDGET.cost)
        assert "released counts" in caplog.text
