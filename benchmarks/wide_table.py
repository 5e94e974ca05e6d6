"""A table of a million items by 33 numbers from 8 partial tables on Spark: seconds, and memory of the driver.

The partial tables are made up, so that only adding them up takes time. Memory is the highest resident size of the
driver's Python and of its Java, which in local mode is the executor as well.
"""

import os
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import dpals
from dpals.kernels.target import target
from dpals.release.passes import Receipt, check_receipts

SHAPE = (1_000_000, 33)
PARTIALS = 8
GOALS = "10 s and 1.5 GB"


@dataclass(frozen=True)
class Constant:
    """A block that adds the same number everywhere."""

    name: str

    def open(self):
        return int(self.name)


@dataclass(frozen=True)
class Fill:
    """Adds the number of each block to all of the table."""

    shape: tuple[int, int]

    def empty(self):
        return [np.zeros(self.shape, np.int64)]

    def add(self, block, tables):
        tables[0] += block.open()
        return Receipt(block.name, 1, target())


def run():
    if find_spec("pyspark") is None:
        print("PySpark is not installed: pip install 'dpals[spark]'")
        return
    here = str(Path(__file__).parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    from wide_table import Constant, Fill  # as executors will find them

    session = dpals.spark.session("local[2]", settings={"spark.driver.memory": "1g"})
    engine = dpals.spark.Engine(session, tasks=PARTIALS)
    blocks = [Constant(str(number)) for number in range(PARTIALS)]
    engine.run(Fill((10, 33)), blocks)
    java = session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    for _ in range(3):
        start = time.perf_counter()
        tables, receipts = engine.run(Fill(SHAPE), blocks)
        seconds = time.perf_counter() - start
        check_receipts(receipts, blocks)
        assert np.all(tables[0] == sum(range(PARTIALS)))
        peaks = f"Python {_peak('self'):.2f} GB, Java {_peak(java):.2f} GB"
        size = f"{SHAPE[0]:,} x {SHAPE[1]} from {PARTIALS} partial tables"
        print(f"{size}: {seconds:.1f} s, {peaks} (goal {GOALS})", flush=True)
    session.stop()


def _peak(process):
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**20


if __name__ == "__main__":
    run()
