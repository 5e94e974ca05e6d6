"""Blocks that can be sent to executors, and what they do there. Executors import this file by its name."""

import json
import os
import sys
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

import dpals
from dpals.engines import spark
from dpals.kernels.target import target
from dpals.kernels.threads import thread_count
from dpals.private.means import weight_contribution
from dpals.release.passes import Receipt

DRIVER = "DPALS_TEST_DRIVER"
SECRETS = ("dpals.release.noise", "dpals.release.mechanism", "dpals.ledger", "cryptography")
REAL = spark._partial_sums


@dataclass(frozen=True)
class Part:
    """Some users. An executor that opens them must not know how noise is drawn, nor the ledger."""

    ratings: dpals.Ratings
    name: str

    def open(self):
        known = sorted(module for module in sys.modules if module.startswith(SECRETS))
        if known and os.environ.get(DRIVER) != str(os.getpid()):
            raise dpals.InputError(f"an executor has imported {known}")
        return self.ratings


class InParts(dpals.Ratings):
    """Ratings in memory that a pass sees as several blocks."""

    n_parts = 1

    @property
    def blocks(self):
        edges = np.linspace(0, self.n_users, self.n_parts + 1).astype(int)
        return tuple(Part(self.take_users(slice(*ends)), f"part {k}") for k, ends in enumerate(pairwise(edges)))


def in_parts(ratings, number):
    """The same ratings, seen as so many blocks."""
    seen = InParts(**{name: getattr(ratings, name) for name in ratings.__dataclass_fields__ if name != "memory"})
    object.__setattr__(seen, "n_parts", number)
    return seen


@dataclass(frozen=True)
class Slow:
    """A block with which the first process that opens it does not get on, and all others do."""

    part: Part
    folder: Path

    @property
    def name(self):
        return self.part.name

    def open(self):
        try:
            (self.folder / "first").touch(exist_ok=False)
        except FileExistsError:
            (self.folder / "second").touch()
            return self.part.open()
        (self.folder / "processes.new").write_text(f"{os.getpid()} {os.getppid()}")
        (self.folder / "processes.new").rename(self.folder / "processes")
        time.sleep(60)
        return self.part.open()


class Broken(Part):
    def open(self):
        raise dpals.InputError(f"block {self.name} is damaged: write it again")


def threads_of_a_task(block, public):
    Path(public).write_text(str(thread_count()))
    return weight_contribution(block)


def missing_share(batches, sent, threads):
    """An executor that leaves out the first share."""
    kept = (batch.filter(pa.array([number != 0 for number in batch.column("id").to_pylist()])) for batch in batches)
    return REAL(kept, sent, threads)


def same_share_twice(batches, sent, threads):
    for batch in batches:
        yield from REAL([batch, batch], sent, threads)


def other_names(batches, sent, threads):
    return _changed(REAL(batches, sent, threads), lambda fields, names: [fields, [("forged", n) for _, n in names]])


def other_version(batches, sent, threads):
    return _changed(REAL(batches, sent, threads), lambda fields, names: [{**fields, "numpy": "1.0"}, names])


def _changed(batches, change):
    for batch in batches:
        for start, numbers, (text,) in spark._rows(batch):
            yield spark._shards(start, numbers, [[json.dumps(change(*json.loads(text))) if start == 0 else text]])


def without_dpals(batches, sent, threads):
    del batches, sent, threads
    raise ModuleNotFoundError("No module named 'dpals'")


@dataclass(frozen=True)
class Quick:
    """A pass over one large table that takes no time in itself, to see what adding up costs."""

    shape: tuple[int, int]

    def empty(self):
        return [np.zeros(self.shape, np.int64)]

    def add(self, block, tables):
        rng = np.random.default_rng(int(block.name))
        tables[0] += rng.integers(-(2**40), 2**40, self.shape[1])
        tables[0][:: 1 + int(block.name)] -= 1
        return Receipt(block.name, 1, replace(target()))
