"""One pass over blocks of users: the same bits for any blocks, each of which counts exactly once."""

import pickle
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest

import dpals
from dpals.engines.local import LocalEngine
from dpals.kernels.target import target
from dpals.ledger.ledger import Ledger
from dpals.private.means import mean_contribution, weight_contribution
from dpals.release.accounting import Budget, PrivacyBudgetExceeded
from dpals.release.contribution import Contribution, Grid, Pattern, Query
from dpals.release.mechanism import Mechanism
from dpals.release.passes import Pass, PassRefused, Receipt

N_USERS, N_ITEMS = 60, 12
BUDGET = Budget(2.0, 1e-5)
COUNT, MEAN = Query("weights", N_ITEMS, 1.0), Query("mean", 1, 3.0, "vector", 2)


@dataclass(frozen=True)
class Part:
    ratings: dpals.Ratings
    name: str

    def open(self):
        return self.ratings


@dataclass(frozen=True)
class Parts:
    blocks: tuple[Part, ...]


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(5)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < 0.5)
    values = rng.choice([1.0, 2.5, 5.0], len(users))
    return dpals.Ratings.from_arrays(users, items, values, rating_range=(1, 5), catalogue=range(N_ITEMS))


def parts_of(ratings, number):
    edges = np.linspace(0, ratings.n_users, number + 1).astype(int)
    slices = [ratings.take_users(slice(*ends)) for ends in pairwise(edges)]
    return Parts(tuple(Part(part, f"part {k}") for k, part in enumerate(slices)))


def weight_and_mean(ratings, _):
    return weight_contribution(ratings), mean_contribution(ratings)


