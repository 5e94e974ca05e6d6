"""Settings of each method on each task, tuned once on simulated data that no experiment reports on.

For each method: settings at all epsilons under None, and what differs at those epsilons that were tuned for. Other
epsilons have the settings of the nearest. A method that is not listed runs with its defaults.
"""

import math
from typing import Any

from dpals.methods.base.estimator import Estimator
from dpals.methods.base.registry import NOT_PRIVATE

Settings = dict[str, Any]
Tuned = dict[str, dict[float | None, Settings]]

AS_PUBLISHED = "DPFrankWolfe as published"
"""Frank-Wolfe with the bound on users that its paper has; `product_clip`, which is ours, gives it a tighter one."""

_DPALS: Settings = {
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
}
_FRANK_WOLFE: Settings = {"frequent_fraction": 1.0, "centre": False, "user_shrinkage": None}
_FRANK_WOLFE_PRIVATE: Settings = {"radius": 70.0, "power_steps": 4}
_DPSGD: Settings = {"rank": 4, "steps": 40, "user_ridge": 1.5, "start_scale": 0.05}
_SGLD: Settings = {
    "rank": 4,
    "steps": 40,
    "longest_step": 8.0,
    "noise_scale": 0.25,
    "average": 0.25,
    "start_scale": 0.05,
}

_SYNTHETIC: Tuned = {
    "ALS": {None: {"rank": 5, "steps": 10, "ridge": 0.01, "biases": False}},
    "DPALS": {
        None: {**_DPALS, "ratings_per_user": 260, "sampling": "uniform"},
        1: {"ridge": 1600.0},
        5: {"ridge": 400.0},
        10: {"ridge": 300.0},
        20: {"ridge": 200.0},
    },
    "AdaDPALS": {
        None: _DPALS,
        1: {"ridge": 100.0},
        5: {"ridge": 25.0},
        10: {"ridge": 20.0},
        20: {"ridge": 12.0},
    },
    "DPFrankWolfe": {
        None: {**_FRANK_WOLFE, "radius": 70.0, "steps": 40, "row_clip": 9.0},  # without privacy
        1: {**_FRANK_WOLFE_PRIVATE, "row_clip": 7.0, "product_clip": 0.1, "steps": 20},
        5: {**_FRANK_WOLFE_PRIVATE, "row_clip": 8.0, "product_clip": 0.17, "steps": 30},
        10: {**_FRANK_WOLFE_PRIVATE, "row_clip": 8.0, "product_clip": 0.25, "steps": 30},
        20: {**_FRANK_WOLFE_PRIVATE, "row_clip": 9.0, "product_clip": 0.25, "steps": 40},
    },
    AS_PUBLISHED: {
        None: {**_FRANK_WOLFE, **_FRANK_WOLFE_PRIVATE, "product_clip": 1.0},
        1: {"row_clip": 5.0, "radius": 90.0, "steps": 10},
        5: {"row_clip": 7.0, "radius": 90.0, "steps": 20},
        10: {"row_clip": 7.0, "steps": 20},
        20: {"row_clip": 9.0, "radius": 90.0, "steps": 30},
    },
}

_RATINGS: Tuned = {
    "ALS": {None: {"rank": 32, "steps": 12, "ridge": 16.0}},
    "StagewiseALS": {None: {"rank": 32, "steps": 3, "ridge": 16.0}},
    "TraceNorm": {None: {"penalty": 35.0}},
    "DPALS": {
        None: {"rank": 16, "user_ridge": 10.0, "entry_clip": 1.5, "row_clip": 0.7},
        1: {
            "rank": 8,
            "steps": 2,
            "ratings_per_user": 120,
            "user_ridge": 5.0,
            "entry_clip": 1.0,
            "row_clip": 0.35,
            "ridge": 160.0,
            "frequent_fraction": 0.1,
        },
        5: {"steps": 3, "ratings_per_user": 80, "ridge": 80.0, "frequent_fraction": 0.4},
        20: {"steps": 4, "ratings_per_user": 120, "ridge": 40.0, "frequent_fraction": 0.6},
    },
    "AdaDPALS": {
        None: {"rank": 16, "steps": 3, "user_ridge": 5.0, "entry_clip": 1.5, "row_clip": 0.5},
        1: {"rank": 8, "entry_clip": 1.0, "row_clip": 0.35, "ridge": 20.0, "frequent_fraction": 0.1},
        5: {"ridge": 10.0, "frequent_fraction": 0.4},
        20: {"steps": 5, "ridge": 5.0, "frequent_fraction": 0.6},
    },
    "DPSGD": {
        None: {**_DPSGD, "learning_rate": 12.0, "gradient_clip": 7.0},
        1: {"learning_rate": 7.0},
        5: {},
    },
    "SGLD": {
        None: {**_SGLD, "gradient_clip": 14.0},
        1: {"gradient_clip": 3.5, "noise_scale": 0.35},
        5: {},
        20: {"rank": 8},
    },
    "DPSVD": {
        None: {"rank": 8, "most_items": 800, "entry_clip": 0.6, "row_clip": 10.0, "ridge": 20.0, "bias_share": 0.3},
        1: {"rank": 24, "entry_clip": 1.7},
        5: {},
        20: {"rank": 24, "ridge": 40.0},
    },
    "DPFrankWolfe": {
        None: {"product_clip": 0.15, "radius": 20.0, "steps": 10},
        1: {"row_clip": 5.0, "steps": 5, "power_steps": 3, "user_shrinkage": 10.0},
        5: {"radius": 40.0, "row_clip": 5.0, "frequent_fraction": 0.4},
        20: {"row_clip": 10.0, "power_steps": 4, "user_shrinkage": 10.0},
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
        None: {**_DPSGD, "steps": 20, "gradient_clip": 7.0},
        1: {"rank": 2, "learning_rate": 1.0},
        5: {"learning_rate": 4.0},
        20: {"learning_rate": 7.0},
    },
    "SGLD": {
        None: {**_SGLD, "steps": 20, "gradient_clip": 5.0},
        1: {"rank": 2, "gradient_clip": 1.0},
        5: {},
        20: {"gradient_clip": 7.0},
    },
    "DPSVD": {
        None: {"rank": 6, "most_items": 800, "entry_clip": 0.6, "row_clip": 7.5, "ridge": 20.0},
        1: {"bias_share": 0.5},
        5: {"row_clip": 4.0},
        20: {"bias_share": 0.3},
    },
    "DPFrankWolfe": {
        None: {"row_clip": 7.0, "product_clip": 0.15, "steps": 5, "power_steps": 3, "user_shrinkage": 10.0},
        1: {"radius": 20.0, "steps": 3, "frequent_fraction": 0.4},
        5: {"frequent_fraction": 0.2},
        20: {"row_clip": 10.0, "product_clip": 0.3, "frequent_fraction": 0.4},
    },
}

