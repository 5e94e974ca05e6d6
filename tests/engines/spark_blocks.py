"""Blocks that can be sent to executors, and what they do there: import them by name, as executors do."""

import os
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

import dpals
from dpals.private.means import weight_contribution
from dpals.release.contribution import Contribution


@dataclass(frozen=True)
class Part:
    """Some users, with all that is needed to open them."""

    ratings: dpals.Ratings
    name: str

    def open(self):
        return self.ratings


class InParts(dpals.Ratings):
    """Ratings in memory that a pass sees as several blocks."""

    n_parts = 1

    @property
    def blocks(self):
        edges = np.linspace(0, self.n_users, self.n_parts + 1).astype(int)
        return tuple(Part(self.take_users(slice(*ends)), f"part {ends[0]}") for ends in pairwise(edges))


def in_parts(ratings, number):
    """The same ratings, seen as so many blocks."""
    seen = InParts(**{name: getattr(ratings, name) for name in ratings.__dataclass_fields__ if name != "memory"})
    object.__setattr__(seen, "n_parts", number)
    return seen


@dataclass(frozen=True)
class Once:
    """Something that happens to a block in the first process that opens it, and to none after that."""

    part: Part
    folder: str

    @property
    def name(self):
        return self.part.name

    def open(self):
        marks = Path(self.folder)
        (marks / f"pid-{os.getpid()}-{time.time_ns()}").touch()
        try:
            (marks / "first").touch(exist_ok=False)
        except FileExistsError:
            return self.part.ratings
        self.happen()
        return self.part.ratings

    def happen(self):
        raise NotImplementedError


class WaitsToBeKilled(Once):
    def happen(self):
        (Path(self.folder) / "kill").write_text(f"{os.getpid()} {os.getppid()}")
        time.sleep(60)


class Straggles(Once):
    def happen(self):
        time.sleep(60)


class Broken(Part):
    def open(self):
        raise dpals.InputError(f"block {self.name} is damaged: write it again")


def big_table(block, public):
    """Ones everywhere in a large table: a user of the block touches every item."""
    del public
    items = np.arange(block.n_items, dtype=np.int32)
    from dpals.release.contribution import Pattern

    pattern = Pattern(np.array([0, block.n_items]), items, block.n_items)
    return Contribution(pattern, np.full(block.n_items, 1e-3), np.full((1, 33), 0.1))


def loaded_modules(block, public):
    """What an executor has imported, written to a file; and a contribution."""
    Path(public).write_text("\n".join(sorted(sys.modules)))
    return weight_contribution(block)
