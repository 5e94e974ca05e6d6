"""The table of optimal hyper-parameters in the paper's appendix, column by column."""

from typing import Any

_ROWS: dict[str, dict[str, tuple[Any, ...]]] = {
    "ml-10m-top400": {
        "epsilon": (0.8, 4, 8, 16, None),
        "rank": (50, 50, 50, 50, 50),
        "ridge": (90.0, 90.0, 80.0, 80.0, 70.0),
        "unseen_weight": (0.0, 0.0, 0.0, 0.0, 0.0),
        "item_exponent": (0.5, 0.5, 0.5, 0.5, 1.0),
        "user_exponent": (1.0, 1.0, 1.0, 1.0, 1.0),
        "steps": (2, 2, 2, 2, 15),
        "ratings_per_user": (40, 50, 50, 50, None),
        "gram_noise": (126.9, 29.0, 11.3, 5.86, None),
        "moment_noise": (63.4, 14.5, 11.3, 5.86, None),
        "frequent_fraction": (1.0, 1.0, 1.0, 1.0, None),
        "count_noise": (200.0, 200.0, 20.0, 20.0, None),
    },
    "ml-10m": {
        "epsilon": (1, 5, 10, 20, None),
        "rank": (32, 128, 128, 128, 128),
        "ridge": (120.0, 80.0, 70.0, 60.0, 70.0),
        "unseen_weight": (0.0, 0.0, 0.0, 0.0, 0.0),
        "item_exponent": (0.5, 0.5, 0.5, 0.5, 1.0),
        "user_exponent": (1.0, 1.0, 1.0, 1.0, 1.0),
        "steps": (2, 2, 2, 2, 15),
        "ratings_per_user": (50, 50, 50, 50, None),
        "gram_noise": (125.9, 27.8, 15.5, 7.5, None),
        "moment_noise": (63.0, 13.9, 7.7, 3.8, None),
        "frequent_fraction": (0.05, 0.4, 0.5, 0.6, None),
        "count_noise": (100.0, 20.0, 10.0, 10.0, None),
    },
    "ml-20m": {
        "epsilon": (1, 5, 10, 20, None),
        "rank": (32, 32, 32, 128, 128),
        "ridge": (0.5, 0.5, 0.1, 50.0, 30.0),
        "unseen_weight": (2.0, 0.6, 0.4, 0.4, 0.1),
        "item_exponent": (0.0, 0.0, 0.0, 0.0, 0.0),
        "user_exponent": (0.0, 0.0, 0.0, 0.0, 0.0),
        "steps": (1, 3, 3, 1, 15),
        "ratings_per_user": (60, 60, 100, 60, None),
        "gram_noise": (64.0, 20.2, 14.0, 3.5, None),
        "moment_noise": (64.0, 20.2, 14.0, 3.5, None),
        "frequent_fraction": (0.05, 0.1, 0.05, 0.05, None),
        "count_noise": (100.0, 100.0, 100.0, 100.0, None),
    },
}
_SAME_FOR_ALL: dict[str, dict[str, Any]] = {
    "ml-10m-top400": {"entry_clip": 5.0, "typical_count": 63.1, "delta": 1e-5},
    "ml-10m": {"entry_clip": 5.0, "typical_count": 114.5, "delta": 1e-5},
    "ml-20m": {"entry_clip": 1.0, "delta": 1 / 136_677},
}
"""Also in the paper, but not in its table. typical_count is its Z, the mean number of ratings, as a constant."""

PRINTED_EPSILONS: dict[str, tuple[float, ...]] = {name: rows["epsilon"][:-1] for name, rows in _ROWS.items()}


def private_settings(name: str, epsilon: float) -> dict[str, Any]:
    """Arguments of `DPALS` for one private column; the noise scales are those printed."""
    rows, printed = _table(name), PRINTED_EPSILONS[name]
    if epsilon not in printed:
        raise ValueError(f"the paper has epsilon {', '.join(map(str, printed))} for {name}, not {epsilon}")
    column = rows["epsilon"].index(epsilon)
    return {key: row[column] for key, row in rows.items() if key != "epsilon"} | {
        "row_clip": 1.0,
        "user_ridge": None,
        **_SAME_FOR_ALL[name],
    }


def reference_settings(name: str) -> dict[str, Any]:
    """Arguments of `ALS` for the column that is not private."""
    kept = ("rank", "ridge", "unseen_weight", "item_exponent", "user_exponent", "steps")
    return {key: _table(name)[key][-1] for key in kept}


def _table(name: str) -> dict[str, tuple[Any, ...]]:
    if name not in _ROWS:
        raise ValueError(f"the paper has settings for {', '.join(_ROWS)}, not for {name!r}")
    return _ROWS[name]
