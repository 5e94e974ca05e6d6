"""Rating data to compare methods on: real sets where they are on the machine, and simulated ones of many shapes.

Real sets are looked for in the folder named by the environment variable DPALS_REAL_DATA, by default
`../shared/data/real`, and MovieLens 1M in the cache folder. Sets that are not there are left out, with a word about it.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm

import dpals
from dpals.evaluation.splits import split_entries

REAL_DATA = Path(os.environ.get("DPALS_REAL_DATA", "../shared/data/real"))


class Parts(NamedTuple):
    """What to train on, to choose settings on, and to report."""

    train: dpals.Ratings
    validation: dpals.Ratings
    test: dpals.Ratings


def parts(name: str, seed: int) -> Parts | None:
    """80, 10 and 10 per cent of a set; None, with a word about it, where the set is not on this machine.

    Simulated sets are drawn anew for every seed. The paper's synthetic task comes with its own test part.
    """
    if name == "synthetic":
        task = dpals.simulate.paper_synthetic(50_000, seed=seed)
        return Parts(task.train, *split_entries(task.test, (0.5, 0.5), seed=seed))
    ratings = SETS[name](seed)
    return None if ratings is None else Parts(*split_entries(ratings, seed=seed))


def all_parts(name: str, seeds: tuple[int, ...]) -> dict[int, Parts]:
    """The parts for each seed; none where the set is not on this machine."""
    found = {}
    for seed in seeds:
        here = parts(name, seed)
        if here is None:
            return {}
        found[seed] = here
    return found


def title(name: str) -> str:
    """The name, with the word simulated where it belongs."""
    return f"{name}, simulated" if name in SIMULATED else name


def with_history(part: Parts) -> dpals.Ratings:
    """The test ratings of users who have training ratings."""
    return part.test.keep(np.diff(part.train.indptr)[part.test.rows] > 0)


def _movielens_1m(seed: int) -> dpals.Ratings | None:  # noqa: ARG001
    if not dpals.datasets.is_here("ml-1m"):
        print("MovieLens 1M is not here (`dpals datasets get ml-1m`): left out")
        return None
    return dpals.datasets.load("ml-1m")


def real_table(folder: str, name: str) -> pd.DataFrame | None:
    """A table of a real set; None, with a word about it, where the set is not on this machine."""
    path = REAL_DATA / folder / f"{name}.parquet"
    if path.exists():
        return pd.read_parquet(path)
    print(f"{path} is not here: left out")
    return None


def _real(name: str, scale: tuple[float, float]) -> Callable[[int], dpals.Ratings | None]:
    def load(seed: int) -> dpals.Ratings | None:  # noqa: ARG001
        frame = real_table(name, "ratings")
        if frame is None:
            return None
        frame = frame[frame.rating >= scale[0]]  # 0 stands for no rating in Book-Crossing
        return dpals.Ratings.from_frame(frame, rating_range=scale)

    return load


_TASTES = np.arange(1, 11) ** -0.5  # standard deviations of users and items in each direction
_TASTES /= np.linalg.norm(_TASTES**2) ** 0.5  # so that what tastes explain has variance 1


class Shape(NamedTuple):
    """Simulated ratings of another shape than those of films.

    Parameters
    ----------
    n_users, n_items
        Size.
    median_count, count_spread
        Of the numbers of ratings of the users: median and standard deviation of the logarithm.
    popularity
        The item of rank k is picked in proportion to k to the power of this, negated.
    spreads
        Standard deviations of what users, items, tastes and chance add to a rating, before it is cut into levels.
    levels
        The scale, with the share of the ratings on each level; None for numbers from -10 to 10.
    """

    n_users: int
    n_items: int
    median_count: float
    count_spread: float
    popularity: float
    spreads: tuple[float, float, float, float]
    levels: dict[int, float] | None

    def __call__(self, seed: int) -> dpals.Ratings:
        rng = np.random.default_rng(seed)
        counts = np.exp(rng.normal(np.log(self.median_count), self.count_spread, self.n_users))
        counts = np.clip(np.round(counts), 1, self.n_items // 2).astype(int)
        chances = np.arange(1, self.n_items + 1.0) ** -self.popularity
        users = np.repeat(np.arange(self.n_users), counts)
        picked = rng.choice(self.n_items, len(users), p=chances / chances.sum())
        pairs = np.unique(users * self.n_items + picked)
        users, items = np.divmod(pairs, self.n_items)
        by_user, by_item, by_taste, by_chance = self.spreads
        tastes = [rng.normal(size=(n, len(_TASTES))) * _TASTES for n in (self.n_users, self.n_items)]
        latent = by_user * rng.normal(size=self.n_users)[users] + by_item * rng.normal(size=self.n_items)[items]
        latent += by_taste * np.einsum("ek,ek->e", tastes[0][users], tastes[1][items])
        latent += by_chance * rng.normal(size=len(users))
        latent /= np.linalg.norm(self.spreads)
        if self.levels is None:
            values, scale = np.clip(5 * latent + 1, -10, 10), (-10.0, 10.0)
        else:
            limits = norm.ppf(np.cumsum(list(self.levels.values()))[:-1])
            values, scale = (
                np.array(list(self.levels))[np.searchsorted(limits, latent)],
                (min(self.levels), max(self.levels)),
            )
        names = rng.permutation(self.n_items)
        return dpals.Ratings.from_arrays(users, names[items], values, rating_range=scale)


_ENDS = {1: 0.33, 2: 0.13, 3: 0.14, 4: 0.15, 5: 0.25}
_TOP = {1: 0.04, 2: 0.05, 3: 0.12, 4: 0.25, 5: 0.54}
_TOP_OF_TEN = {1: 0.09, 2: 0.03, 3: 0.03, 4: 0.04, 5: 0.06, 6: 0.07, 7: 0.11, 8: 0.16, 9: 0.16, 10: 0.25}

SETS: dict[str, Callable[[int], dpals.Ratings | None]] = {
    "ml-1m": _movielens_1m,
    "anime": _real("anime", (1.0, 10.0)),
    "goodbooks": _real("goodbooks", (1.0, 5.0)),
    "bookcrossing": _real("bookcrossing", (1.0, 10.0)),
    "movielens_like": lambda seed: dpals.simulate.movielens_like(seed=seed),
    "synthetic": lambda seed: dpals.simulate.paper_synthetic(50_000, seed=seed).train,
    "songs": Shape(15_400, 1_000, 18, 0.6, 0.6, (0.6, 0.3, 0.45, 0.8), _ENDS),
    "films": Shape(150_000, 10_000, 1.2, 1.3, 1.0, (0.45, 0.45, 0.35, 0.75), _TOP_OF_TEN),
    "clothes": Shape(90_000, 5_000, 1.3, 0.6, 0.9, (0.3, 0.2, 0.2, 0.9), _TOP),
    "jokes": Shape(20_000, 100, 30, 0.5, 0.2, (0.5, 0.3, 0.45, 0.7), None),
}
"""Ratings of a set for a seed."""
SIMULATED = ("movielens_like", "synthetic", "songs", "films", "clothes", "jokes")
