"""Speed and memory of PooledDPALS on simulated data in the shape of MovieLens 10M.

A whole fit at epsilon 1 for ratings and for implicit feedback, each in a process of its own, with the memory it
takes above the ratings; and one step at rank 64 against one step of DPALS, as the difference of two fits.
"""

import resource
import subprocess
import sys
import time

import dpals
from dpals.evaluation.splits import liked
from dpals.methods.estimator import PrivateEstimator

RANK = 64
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
    before = _peak_gigabytes()
    start = time.perf_counter()
    method = dpals.PooledDPALS(1.0, insecure_seed=1).fit(ratings)
    seconds = time.perf_counter() - start
    # Simulation itself needs more memory than the ratings, so this is an upper bound only where it rises.
    print(f"{kind}, {ratings.n_ratings:,}, rank {method.rank_}: {seconds:.1f} s (goal {GOALS['seconds']:g})", end=", ")
    print(f"peak {before:.2f} GB before and {_peak_gigabytes():.2f} GB after (goal: +{GOALS['gigabytes']:g})")


def _one_step() -> None:
    ratings = dpals.simulate.movielens_like(seed=1)
    _warm_up(ratings)

    def seconds(make: type[PrivateEstimator], steps: int) -> float:
        start = time.perf_counter()
        make(1.0, rank=RANK, steps=steps, insecure_seed=1).fit(ratings)  # type: ignore[call-arg]
        return time.perf_counter() - start

    step = {make: (seconds(make, 3) - seconds(make, 1)) / 2 for make in (dpals.PooledDPALS, dpals.DPALS)}
    pooled, published = step[dpals.PooledDPALS], step[dpals.DPALS]
    print(f"one step at rank {RANK}: PooledDPALS {pooled:.2f} s, DPALS {published:.2f} s,", end=" ")
    print(f"ratio {published / pooled:.1f} (goal {GOALS['step']:g}); peak {_peak_gigabytes():.2f} GB")


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
