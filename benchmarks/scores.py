"""What the quality benchmarks share: scores of a method on a split, and lines that compare them with a goal."""

import numpy as np

import dpals
from dpals.evaluation.metrics import rmse
from dpals.evaluation.splits import pairs
from dpals.methods.base.estimator import Estimator


def test_rmse(method: Estimator, train: dpals.Ratings, test: dpals.Ratings) -> float:
    """RMSE on the test part of a method that is trained here."""
    return fitted_rmse(method.fit(train), train, test)


def fitted_rmse(method: Estimator, train: dpals.Ratings, test: dpals.Ratings) -> float:
    """The same of a method that is trained already."""
    return rmse(method.predict(train, *pairs(test)), np.asarray(test.values))


def show(name: str, scores: list[float], goal: float | None = None, higher: bool = False) -> None:
    """Mean and spread of the scores, and whether the mean is at most the goal, or at least where higher is better."""
    mean = float(np.mean(scores))
    verdict = ""
    if goal is not None:
        reached = mean >= goal if higher else mean <= goal
        verdict = f"   goal {goal:.4g}: {'reached' if reached else 'NOT REACHED'}"
    print(f"  {name:32} {mean:.4f} ± {np.std(scores):.4f}{verdict}", flush=True)
