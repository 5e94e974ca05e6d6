"""Accuracy of PooledDPALS with its defaults, against what we set ourselves to reach; delta 1e-5, mean of three seeds.

    python benchmarks/pooled_quality.py             # everything, about two hours on two cores
    python benchmarks/pooled_quality.py ratings     # or budgets, ablation, implicit
    python benchmarks/pooled_quality.py budgets goodbooks anime

Defaults were chosen on validation parts of the rating sets (see `rating_sets.py`), and for implicit feedback on
simulated data of seed 1. Sets that are not on the machine are left out.
"""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import dpals
import rating_sets
from dpals.evaluation.metrics import recall_at_k
from dpals.evaluation.splits import UserSplit, liked, split_users
from dpals.experiments.settings import make, settings_for
from dpals.methods.base.estimator import Estimator
from dpals.public.item_weights import WeightEstimates
from scores import fitted_rmse, show, test_rmse

SEEDS = (1, 2, 3)
RECALL_GOALS = {1: 0.97, 5: 0.98, 10: 0.985, 20: 0.99}  # as multiples of ALS


def _as_released(weights: NDArray[np.float64], noise: float) -> WeightEstimates:  # noqa: ARG001
    return WeightEstimates.certain(np.maximum(weights, 0.0))


RMSE_GOALS = {  # at epsilon 1, 5 and 20
    "ml-1m": (0.932, 0.882, 0.852),
    "anime": (1.217, 1.184, 1.171),
    "goodbooks": (0.888, 0.876, 0.857),
    "bookcrossing": (1.603, 1.598, 1.593),
    "movielens_like": (0.7946, 0.7675, 0.757),
    "synthetic": (0.19, 0.01, 0.005),
}
BUDGETS = (0.1, 0.3, 1, 3, 10, 30, 100, 1000)
OTHERS = (dpals.PrivateBiases, dpals.DPSVD, dpals.DPSGD, dpals.SGLD, dpals.DPALS, dpals.AdaDPALS)
ABLATED = ("ml-1m", "anime", "goodbooks", "songs")
ABLATION: dict[str, dict[str, Any]] = {  # arguments, and constants of modules
    "the defaults": {},
    "released weights as they are": {"releases.weight_estimates": _as_released},
    "few ratings ignored": {"learner.Learner._sampling": property(lambda learner: np.zeros(len(learner.weights)))},
    "histories ignored": {"learner.Learner.start_histories": lambda *_: None},
    "tastes as expected": {"learner._PRIOR_WEIGHT": 1e12},
    "factors never start again, never dropped": {"learner.Comparison.speaks_against_factors": False},
    "as many steps if they start again": {"ratings.LONGER": 1},
    "not recentred": {"learner.Learner.recentre": lambda *_: None},
    "no weights for rare items": {"weight_exponent": 0.0},
    "little co-occurrence of items": {"cooccurrence_share": 0.001},
    "pure expectation maximisation": {"learner.DAMPING": 1.0},
    "evidence does not fade": {"ratings.FADING": 1.0},
    "4 steps": {"steps": 4},
    "16 steps": {"steps": 16},
    "rank 4": {"rank": 4},
    "rank 16": {"rank": 16},
    "tastes expected twice as strong": {"taste_scale": 1.2},
    "biases expected twice as strong": {"bias_scale": 0.9},
    "rank 0, biases alone": {"rank": 0},
    "clip twice as wide": {"clip": 1.2},
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


def ratings(*names: str) -> None:
    for name in names or RMSE_GOALS:
        parts = rating_sets.all_parts(name, SEEDS)
        if not parts:
            continue
        print(f"{rating_sets.title(name)}: test RMSE")
        for epsilon, goal in zip((1, 5, 20), RMSE_GOALS[name], strict=True):
            _show_rmse(f"PooledDPALS, epsilon {epsilon}", parts, lambda seed, e=epsilon: _seeded(e, seed), goal)
        _show_rmse("ALS, not private", parts, lambda _: dpals.ALS())


def _seeded(epsilon: float, seed: int) -> Estimator:
    return dpals.PooledDPALS(epsilon, insecure_seed=seed)


def _show_rmse(
    name: str, parts: dict[int, rating_sets.Parts], make: Callable[[int], Estimator], goal: float | None = None
) -> None:
    """Test RMSE; and again for users with training ratings, where the test part has others."""
    fitted = {seed: make(seed).fit(part.train) for seed, part in parts.items()}
    show(name, [fitted_rmse(method, parts[seed].train, parts[seed].test) for seed, method in fitted.items()], goal)
    known = {seed: rating_sets.with_history(part) for seed, part in parts.items()}
    if any(known[seed].n_ratings < part.test.n_ratings for seed, part in parts.items()):
        scores = [fitted_rmse(method, parts[seed].train, known[seed]) for seed, method in fitted.items()]
        show("  users with training ratings", scores, goal)


def budgets(*names: str) -> None:
    for name in names or rating_sets.SETS:
        parts = rating_sets.all_parts(name, SEEDS)
        if not parts:
            continue
        print(
            f"{rating_sets.title(name)}: test RMSE, and by how much it is above that of the best other private method"
        )
        last = np.inf
        for epsilon in BUDGETS:
            scores = {
                method.__name__: [
                    test_rmse(method(epsilon, insecure_seed=seed), part.train, part.test)
                    for seed, part in parts.items()
                ]
                for method in (dpals.PooledDPALS, *OTHERS)
            }
            means = {method: float(np.mean(found)) for method, found in scores.items()}
            ours = means.pop("PooledDPALS")
            best = min(means, key=lambda method: means[method])
            remarks = ["WORSE"] * (ours > 1.001 * means[best]) + ["RISES"] * (round(ours, 4) > round(last, 4))
            print(
                f"  epsilon {epsilon:6}: {ours:.4f} ± {np.std(scores['PooledDPALS']):.4f}  "
                f"{100 * (ours / means[best] - 1):+7.2f} %  {best} {means[best]:.4f}  {' '.join(remarks)}",
                flush=True,
            )
            last = ours
        reference = float(np.mean([test_rmse(dpals.ALS(), part.train, part.test) for part in parts.values()]))
        print(
            f"  ALS, not private: {reference:.4f}; PooledDPALS at epsilon 1000: {100 * (last / reference - 1):+.2f} %"
        )


def ablation(*names: str) -> None:
    epsilons = (1, 5, 20, 1000)
    for name in names or ABLATED:
        parts = rating_sets.all_parts(name, SEEDS)
        if not parts:
            continue
        print(f"{rating_sets.title(name)}: test RMSE at epsilon {epsilons}")
        for change, values in ABLATION.items():
            arguments = {key: value for key, value in values.items() if "." not in key}
            with ExitStack() as patched:
                for constant in values.keys() - arguments.keys():
                    patched.enter_context(patch(f"dpals.methods.pooled.{constant}", values[constant]))
                means = [
                    np.mean(
                        [
                            test_rmse(
                                dpals.PooledDPALS(epsilon, **arguments, insecure_seed=seed), part.train, part.test
                            )
                            for seed, part in parts.items()
                        ]
                    )
                    for epsilon in epsilons
                ]
            print(f"  {change:42}" + "".join(f"{mean:9.4f}" for mean in means), flush=True)


def _recall(method: Estimator, split: UserSplit) -> float:
    ids, _ = method.recommend(split.test.history, k=20)
    return recall_at_k(ids, split.test.target, k=20)


PARTS: dict[str, Callable[..., None]] = {
    "ratings": ratings,
    "budgets": budgets,
    "ablation": ablation,
    "implicit": implicit,
}

if __name__ == "__main__":
    if sys.argv[1:]:
        PARTS[sys.argv[1]](*sys.argv[2:])
    else:
        for part in PARTS.values():
            part()
