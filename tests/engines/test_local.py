import numpy as np

import dpals
from dpals.engines.local import LocalEngine
from dpals.kernels.target import target
from dpals.private.means import weight_contribution
from dpals.release.contribution import Grid, Query
from dpals.release.passes import Pass, Receipt


def test_one_block_is_open_at_a_time():
    """Memory holds one block and the tables, however many users there are."""
    log = []

    class Part:
        def __init__(self, number):
            self.name, self.number = f"part {number}", number

        def open(self):
            log.append(f"open {self.number}")
            return dpals.Ratings.from_arrays([self.number], [0], catalogue=[0])

    def logged(ratings, _):
        log.append(f"use {ratings.users[0]}")
        return weight_contribution(ratings)

    query = Query("weights", 1, 1.0)
    work = Pass(logged, None, (query,), (Grid.of(query, 10),))
    tables, receipts = LocalEngine().run(work, [Part(1), Part(2)])
    assert log == ["open 1", "use 1", "open 2", "use 2"]
    assert receipts == [Receipt("part 1", 1, target()), Receipt("part 2", 1, target())]
    assert np.array_equal(tables[0], [[2 * 2**10]])


def test_no_blocks_are_nobody():
    query = Query("weights", 3, 1.0)
    tables, receipts = LocalEngine().run(Pass(weight_contribution, None, (query,), (Grid.of(query, 10),)), [])
    assert receipts == []
    assert np.array_equal(tables[0], np.zeros((3, 1)))
