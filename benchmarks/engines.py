"""The same training from memory, from blocks on disk and on Spark: time, memory, and whether the bits agree.

    python benchmarks/engines.py 1 10 100             # millions of simulated ratings; 1 and 10 by default
    python benchmarks/engines.py 10 --against SOURCE  # and another version of dpals, by the folder with its package

Each fit runs in a process of its own, after a first fit that compiles kernels and starts Spark; the processes of one
size take turns, and the fastest fit of each counts. Memory is that of the process: its anonymous part, and all of it,
mapped files included.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import dpals
from dpals.data.bad_rows import ReadingReport

USERS_PER_MILLION, N_ITEMS, RATINGS_PER_USER = 4_800, 18_000, 208
RANGE = (0.5, 5.0)
ROUNDS = 3
ENGINES = ("memory", "blocks", "Spark")
GOALS = {"blocks": 1.15, "Spark": 2.0, "other version": 1.0}


def run(millions, against):
    """Print one table for each size, and how the time of a step grows."""
    steps = {}
    for size in millions:
        with TemporaryDirectory() as name:
            folder = Path(name)
            simulate(folder, size)
            names = [name for name in ENGINES if name != "Spark" or importlib.util.find_spec("pyspark")]
            found = [measured(name, folder) for _ in range(ROUNDS if size < 100 else 1) for name in names]
            if against:
                found += [measured("memory", folder, against) for _ in range(ROUNDS)]
        report(size, found)
        steps[size] = min(one["step"] for one in found if one["engine"] == "blocks")
    for size, larger in pairwise(sorted(steps)):
        each = (steps[larger] - steps[size]) / (larger - size)
        print(f"a step from blocks, each million from {size} to {larger} million: {each:.4f} s", flush=True)


def simulate(folder, millions):
    """Write simulated ratings as arrays, for training in memory, and as blocks."""
    ratings = dpals.simulate.movielens_like(
        n_users=USERS_PER_MILLION * millions, n_items=N_ITEMS, mean_ratings=RATINGS_PER_USER, seed=1
    )
    for name in ("indptr", "indices", "values"):
        np.save(folder / f"{name}.npy", getattr(ratings, name))
    dpals.write_blocks(ratings, folder / "blocks")


def measured(engine, folder, source=None):
    """Fit in a process of its own, with the package in another folder if one is given."""
    environment = {**os.environ, **({"PYTHONPATH": source} if source else {})}
    command = [sys.executable, __file__, "--fit", engine, str(folder)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    return {"engine": "other version" if source else engine, **json.loads(output.splitlines()[-1])}


def fit(engine, folder):
    """Train in this process, and print what it took."""
    data, options, held = opened(engine, folder)
    dpals.PooledDPALS(1.0, rank=2, steps=1, insecure_seed=1).fit(data, **options)
    with Memory() as memory:
        start = time.perf_counter()
        ends = []
        model = dpals.PooledDPALS(1.0, rank=8, insecure_seed=1).fit(
            data, **options, callbacks=[lambda _: ends.append(time.perf_counter())]
        )
        seconds = time.perf_counter() - start
    facts = {
        "seconds": seconds,
        "step": float(np.median(np.diff(ends))),
        "anonymous": memory.anonymous - held,
        "resident": memory.resident - held,
        "bits": hashlib.sha256(model.item_factors_.tobytes()).hexdigest()[:8],
    }
    print(json.dumps(facts))


def opened(engine, folder):
    """The data and options of a fit, and how many bytes the ratings themselves take in memory."""
    if engine == "memory":
        arrays = {name: np.load(folder / f"{name}.npy") for name in ("indptr", "indices", "values")}
        users = np.arange(len(arrays["indptr"]) - 1)
        facts = {"rating_range": RANGE, "catalogue_declared": True, "report": ReadingReport(1)}
        items = np.arange(N_ITEMS)
        held = sum(array.nbytes for array in arrays.values())
        return dpals.Ratings(**arrays, timestamps=None, users=users, items=items, **facts), {}, held
    blocks = dpals.open_blocks(folder / "blocks")
    if engine == "blocks":
        return blocks, {}, 0
    session = dpals.spark.session("local[2]")
    return blocks, {"options": dpals.Options(engine=dpals.spark.Engine(session))}, 0


class Memory:
    """The largest memory of this process while a block of code runs, looked at every 20 milliseconds."""

    def __enter__(self):
        self.anonymous = self.resident = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()

    def _watch(self):
        while not self._done.wait(0.02):
            lines = Path("/proc/self/status").read_text().splitlines()
            sizes = {
                line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.startswith(("Rss", "VmR"))
            }
            self.anonymous = max(self.anonymous, sizes["RssAnon"])
            self.resident = max(self.resident, sizes["VmRSS"])


def report(millions, found):
    """Print the fastest fit of each engine against that from memory."""
    print(f"PooledDPALS, epsilon 1, rank 8, {millions} million simulated ratings", flush=True)
    best = {}
    for one in found:
        if one["engine"] not in best or one["seconds"] < best[one["engine"]]["seconds"]:
            best[one["engine"]] = one
    for engine, one in best.items():
        ratio = one["seconds"] / best["memory"]["seconds"]
        goal = f" (goal {GOALS[engine]:g})" if engine in GOALS and millions < 100 else ""
        sizes = f"anonymous {one['anonymous'] / 2**20:,.0f} MB, resident {one['resident'] / 2**20:,.0f} MB"
        times = f"{one['seconds']:7.2f} s  {ratio:5.2f} x memory{goal}, a step {one['step']:.3f} s"
        print(f"  {engine:13} {times}, {sizes}, bits {one['bits']}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fit"]:
        fit(sys.argv[2], Path(sys.argv[3]))
    else:
        parser = argparse.ArgumentParser()
        parser.add_argument("millions", nargs="*", type=int, default=[1, 10])
        parser.add_argument("--against", metavar="SOURCE")
        given = parser.parse_args()
        run(given.millions, given.against)
