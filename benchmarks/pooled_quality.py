"""Accuracy of PooledDPALS with its defaults, against what we set ourselves to reach; delta 1e-5, mean of three seeds.

    python benchmarks/pooled_quality.py             # everything, about 40 minutes on two cores
    python benchmarks/pooled_quality.py implicit    # or budgets, ablation, ml-1m

Defaults were chosen on simulated data of seed 1. MovieLens 1M is left out where it is not in the cache folder.
"""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np

import dpals
from dpals.evaluation.metrics import recall_at_k
from dpals.evaluation.splits import UserSplit, liked, split_entries, split_users
from dpals.experiments.settings import make, settings_for
from dpals.methods.base.estimator import Estimator
from scores import read_ml1m, show, test_rmse

SEEDS = (1, 2, 3)
RECALL_GOALS = {1: 0.97, 5: 0.98, 10: 0.985, 20: 0.99}  # as multiples of ALS
ML1M_GOALS = {1: 0.958, 5: 0.903, 10: 0.891, 20: 0.882}
ML1M_SEEDS = (21, 22, 23)  # splits that no setting was chosen on
BUDGETS = (0.1, 0.3, 1, 3, 10, 50)
SMALLER = {"n_users": 6040, "n_items": 3706, "mean_ratings": 165}
MEDIUM = {"n_users": 20_000, "n_items": 6_000, "mean_ratings": 150}
ABLATION: dict[str, dict[str, Any]] = {  # arguments, and constants of modules
    "as it is": {},
    "no weights for rare items": {"weight_exponent": 0.0},
    "no co-occurrence of items": {"cooccurrence_share": 0.001},
    "pure expectation maximisation": {"ratings.DAMPING": 1.0},
    "evidence does not fade": {"ratings.FADING": 1.0},
    "equal steps": {"budget.GROWTH": 1.0},
    "4 steps": {"steps": 4},
    "20 steps": {"steps": 20},
    "rank 4": {"rank": 4},
    "rank 16": {"rank": 16},
    "tastes expected twice as strong": {"taste_scale": 0.2},
    "rank 0, biases alone": {"rank": 0},
    "clip twice as wide": {"clip": 1.0},
}


def implicit() -> None:
    print("movielens_like, rating >= 4, 10,000 new users, simulated: Recall@20 on test")
    splits = {}
    for seed in SEEDS:
        splits[seed] = split_users(liked(dpals.simulate.movielens_like(seed=seed)), held_out=20_000, seed=seed)

    def score(make: Callable[[int], Estimator]) -> list[float]:
        return [_recall(make(seed).fit(split.train), split) for seed, split in splits.items()]

    reference = score(lambda _: dpals.ALS(**settings_for("items", "ALS", None)))
    show("ALS, tuned, not private", reference)
    for epsilon, ratio in RECALL_GOALS.items():
        ours = score(lambda seed, e=epsilon: dpals.PooledDPALS(e, insecure_seed=seed))
        show(f"PooledDPALS, epsilon {epsilon}", ours, ratio * float(np.mean(reference)), higher=True)
    others = score(lambda seed: make("DPALS", 1.0, seed, settings_for("items", "DPALS", 1.0)))
    show("DPALS, epsilon 1", others)


def budgets() -> None:
    print(f"movielens_like, {SMALLER['n_users']:,} users, simulated: test RMSE, and the best of the others")
    splits = [split_entries(dpals.simulate.movielens_like(**SMALLER, seed=seed), seed=seed)[::2] for seed in SEEDS]
    for epsilon in BUDGETS:
        scores = {
            method.__name__: [
                test_rmse(method(epsilon, insecure_seed=seed), *split) for seed, split in enumerate(splits, 1)
            ]
            for method in (dpals.PooledDPALS, dpals.PrivateBiases, dpals.DPALS, dpals.AdaDPALS)
        }
        ours = scores.pop("PooledDPALS")
        best = min(scores, key=lambda name: float(np.mean(scores[name])))
        print(f"  epsilon {epsilon}: {best} {np.mean(scores[best]):.4f}")
        show("PooledDPALS", ours, float(np.mean(scores[best])))


def ablation() -> None:
    epsilons = (1, 5, 20)
    print(f"movielens_like, {MEDIUM['n_users']:,} users, simulated: test RMSE at epsilon {epsilons}")
    splits = {seed: split_entries(dpals.simulate.movielens_like(**MEDIUM, seed=seed), seed=seed)[::2] for seed in SEEDS}
    for name, changes in ABLATION.items():
        means = []
        settings = {argument: value for argument, value in changes.items() if "." not in argument}
        for epsilon in epsilons:
            method = [dpals.PooledDPALS(epsilon, **settings, insecure_seed=seed) for seed in splits]
            with ExitStack() as patched:
                for constant in changes.keys() - settings.keys():
                    patched.enter_context(patch(f"dpals.methods.pooled.{constant}", changes[constant]))
                means.append(np.mean([test_rmse(m, *split) for m, split in zip(method, splits.values(), strict=True)]))
        print(f"  {name:32}" + "".join(f"{mean:9.4f}" for mean in means), flush=True)


def ml1m() -> None:
    ratings = read_ml1m()
    if ratings is None:
        return
    print(f"MovieLens 1M, 80/10/10, splits {ML1M_SEEDS}: test RMSE")
    splits = {seed: split_entries(ratings, seed=seed)[::2] for seed in ML1M_SEEDS}
    show(
        "ALS with biases",
        [test_rmse(dpals.ALS(**settings_for("ratings", "ALS", None, small=True)), *split) for split in splits.values()],
    )
    for epsilon, goal in ML1M_GOALS.items():
        ours = [test_rmse(dpals.PooledDPALS(epsilon, insecure_seed=seed), *split) for seed, split in splits.items()]
        show(f"PooledDPALS, epsilon {epsilon}", ours, goal)


def _recall(method: Estimator, split: UserSplit) -> float:
    ids, _ = method.recommend(split.test.history, k=20)
    return recall_at_k(ids, split.test.target, k=20)


PARTS = {"implicit": implicit, "budgets": budgets, "ablation": ablation, "ml-1m": ml1m}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