def released(population, **arguments):
    mechanism = Mechanism(BUDGET, insecure_seed=4, **arguments)
    queries = [(COUNT, BUDGET.cost // 3), (MEAN, BUDGET.cost // 2)]
    return mechanism.release_together(population, weight_and_mean, None, queries), mechanism


@pytest.mark.parametrize("number", [1, 2, 7, N_USERS])
def test_any_blocks_in_any_order_give_the_same_bits(ratings, number):
    blocks = parts_of(ratings, number).blocks
    expected, _ = released(ratings)
    for population in (Parts(blocks), Parts(blocks[::-1])):
        for table, same in zip(expected, released(population)[0], strict=True):
            assert np.array_equal(table, same)


def test_releases_of_one_pass_are_those_made_one_by_one(ratings):
    """The same noise, the same costs, the same records."""
    together, mechanism = released(ratings)
    single = Mechanism(BUDGET, insecure_seed=4)
    counts = single.release(COUNT, weight_contribution(ratings), BUDGET.cost // 3)
    mean = single.release(MEAN, mean_contribution(ratings), BUDGET.cost // 2)
    assert np.array_equal(together[0], counts)
    assert np.array_equal(together[1], mean)
    assert mechanism.releases == single.releases


def test_there_is_one_pass_for_all_releases(ratings):
    opened = []

    class Watched(Part):
        def open(self):
            opened.append(self.name)
            return self.ratings

    released(Parts((Watched(ratings, "only"),)))
    assert opened == ["only"]


class Dishonest:
    """An engine that tells something else about the blocks than what it did."""

    def __init__(self, change):
        self.change = change

    def run(self, work, blocks):
        tables, receipts = LocalEngine().run(work, blocks)
        return tables, self.change(receipts)


@pytest.mark.parametrize(
    "change",
    [
        lambda receipts: receipts[1:],
        lambda receipts: [*receipts, receipts[0]],
        lambda receipts: [receipts[1], *receipts[1:]],
        lambda receipts: [Receipt("forged", 20, target()), *receipts[1:]],
        lambda receipts: [receipts[0]._replace(n_users=2**33), *receipts[1:]],
        lambda receipts: [receipts[0]._replace(target=replace(target(), numba="0.1")), *receipts[1:]],
        lambda receipts: [r._replace(target=replace(target(), family="arm64, little endian")) for r in receipts],
    ],
    ids=[
        "missing",
        "twice",
        "in place of another",
        "unknown",
        "too many users",
        "another version",
        "all from another processor",
    ],
)
def test_a_pass_over_other_blocks_is_refused_and_nothing_is_spent(ratings, change):
    ledger = Ledger()
    mechanism = Mechanism(BUDGET, ledger, engine=Dishonest(change))
    with pytest.raises(PassRefused, match="nothing was spent"):
        mechanism.release_together(parts_of(ratings, 3), weight_contribution, None, [(COUNT, BUDGET.cost)])
    mechanism.close()
    assert mechanism.releases == []
    assert ledger.spent("ratings") == 0


def test_a_population_with_the_same_block_twice_is_refused(ratings):
    part = parts_of(ratings, 3).blocks[0]
    with pytest.raises(PassRefused):
        released(Parts((part, part)))


def test_releases_that_cannot_be_paid_together_are_refused_before_the_pass(ratings):
    mechanism = Mechanism(BUDGET)

    def never(*_):
        pytest.fail("a pass that cannot be paid was made")

    queries = [(COUNT, BUDGET.cost * 2 // 3), (MEAN, BUDGET.cost * 2 // 3)]
    with pytest.raises(PrivacyBudgetExceeded, match=r"'weights' and 'mean' would bring"):
        mechanism.release_together(ratings, never, None, queries)
    assert mechanism.spent == 0


def test_a_function_must_give_one_contribution_for_each_query(ratings):
    mechanism = Mechanism(BUDGET)
    with pytest.raises(ValueError, match="zip"):
        mechanism.release_together(ratings, weight_and_mean, None, [(COUNT, BUDGET.cost // 3)])
    assert mechanism.spent == 0


def test_nobody_contributes_twice_in_one_block(ratings):
    def overlapping(*_):
        first, second = (Pattern.one_item(40, start) for start in (0, 20))
        return (iter([Contribution(first, np.ones(40)), Contribution(second, np.ones(40))]),)

    mechanism = Mechanism(BUDGET)
    with pytest.raises(ValueError, match="contribute twice"):
        mechanism.release_together(ratings, overlapping, None, [(Query("users", 1, 1.0), BUDGET.cost)])
    assert mechanism.spent == 0


def test_a_pass_can_be_sent_to_another_process(ratings):
    work = Pass(weight_and_mean, None, (COUNT, MEAN), (Grid.of(COUNT, 20), Grid.of(MEAN, 20)))
    sent = pickle.loads(pickle.dumps(work))
    here, there = LocalEngine().run(work, ratings.blocks), LocalEngine().run(sent, ratings.blocks)
    assert here[1] == there[1] == [Receipt("memory 0", N_USERS, target())]
    for table, same in zip(here[0], there[0], strict=True):
        assert table.any()
        assert np.array_equal(table, same)


class Store:
    """Keeps tables in memory and can lose one."""

    run = "a run of its own"

    def __init__(self):
        self.tables = {}

    def load(self, number, _):
        return self.tables.get(number)

    def save(self, number, _, table):
        self.tables[number] = table.copy()

    def discard(self, number):
        del self.tables[number]


def test_an_interrupted_pass_draws_only_what_is_missing(ratings):
    store, ledger = Store(), Ledger()
    queries = [(COUNT, BUDGET.cost // 3), (MEAN, BUDGET.cost // 2)]

    class Stops(Mechanism):
        def _draw(self, sums, query, record, receipt=""):
            if query is MEAN:
                raise KeyboardInterrupt
            return super()._draw(sums, query, record, receipt)

    first = Stops(BUDGET, ledger, store=store)
    with pytest.raises(KeyboardInterrupt):
        first.release_together(ratings, weight_and_mean, None, queries)
    again = Mechanism(BUDGET, ledger, store=store)
    counts, mean = again.release_together(ratings, weight_and_mean, None, queries)
    assert np.array_equal(counts, store.tables[1] * again.releases[0].step)
    assert np.array_equal(mean, store.tables[2] * again.releases[1].step)

    def never(*_):
        pytest.fail("everything was released before, and yet there was a pass")

    same = Mechanism(BUDGET, ledger, store=store).release_together(ratings, never, None, queries)
    assert np.array_equal(same[0], counts)
    assert np.array_equal(same[1], mean)


class Changed:
    """An engine that changes the tables after adding them up, and keeps what it returned."""

    def __init__(self, change):
        self.change = change

    def run(self, work, blocks):
        tables, receipts = LocalEngine().run(work, blocks)
        self.returned = self.change(tables)
        self.before = [table.copy() for table in self.returned]
        return self.returned, receipts


@pytest.mark.parametrize(
    "change",
    [
        lambda tables: [table / 3 for table in tables],
        lambda tables: [table.astype(np.int32) for table in tables],
        lambda tables: [table[:-1] for table in tables],
        lambda tables: tables[:-1],
    ],
    ids=["decimals", "small integers", "a row less", "a table less"],
)
def test_tables_that_are_not_those_of_the_pass_are_refused(ratings, change):
    mechanism = Mechanism(Budget(1.0, 1e-6), engine=Changed(change))
    with pytest.raises(PassRefused, match="nothing was spent"):
        mechanism.release_together(ratings, weight_and_mean, None, [(COUNT, 10**15), (MEAN, 10**15)])
    assert mechanism.spent == 0


def test_an_engine_never_sees_the_noise(ratings):
    engine = Changed(list)
    mechanism = Mechanism(Budget(1.0, 1e-6), engine=engine)
    mechanism.release_together(ratings, weight_and_mean, None, [(COUNT, 10**15), (MEAN, 10**15)])
    assert all(np.array_equal(*pair) for pair in zip(engine.returned, engine.before, strict=True))
