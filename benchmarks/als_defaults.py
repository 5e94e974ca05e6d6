"""ALS with its defaults against the best of 20 settings, on every set of `rating_sets`.

    python benchmarks/als_defaults.py                  # all sets, seed 1: about 20 minutes
    python benchmarks/als_defaults.py jokes,songs 1,2,3

The settings are those that somebody would try who knows the scale of the ratings: five ridges, in units of the standard
deviation of the ratings times the root of the mean number of ratings of a user plus that of an item, each with four
choices of rank, exponents and bias ridge. The best is the best on the part that is compared, so the grid has the
advantage of chance in the test part, too. The last column is how much longer the default takes than a training of as
many steps with rank 32 and a given ridge.
"""

import itertools
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import dpals
from rating_sets import SETS, Parts, parts
from scores import fitted_rmse

RIDGES = (0.15, 0.3, 0.5, 0.75, 1.2)
OTHERS = (
    {"rank": 8, "user_exponent": 0.5, "item_exponent": 0.5, "bias_ridge": 5.0},
    {"rank": 32, "user_exponent": 0.7, "item_exponent": 0.7, "bias_ridge": 2.0},
    {"rank": 32, "user_exponent": 0.3, "item_exponent": 0.3, "bias_ridge": 20.0},
    {"rank": 64, "user_exponent": 1.0, "item_exponent": 1.0, "bias_ridge": 5.0},
)


def run(names: list[str], seeds: list[int]) -> None:
    titles = (f"{part}: default, best, ratio" for part in ("validation", "test"))
    print(f"{'set':15} seed  rank   ridge  bias", *(f"{title:>36}" for title in titles), "time", sep=" | ")
    for name, seed in itertools.product(names, seeds):
        split = parts(name, seed)
        if split is not None:
            compare(name, seed, split)


def compare(name: str, seed: int, split: Parts) -> None:
    """Print a line for a set."""
    default, seconds = fitted({}, split)
    usual = fitted({"ridge": default.ridge_}, split)[1]
    found = errors(default, split)
    best = np.min([errors(fitted(settings, split)[0], split) for settings in grid(split.train)], axis=0)
    columns = [f"{ours:20.4f}  {theirs:6.4f}  {ours / theirs:5.3f}" for ours, theirs in zip(found, best, strict=True)]
    chosen = f"{default.rank_:4}  {default.ridge_:6.3g}  {default.bias_ridge_:4g}"
    print(f"{name:15} {seed:4}  {chosen} | {' | '.join(columns)} | {seconds / usual:.1f}", flush=True)


def grid(train: dpals.Ratings) -> Iterator[dict[str, Any]]:
    """The 20 settings."""
    n_rated = [len(np.unique(numbers)) for numbers in (train.rows, train.indices)]
    noise = train.values.std(dtype=np.float64) * sum(np.sqrt(train.n_ratings / number) for number in n_rated)
    for ridge, others in itertools.product(RIDGES, OTHERS):
        yield {**others, "ridge": ridge * noise, "rank": min(others["rank"], train.n_items)}


def fitted(settings: dict[str, Any], split: Parts) -> tuple[dpals.ALS, float]:
    """A model, and the seconds it took."""
    start = time.perf_counter()
    model = dpals.ALS(**settings).fit(split.train)
    return model, time.perf_counter() - start


def errors(model: dpals.ALS, split: Parts) -> list[float]:
    """On validation and test part."""
    return [fitted_rmse(model, split.train, part) for part in (split.validation, split.test)]


if __name__ == "__main__":
    chosen_names = sys.argv[1].split(",") if len(sys.argv) > 1 else list(SETS)
    run(chosen_names, [int(seed) for seed in sys.argv[2].split(",")] if len(sys.argv) > 2 else [1])
