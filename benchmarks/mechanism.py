"""Speed of the mechanism: noise per second, exact sums against the same sums in float32."""

import time

import numba
import numpy as np

from dpals.kernels.small_matrices import add_product
from dpals.kernels.threads import in_threads
from dpals.release.contribution import ClippedContribution, Contribution, Grid, Pattern, Query, quantize_and_clip
from dpals.release.noise import NoiseStream, rounded_gaussian
from dpals.release.sums import add_exactly, empty_sums

N_USERS, N_ITEMS, PER_USER = 70_000, 10_000, 143
GATHERED = 128


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
        query = Query("benchmark", N_ITEMS, sensitivity=1.0, form=form, dimension=dimension)
        contribution = Contribution(pattern, coefficients, None if form == "scalar" else vectors)
        grid = Grid.of(query, 30)
        enforcing = _fastest(lambda c=contribution, q=query, g=grid: quantize_and_clip(c, q, g))
        clipped, sums = quantize_and_clip(contribution, query, grid), empty_sums(query)
        summing = _fastest(lambda c=clipped, q=query, s=sums: add_exactly(s, c, q))
        print(f"  {form:10} grid and bound {enforcing:6.3f}   sum {summing:6.3f}")
    _against_float32(clipped, query)


def _against_float32(contribution: ClippedContribution, query: Query) -> None:
    """Symmetric sums, exact and in float32, in turns, by code of the same kind and by BLAS."""
    pattern = contribution.pattern
    coefficients, vectors = (
        numbers.astype(np.float32) for numbers in (contribution.coefficients, contribution.vectors)
    )
    exact, float32 = empty_sums(query), np.zeros((N_ITEMS, 32 * 33 // 2), np.float32)
    seconds = {"exact": np.inf, "tiles": np.inf, "blas": np.inf}
    for _ in range(7):
        seconds["exact"] = min(seconds["exact"], _fastest(lambda: add_exactly(exact, contribution, query), 1))
        for name, multiply in (("tiles", add_product), ("blas", multiply_by_blas)):
            arguments = float32, *pattern.by_item, coefficients, vectors
            seconds[name] = min(seconds[name], _fastest(lambda m=multiply, a=arguments: _float32_sums(*a, m), 1))
    for name, which in (("tiles", "the same tiles"), ("blas", "sgemm")):
        print(
            f"  float32 by {which:15} sum {seconds[name]:6.3f}   exact / float32 {seconds['exact'] / seconds[name]:.2f}"
        )


def _float32_sums(sums, pointers, positions, rows, coefficients, vectors, multiply) -> None:
    def work(start: int, stop: int) -> None:
        _add_symmetric(sums, pointers, positions, rows, coefficients, vectors, start, stop, multiply)

    in_threads(work, pointers)


@numba.njit(nogil=True)
def multiply_by_blas(out, left, right, depth):
    out += left[:depth].T @ right[:depth]


@numba.njit(nogil=True)
def _add_symmetric(sums, pointers, positions, rows, coefficients, vectors, start, stop, multiply):
    dimension = vectors.shape[1]
    plain, scaled = np.zeros((GATHERED, dimension), np.float32), np.zeros((GATHERED, dimension), np.float32)
    product = np.zeros((dimension, dimension), np.float32)
    weights = np.empty(pointers[stop] - pointers[start], np.float32)
    for e in range(len(weights)):
        weights[e] = coefficients[positions[pointers[start] + e]]
    for j in range(start, stop):
        product[:] = 0
        for first in range(pointers[j], pointers[j + 1], GATHERED):
            last = min(first + GATHERED, pointers[j + 1])
            for e in range(first, last):
                weight, vector = weights[e - pointers[start]], vectors[rows[e]]
                for k in range(dimension):
                    plain[e - first, k] = vector[k]
                    scaled[e - first, k] = weight * vector[k]
            multiply(product, scaled, plain, last - first)
        column = 0
        for k in range(dimension):
            for other in range(k, dimension):
                sums[j, column] += product[k, other]
                column += 1


def _fastest(work, repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    run()
