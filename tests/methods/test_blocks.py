"""Users in blocks: how many blocks there are and in what order changes no bit of what a method releases or learns."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from tests.methods.every_method import PRIVATE_PAIRS, data, make

import dpals
from dpals.data.population import MemoryBlock, PartOfPopulation
from dpals.errors import InputError

IN_MEMORY_ONLY = ["StagewiseALS", "TraceNorm"]


@dataclass(frozen=True, eq=False)
class InBlocks(PartOfPopulation):
    """Ratings cut into blocks of whole users, in another order than the users'."""

    whole: dpals.Ratings
    function: None = None
    public: int = 1

    @property
    def blocks(self):
        places = np.random.default_rng(5).integers(self.public, size=self.whole.n_users)
        return [MemoryBlock(self.whole.take_users(places == k), name=str(k)) for k in reversed(range(self.public))]


def bits(name, population, threads=None):
    """What a run learns, which follows from all that it releases."""
    model = make(name).fit(population, options=dpals.Options(threads=threads)).model_
    return model.item_factors.tobytes(), model.item_biases.tobytes(), model.global_mean


@cache
def from_memory(name, implicit):
    return bits(name, data(implicit))


@pytest.mark.parametrize(("n_blocks", "threads"), [(1, 4), (7, 2), (64, 1), (64, 4)])
@pytest.mark.parametrize(("name", "implicit"), PRIVATE_PAIRS)
def test_any_blocks_and_threads_give_the_same_bits(name, implicit, n_blocks, threads):
    assert bits(name, InBlocks(data(implicit), public=n_blocks), threads) == from_memory(name, implicit)


@pytest.mark.slow
def test_one_user_with_a_million_ratings_changes_no_bit():
    """The user is more than half of everything, and alone in a block that is larger than all others."""
    n_items, few = 1_000_000, np.arange(0, 1_000_000, 10)
    users = np.concatenate([np.zeros(n_items, int), 1 + np.arange(len(few)) % 500])
    items = np.concatenate([np.arange(n_items), few])
    values = 1 + (np.arange(len(items)) * 7919 % 9) / 2
    ratings = dpals.Ratings.from_arrays(users, items, values, rating_range=(1, 5), catalogue=range(n_items))
    whole = bits("PooledDPALS", ratings, 2)
    assert bits("PooledDPALS", InBlocks(ratings, public=7), 2) == whole
    assert bits("PooledDPALS", InBlocks(ratings, public=64), 1) == whole


def test_blocks_without_users_add_nothing():
    few = data().take_users(slice(0, 3))
    assert bits("ItemMean", InBlocks(few, public=9)) == bits("ItemMean", few)


@pytest.mark.parametrize("name", IN_MEMORY_ONLY)
def test_methods_that_need_the_whole_matrix_say_so(name):
    with pytest.raises(InputError, match=f"{name} needs all ratings in memory"):
        make(name).fit(InBlocks(data(), public=2))


def test_frank_wolfe_without_privacy_needs_the_whole_matrix_too():
    with pytest.raises(InputError, match="DPFrankWolfe needs all ratings in memory"):
        make("DPFrankWolfe", epsilon=None).fit(InBlocks(data(), public=2))


def test_the_ledger_knows_the_users_of_blocks(caplog, tmp_path):
    ledger = dpals.Ledger(tmp_path / "ledger.sqlite")
    make("ItemMean").fit(data(), ledger=ledger, dataset="one")
    make("ItemMean").fit(InBlocks(data(), public=3), ledger=ledger, dataset="another")
    assert "one" in caplog.text


def test_nothing_of_a_run_stays_with_the_ratings():
    ratings = data(n_users=50)
    make("PooledDPALS").fit(ratings)
    assert not ratings.memory
