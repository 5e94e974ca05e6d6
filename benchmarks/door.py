"""Speed of the door: noise per second, exact sums against the same sums in float32."""

import time

import numpy as np

from dpals.release.contribution import Grid, Offer, Pattern, Query, on_grid
from dpals.release.randomness import NoiseStream, rounded_gaussian
from dpals.release.sums import add_exactly, empty_sums

N_USERS, N_ITEMS, PER_USER = 70_000, 10_000, 143


def run() -> None:
    _noise()
    _sums()


def _noise() -> None:
    print("Noise on one core (AES-256, exact rounded Gaussian)")
    weights = np.ones(1_000, np.int64)
    for bits in (0, 10, 20, 30, 34):
        rounded_gaussian(NoiseStream(), 100, 1 << (2 * bits), weights)
        seconds = _fastest(lambda bits=bits: rounded_gaussian(NoiseStream(), 10_000, 1 << (2 * bits), weights))
        print(f"  sigma 2^{bits:<3} {10 / seconds:8.1f} million samples per second")


def _sums() -> None:
    print(f"Exact sums over {N_USERS:,} users with {PER_USER} of {N_ITEMS:,} items each (seconds)")
    rng = np.random.default_rng(0)
    starts = rng.integers(0, N_ITEMS, N_USERS)
    items = np.sort((starts[:, None] + np.arange(PER_USER) * 61) % N_ITEMS, axis=1)
    pattern = Pattern(np.arange(N_USERS + 1) * PER_USER, items.ravel(), N_ITEMS)
    coefficients = rng.standard_normal(len(pattern.items)) / 12
    vectors = rng.standard_normal((N_USERS, 32)) / 6
    for form, dimension in (("scalar", 1), ("vector", 32), ("symmetric", 32)):
        query = Query("benchmark", N_ITEMS, bound=1.0, form=form, dimension=dimension)
        offer = Offer(pattern, coefficients, None if form == "scalar" else vectors)
        grid = Grid.of(query, 30)
        contribution = on_grid(offer, query, grid)
        enforcing = _fastest(lambda offer=offer, query=query, grid=grid: on_grid(offer, query, grid))
        sums = empty_sums(query)
        summing = _fastest(lambda c=contribution, q=query, s=sums: add_exactly(s, c, q))
        print(f"  {form:10} grid and bound {enforcing:6.3f}   sum {summing:6.3f}")


def _fastest(work, repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    run()
