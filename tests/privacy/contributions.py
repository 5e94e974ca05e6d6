"""What users contribute, written to a file: run by test_processors.py for several types of processors.

Arrays are made by generators of NumPy, whose bits do not depend on the processor either: integers and uniform numbers.
"""

import sys

import numpy as np

import dpals
from dpals.private.frank_wolfe import FrankWolfeProblem, FrankWolfeSteps
from dpals.private.gradients import GradientStep, gradient_contribution
from dpals.private.histories import Histories, HistoryFit, history_gram_contribution
from dpals.private.pooled import (
    Bounds,
    Features,
    Groups,
    PooledStep,
    RatingWeights,
    activity_contribution,
    direction_contribution,
    feature_gram_contribution,
    squared_weight_contribution,
    step_contributions,
    weight_contributions,
)
from dpals.private.sampling import adaptive_weights
from dpals.private.scales import (
    Centre,
    Distances,
    FitUnits,
    centre_contribution,
    distance_contribution,
    spread_contribution,
)
from dpals.private.scoring import Serving, gain_contribution
from dpals.private.user_vectors import LeastSquaresProblem, LogisticProblem

RANKS = (4, 12, 32, 40)
N_ITEMS = 2500
COUNTS = [*range(1, 70), 127, 128, 129, 500, 1000, 2400]


def people(seed, implicit):
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(len(COUNTS)), COUNTS)
    items = np.concatenate([rng.choice(N_ITEMS, count, replace=False) for count in COUNTS])
    rated = {} if implicit else {"values": rng.integers(1, 11, len(items)) / 2, "rating_range": (0.5, 5)}
    return dpals.Ratings.from_arrays(users, items, **rated, catalogue=np.arange(N_ITEMS))


def numbers(rng, *shape):
    return (rng.uniform(-1, 1, shape) * 0.6).astype(np.float32)


def problem_of(rng, rank, implicit):
    factors, offsets = numbers(rng, N_ITEMS, rank), numbers(rng, N_ITEMS)
    if implicit:
        return LogisticProblem.of(factors, offsets - np.float32(4))
    base = np.zeros((rank + 1, rank + 1), np.float32)
    base[rank, rank] = 3
    features = np.column_stack([factors, np.ones(N_ITEMS, np.float32)])
    history = numbers(rng, N_ITEMS, rank + 1).astype(np.float64)
    return LeastSquaresProblem(features, offsets, ridge=0.4, exponent=0.7, base=base, rank=rank, history=history)


def parts(name, contribution):
    yield f"{name}, coefficients", contribution.coefficients
    if contribution.vectors is not None:
        yield f"{name}, vectors", contribution.vectors


def contributions(implicit):
    ratings, hidden, rng = people(0, implicit), people(1, implicit), np.random.default_rng(2)
    weights = RatingWeights(rng.uniform(0.1, 1, N_ITEMS), 20.0)
    for name, contribution in zip(("user weights", "weights"), weight_contributions(ratings, weights), strict=True):
        yield from parts(name, contribution)
    yield "activity", activity_contribution(ratings, 40).pattern.items
    yield "adaptive weights", adaptive_weights(ratings, rng.uniform(0, 100, N_ITEMS), 0.3)
    if not implicit:
        yield "distances", distance_contribution(ratings, Distances(3.1, 4.5, 24)).pattern.items
        centre = Centre(rng.uniform(2, 4, N_ITEMS), 0.9)
        yield from parts("spread", spread_contribution(ratings, centre))
        groups = Groups(weights, np.arange(N_ITEMS, dtype=np.int32) % 12, 12)
        yield from parts("squared weights", squared_weight_contribution(ratings, groups))
        yield from parts("centre", centre_contribution(ratings, centre))
    for rank in RANKS:
        features = Features(weights, numbers(rng, N_ITEMS, rank).astype(np.float64), 1.0)
        yield from parts(f"rank {rank}, Gram matrix", feature_gram_contribution(ratings, features))
        yield from parts(f"rank {rank}, directions", direction_contribution(ratings, features))
        problem = problem_of(rng, rank, implicit)
        step = PooledStep(weights, problem, 1.6, Bounds(0.5, 2.0, 0.3 * rank**0.5))
        if not implicit:
            known = Histories(numbers(rng, N_ITEMS, rank + 1).astype(np.float64), 1.0)
            yield from parts(f"rank {rank}, histories", history_gram_contribution(ratings, known))
            step = step._replace(fit=FitUnits(0.9, 1.1), history=HistoryFit(known, 0.5, np.ones(rank + 1)))
        for number, contribution in enumerate(step_contributions(ratings, step)):
            yield from parts(f"rank {rank}, sum {number} of a step", contribution)
        sides = np.column_stack([problem.features, problem.offsets, np.zeros_like(problem.offsets)])
        serving = Serving(problem, 0.5, sides)
        yield from parts(f"rank {rank}, gains", gain_contribution(serving, ratings, hidden))
        if not implicit:
            yield from parts(f"rank {rank}, gradients", gradient_contribution(ratings, GradientStep(problem, 2.0)))
            steps = FrankWolfeSteps(rng.uniform(0, 1, rank), rng.uniform(0.5, 1, rank), clip=3.0)
            considered = rng.uniform(size=N_ITEMS) < 0.9
            found = FrankWolfeProblem(problem.features, problem.offsets, considered, steps, 5.0).solve_with_residuals(
                ratings
            )
            yield from zip((f"rank {rank}, Frank-Wolfe", f"rank {rank}, residuals"), found, strict=True)


if __name__ == "__main__":
    np.savez(
        sys.argv[1],
        **{
            f"{kind}, {name}": array
            for kind in ("ratings", "implicit feedback")
            for name, array in contributions(kind == "implicit feedback")
        },
    )
