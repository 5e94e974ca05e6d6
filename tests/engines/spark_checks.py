"""What tests of Spark share."""

import os
import signal
import time
from pathlib import Path

import numpy as np
from tests.engines.spark_blocks import in_parts

import dpals
from dpals.engines.local import LocalEngine
from dpals.private.means import weight_contribution
from dpals.release.contribution import Grid, Query
from dpals.release.passes import Pass, check_receipts

COUNT = Query("weights", 40, 1.0)


class Recording:
    """An engine that keeps the exact sums of every pass."""

    def __init__(self, engine):
        self.engine, self.tables = engine, []

    def run(self, work, blocks):
        tables, receipts = self.engine.run(work, blocks)
        self.tables += [table.copy() for table in tables]
        return tables, receipts


def assert_same_bits(make, data, engine, n_parts):
    here, there = Recording(LocalEngine()), Recording(engine)
    expected = make().fit(data, options=dpals.Options(engine=here))
    fitted = make().fit(in_parts(data, n_parts), options=dpals.Options(engine=there))
    assert len(here.tables) == len(there.tables)
    assert all(map(np.array_equal, here.tables, there.tables))
    assert np.array_equal(expected.item_factors_, fitted.item_factors_)
    assert np.array_equal(expected.model_.item_biases, fitted.model_.item_biases)


def weights(function=weight_contribution, public=None):
    return Pass(function, public, (COUNT,), (Grid.of(COUNT, 20),))


def assert_same_pass(engine, work, blocks, same_blocks=None):
    tables, receipts = engine.run(work, blocks)
    expected, _ = LocalEngine().run(work, same_blocks or blocks)
    check_receipts(receipts, blocks)
    assert all(map(np.array_equal, tables, expected))


def when_written(path, wanted, seconds=60):
    """What another process writes to a file, as soon as there is something in it that is wanted."""
    end = time.monotonic() + seconds
    while not (found := path.exists() and wanted(path.read_text())):
        assert time.monotonic() < end, f"nobody wrote {path}"
        time.sleep(0.02)
    return found


def kill(process):
    """End a process that this test started, by way of others."""
    parent = process
    while parent not in (os.getpid(), 1):
        parent = int(Path(f"/proc/{parent}/stat").read_text().rsplit(")", 1)[1].split()[1])
    assert parent == os.getpid()
    os.kill(process, signal.SIGKILL)
