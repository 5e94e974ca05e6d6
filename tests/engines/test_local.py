import threading

import numpy as np
import pytest

import dpals
from dpals.engines import local
from dpals.engines.local import LocalEngine
from dpals.kernels.threads import limited_threads
from dpals.private.means import weight_contribution
from dpals.release.contribution import Grid, Query
from dpals.release.passes import Pass

N_ITEMS = 40


class Part:
    """A block of one user with one item, which counts how many blocks are open at once."""

    lock = threading.Lock()
    open_now = 0
    most = 0

    def __init__(self, number):
        self.name, self.number = f"part {number}", number

    def open(self):
        with Part.lock:
            Part.open_now += 1
            Part.most = max(Part.most, Part.open_now)
        return dpals.Ratings.from_arrays([self.number], [self.number % N_ITEMS], catalogue=range(N_ITEMS))


def counted(ratings, _):
    with Part.lock:
        Part.open_now -= 1
    return weight_contribution(ratings)


@pytest.fixture(autouse=True)
def none_open():
    Part.open_now = Part.most = 0


def work(function=counted):
    query = Query("weights", N_ITEMS, 1.0)
    return Pass(function, None, (query,), (Grid.of(query, 10),))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_each_thread_has_at_most_one_block_open(threads):
    """Memory holds as many blocks as there are threads, however many users there are."""
    with limited_threads(threads):
        tables, receipts = LocalEngine().run(work(), [Part(number) for number in range(100)])
    assert 1 <= Part.most <= threads
    assert sorted(receipt.block for receipt in receipts) == sorted(f"part {number}" for number in range(100))
    expected = np.bincount(np.arange(100) % N_ITEMS, minlength=N_ITEMS)
    assert np.array_equal(tables[0][:, 0], expected * 2**10)


def test_there_are_few_copies_of_large_tables(monkeypatch):
    monkeypatch.setattr(local, "_LARGEST_COPIES", 8 * N_ITEMS - 1)
    with limited_threads(4):
        LocalEngine().run(work(), [Part(number) for number in range(20)])
    assert Part.most == 1


def test_blocks_can_be_taken_one_by_one():
    """Those who record what blocks contribute want them in order."""
    with limited_threads(4):
        _, receipts = LocalEngine(blocks_at_once=1).run(work(), [Part(number) for number in range(20)])
    assert Part.most == 1
    assert [receipt.block for receipt in receipts] == [f"part {number}" for number in range(20)]


def test_no_blocks_are_nobody():
    tables, receipts = LocalEngine().run(work(), [])
    assert receipts == []
    assert np.array_equal(tables[0], np.zeros((N_ITEMS, 1)))


def test_an_error_in_a_block_is_raised():
    def failing(ratings, _):
        raise dpals.errors.InputError(f"user {ratings.users[0]}")

    with limited_threads(2), pytest.raises(dpals.errors.InputError, match="user"):
        LocalEngine().run(work(failing), [Part(number) for number in range(9)])