_TOP400: Tuned = {
    "ALS": {None: {"rank": 32, "steps": 12, "ridge": 50.0}},
    "StagewiseALS": {None: {"rank": 32, "steps": 3, "ridge": 50.0}},
    "TraceNorm": {None: {"penalty": 50.0}},
    "DPALS": {
        None: {"rank": 32, "steps": 3, "ridge": 600.0, "user_ridge": 5.0, "entry_clip": 1.5, "frequent_fraction": 1.0},
        1: {"row_clip": 0.5},
        5: {},
        20: {"ratings_per_user": 80},
    },
    "AdaDPALS": {
        None: {"steps": 3, "ridge": 80.0, "row_clip": 0.5, "entry_clip": 1.5, "frequent_fraction": 1.0},
        5: {},
        20: {"steps": 5, "row_clip": 0.7},
    },
    "DPSGD": {
        None: {**_DPSGD, "learning_rate": 7.0, "gradient_clip": 10.0},
        1: {"learning_rate": 4.0},
        5: {},
    },
    "DPSVD": {
        None: {"rank": 16, "entry_clip": 0.8, "row_clip": 10.0, "ridge": 20.0},
        1: {"row_clip": 7.5},
        5: {"entry_clip": 0.6},
        20: {"ridge": 40.0},
    },
    "SGLD": {
        None: {**_SGLD, "gradient_clip": 7.0},
        1: {"rank": 2, "gradient_clip": 3.5},
        5: {},
    },
    "DPFrankWolfe": {
        None: {"radius": 20.0, "row_clip": 7.0, "product_clip": 0.15, "power_steps": 3, "frequent_fraction": 1.0},
        1: {"radius": 10.0, "steps": 5},
        5: {},
    },
}

_ITEMS: Tuned = {
    "ALS": {
        None: {"rank": 96, "steps": 12, "ridge": 8.0, "unseen_weight": 0.1, "user_exponent": 0.0, "item_exponent": 0.6}
    },
    "DPALS": {
        None: {"rank": 64, "steps": 3, "ridge": 160.0, "row_clip": 0.5, "frequent_fraction": 0.2},
        1: {"rank": 16, "frequent_fraction": 0.1},
        5: {},
        20: {"row_clip": 0.7},
    },
    "AdaDPALS": {
        None: {"rank": 64, "steps": 3, "unseen_weight": 0.05, "row_clip": 0.5, "frequent_fraction": 0.2},
        1: {"rank": 16, "ridge": 20.0, "frequent_fraction": 0.1},
        5: {},
    },
}

_ITEMS_SMALL: Tuned = {
    "ALS": {None: {**_ITEMS["ALS"][None], "rank": 64, "ridge": 4.0, "unseen_weight": 0.2}},
    "DPALS": {
        None: {"steps": 3, "unseen_weight": 0.2, "row_clip": 0.35, "frequent_fraction": 0.1},
        1: {"rank": 8, "steps": 2, "frequent_fraction": 0.05},
        5: {},
        20: {"rank": 32, "ridge": 40.0},
    },
    "AdaDPALS": {
        None: {"unseen_weight": 0.2, "row_clip": 0.35, "frequent_fraction": 0.1},
        1: {"rank": 8, "frequent_fraction": 0.05},
        5: {},
        20: {"rank": 32, "steps": 3, "ridge": 5.0, "frequent_fraction": 0.2},
    },
}


def _on_all_items(tuned: Tuned) -> Tuned:
    """The same where all items are frequent."""
    everything = {"frequent_fraction": 1.0}
    return {
        method: {
            epsilon: settings | everything if everything.keys() <= settings.keys() else settings
            for epsilon, settings in by_epsilon.items()
        }
        for method, by_epsilon in tuned.items()
    }


_ALL: dict[str, Tuned] = {
    "synthetic": _SYNTHETIC,
    "ratings": _RATINGS,
    "ratings, small": _RATINGS_SMALL,
    "top400": {**_RATINGS, **_TOP400},
    "top400, small": _on_all_items(_RATINGS_SMALL),
    "items": _ITEMS,
    "items, small": _ITEMS_SMALL,
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
