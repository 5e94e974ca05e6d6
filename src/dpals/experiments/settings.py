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

_WALK: Settings = {"frequent_fraction": 1.0, "centre": False, "user_shrinkage": None, "radius": 70.0, "power_steps": 4}
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
    "AdaDPALS": {
        None: {
            "rank": 6,
            "steps": 2,
            "user_ridge": 1.0,
            "user_exponent": 0.0,
            "item_exponent": 0.0,
            "row_clip": 1.3,
            "entry_clip": 3.0,
            "frequent_fraction": 1.0,
            "centre": False,
            "start_scale": 0.15,
        },
        1: {"ridge": 100.0},
        5: {"ridge": 25.0},
        10: {"ridge": 20.0},
        20: {"ridge": 12.0},
    },
    "DPFrankWolfe": {
        None: _WALK,
        1: {"row_clip": 7.0, "product_clip": 0.1, "steps": 20},
        5: {"row_clip": 7.0, "product_clip": 0.25, "steps": 20, "power_steps": 3},
        10: {"row_clip": 8.0, "product_clip": 0.25, "steps": 30},
        20: {"row_clip": 9.0, "product_clip": 0.25, "steps": 40},
    },
    AS_PUBLISHED: {
        None: {**_WALK, "product_clip": 1.0},
        1: {"row_clip": 5.0, "radius": 90.0, "steps": 10},
        5: {"row_clip": 7.0, "radius": 90.0, "steps": 20},
        10: {"row_clip": 7.0, "steps": 20},
        20: {"row_clip": 9.0, "radius": 90.0, "steps": 30},
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
    "DPSGD": {
        None: {
            "rank": 4,
            "steps": 40,
            "learning_rate": 12.0,
            "gradient_clip": 7.0,
            "user_ridge": 1.5,
            "start_scale": 0.05,
        },
        1: {"learning_rate": 7.0},
        5: {},
    },
    "SGLD": {
        None: {
            "rank": 4,
            "steps": 40,
            "longest_step": 8.0,
            "gradient_clip": 14.0,
            "noise_scale": 0.25,
            "average": 0.25,
            "start_scale": 0.05,
        },
        1: {"gradient_clip": 3.5, "noise_scale": 0.35},
        5: {},
        20: {"rank": 8},
    },
}

_RATINGS_SMALL: Tuned = {
    "ALS": {None: {"rank": 16, "steps": 12, "ridge": 16.0}},
    "StagewiseALS": {None: {"rank": 16, "steps": 3, "ridge": 16.0}},
    "DPALS": {
        None: {"rank": 4, "steps": 3, "ratings_per_user": 80, "user_ridge": 2.0, "entry_clip": 1.5, "row_clip": 0.5},
        1: {"ridge": 300.0, "frequent_fraction": 0.05},
        5: {"ridge": 80.0, "frequent_fraction": 0.2},
        20: {"ridge": 20.0, "frequent_fraction": 0.4},
    },
    "AdaDPALS": {
        None: {"rank": 16, "user_ridge": 2.0, "entry_clip": 1.5, "row_clip": 0.5},
        1: {"rank": 4, "steps": 3, "ridge": 40.0, "frequent_fraction": 0.1},
        5: {"ridge": 10.0, "frequent_fraction": 0.2},
        20: {"steps": 3, "ridge": 5.0, "frequent_fraction": 0.6, "row_clip": 0.7},
    },
    "DPSGD": {
        None: {"rank": 4, "steps": 20, "gradient_clip": 7.0, "user_ridge": 1.5, "start_scale": 0.05},
        1: {"rank": 2, "learning_rate": 1.0},
        5: {"learning_rate": 4.0},
        20: {"learning_rate": 7.0},
    },
    "SGLD": {
        None: {
            "rank": 4,
            "steps": 20,
            "longest_step": 8.0,
            "gradient_clip": 5.0,
            "noise_scale": 0.25,
            "average": 0.25,
            "start_scale": 0.05,
        },
        1: {"rank": 2, "gradient_clip": 1.0},
        5: {},
        20: {"gradient_clip": 7.0},
    },
    "DPFrankWolfe": {
        None: {
            "radius": 10.0,
            "row_clip": 7.0,
            "product_clip": 0.15,
            "steps": 5,
            "power_steps": 3,
            "user_shrinkage": 10.0,
        },
        1: {"radius": 20.0, "steps": 3, "frequent_fraction": 0.4},
        5: {"frequent_fraction": 0.2},
        20: {"row_clip": 10.0, "product_clip": 0.3, "frequent_fraction": 0.4},
    },
}

_RATINGS_SMALL["DPSVD"] = {}
_TOP400: Tuned = {}
_ITEMS: Tuned = {
    "ALS": {
        None: {"rank": 96, "steps": 12, "ridge": 8.0, "unseen_weight": 0.1, "user_exponent": 0.0, "item_exponent": 0.6}
    },
    "DPALS": {
        None: {"rank": 32, "steps": 3, "ridge": 160.0, "row_clip": 0.5, "frequent_fraction": 0.2},
        5: {},
        20: {"rank": 64, "row_clip": 0.7},
    },
}

_ALL: dict[str, Tuned] = {
    "synthetic": _SYNTHETIC,
    "ratings": _RATINGS,
    "ratings, small": _RATINGS_SMALL,
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
