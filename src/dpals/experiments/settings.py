"""Settings of each method on each task, tuned once on simulated data that no experiment reports on.

For each method: settings at all epsilons under None, and what differs at those epsilons that were tuned for. Other
epsilons have the settings of the nearest. A method that is not listed runs with its defaults.
"""

import math
from typing import Any

from dpals.methods.estimator import Estimator

Settings = dict[str, Any]
Tuned = dict[str, dict[float | None, Settings]]

NOT_PRIVATE = ("ALS", "StagewiseALS", "TraceNorm")
AS_PUBLISHED = "DPFrankWolfe as published"
"""Frank-Wolfe with the bound on users that its paper has; `product_clip`, which is ours, gives it a tighter one."""

_SYNTHETIC: Tuned = {
    "ALS": {None: {"rank": 5, "steps": 10, "ridge": 0.01, "biases": False}},
    "DPALS": {
        None: {
            "rank": 6,
            "steps": 2,
            "user_ridge": 1.0,
            "user_exponent": 0.0,
            "item_exponent": 0.0,
            "row_clip": 1.3,
            "entry_clip": 3.0,
            "ratings_per_user": 260,
            "sampling": "uniform",
            "frequent_fraction": 1.0,
            "centre": False,
            "start_scale": 0.15,
        },
        1: {"ridge": 1600.0},
        5: {"ridge": 400.0},
        10: {"ridge": 300.0},
        20: {"ridge": 200.0},
    },
}

_RATINGS: Tuned = {
    "ALS": {None: {"rank": 32, "steps": 12, "ridge": 16.0}},
    "StagewiseALS": {None: {"rank": 32, "steps": 3, "ridge": 16.0}},
    "DPALS": {
        None: {"rank": 16, "user_ridge": 5.0, "entry_clip": 2.0, "start_scale": 0.3, "row_clip": 0.7},
        1: {"rank": 8, "ridge": 200.0, "frequent_fraction": 0.1},
        5: {"ridge": 80.0, "frequent_fraction": 0.4},
        20: {"ridge": 60.0, "frequent_fraction": 0.6, "steps": 3},
    },
    "AdaDPALS": {
        None: {"rank": 16, "user_ridge": 5.0, "entry_clip": 2.0, "start_scale": 0.3, "row_clip": 0.7},
        1: {"rank": 8, "ridge": 20.0, "frequent_fraction": 0.1, "steps": 2},
        5: {"ridge": 10.0, "frequent_fraction": 0.4, "steps": 3},
        20: {"ridge": 5.0, "frequent_fraction": 0.6, "row_clip": 0.5, "steps": 4},
    },
}

_ITEMS: Tuned = {
    "ALS": {
        None: {"rank": 96, "steps": 12, "ridge": 8.0, "unseen_weight": 0.1, "user_exponent": 0.0, "item_exponent": 0.6}
    },
    "DPALS": {None: {"rank": 8, "frequent_fraction": 0.2}},
    "AdaDPALS": {None: {"rank": 8, "frequent_fraction": 0.2}},
}

_ALL: dict[str, Tuned] = {
    "synthetic": _SYNTHETIC,
    "ratings": _RATINGS,
    "top400": _RATINGS,
    "items": _ITEMS,
}


def settings_for(task: str, method: str, epsilon: float | None, small: bool = False) -> Settings:
    """Arguments of a method on a task, other than the budget. `small` is for data of thousands of users."""
    tuned = (_ALL.get(f"{task}, small", {}) if small else {}) or _ALL[task]
    by_epsilon = tuned.get(method, {})
    budgets = [budget for budget in by_epsilon if budget is not None]
    chosen = dict(by_epsilon.get(None, {}))
    if budgets and epsilon is not None:
        chosen |= by_epsilon[min(budgets, key=lambda budget: abs(math.log(budget / epsilon)))]
    return chosen


def make(method: str, epsilon: float | None, seed: int, settings: Settings) -> Estimator:
    """The method, with repeatable noise: experiments run on data that is simulated or published."""
    import dpals

    budget: Settings = {} if method in NOT_PRIVATE else {"epsilon": epsilon, "delta": 1e-5, "insecure_seed": seed}
    estimator: Estimator = getattr(dpals, method.partition(" ")[0])(**budget, **settings)
    return estimator
