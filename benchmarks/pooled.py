"""Speed and memory of PooledDPALS on simulated data in the shape of MovieLens 10M.

A whole fit at epsilon 1 for ratings and for implicit feedback, each in a process of its own, with the memory it
takes above the ratings; and one step at rank 64 against one step of DPALS.
"""

import resource
import subprocess
import sys
import time
from typing import Any
from unittest.mock import patch

import numpy as np

import dpals
from dpals.evaluation.splits import liked
from dpals.methods.base.estimator import PrivateEstimator
from dpals.release.mechanism import Mechanism

RANK = 64
STEPS = 6
GOALS = {"seconds": 20.0, "gigabytes": 1.0, "step": 3.0}


def run() -> None:
    for kind in ("ratings", "implicit feedback"):
        subprocess.run([sys.executable, __file__, kind], check=True)
    subprocess.run([sys.executable, __file__, "step"], check=True)


def _warm_up(ratings: dpals.Ratings) -> None:
    """Compile the kernels on a few users."""
    few = ratings.keep(ratings.rows < 500)
    dpals.PooledDPALS(50.0, rank=3, steps=1, insecure_seed=1).fit(few)
    dpals.DPALS(50.0, rank=3, steps=1, insecure_seed=1).fit(few)


def _whole_fit(kind: str) -> None:
    ratings = dpals.simulate.movielens_like(seed=1)
    ratings = ratings if kind == "ratings" else liked(ratings)
    _warm_up(ratings)
    start = time.perf_counter()
    method = dpals.PooledDPALS(1.0, insecure_seed=1).fit(ratings)
    seconds = time.perf_counter() - start
    parts = (ratings.indptr, ratings.indices, ratings.values)
    held = sum(part.nbytes for part in parts if part is not None) / 2**30
    # The peak counts Python, the libraries and the simulation as well, so this is an upper bound.
    above = _peak_gigabytes() - held
    print(f"{kind}, {ratings.n_ratings:,}, rank {method.rank_}: {seconds:.1f} s (goal {GOALS['seconds']:g}),", end=" ")
    print(f"at most {above:.2f} GB above the ratings (goal {GOALS['gigabytes']:g})", flush=True)


def _one_step() -> None:
    """DPALS with its defaults, 50 ratings of each user and a quarter of the items, and with all of both.

    A step lasts from one release of right-hand sides to the next; what counts is the median of the steps.
    """
    ratings = dpals.simulate.movielens_like(seed=1)
    _warm_up(ratings)
    everything = {"ratings_per_user": int(np.diff(ratings.indptr).max()), "frequent_fraction": 1.0}
    ends: list[float] = []
    release = Mechanism.release_together

    def timed(*arguments: Any) -> Any:
        released = release(*arguments)
        if any(query.purpose.startswith("right-hand sides, step") for query, _ in arguments[-1]):
            ends.append(time.perf_counter())
        return released

    def seconds(make: type[PrivateEstimator], **settings: Any) -> float:
        ends.clear()
        with patch.object(Mechanism, "release_together", timed):
            make(1.0, rank=RANK, steps=STEPS, insecure_seed=1, **settings).fit(ratings)  # type: ignore[call-arg]
        return float(np.median(np.diff(ends)))

    pooled = seconds(dpals.PooledDPALS)
    print(f"one step at rank {RANK}: PooledDPALS {pooled:.2f} s; peak {_peak_gigabytes():.2f} GB", flush=True)
    for name, settings in (("all ratings and items", everything), ("a sample of ratings and items", {})):
        published = seconds(dpals.DPALS, **settings)
        print(
            f"  DPALS, {name}: {published:.2f} s, ratio {published / pooled:.1f} (goal {GOALS['step']:g})", flush=True
        )


def _peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            run()
        case ["step"]:
            _one_step()
        case [kind]:
            _whole_fit(kind)
