"""Time and memory of simulated data at the size of MovieLens 10M."""

import resource
import time

from dpals import simulate


def run() -> None:
    start = time.perf_counter()
    ratings = simulate.movielens_like(seed=0)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"movielens_like: {ratings.n_ratings:,} simulated ratings in {seconds:.1f} s, peak memory {peak:.2f} GB")


if __name__ == "__main__":
    run()
