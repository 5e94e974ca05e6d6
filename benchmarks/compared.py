"""Every system of the library side by side: accuracy, time and memory at epsilon 1, 5, 10 and 20; delta 1e-5.

    python benchmarks/compared.py                       # everything, about an hour on two cores
    python benchmarks/compared.py synthetic             # or top400, movies, ml-1m
    python benchmarks/compared.py movies DPSGD SGLD     # some systems only

Settings of ALS, DPALS and AdaDPALS are those of quality.py, tuned once; those of the other systems are their defaults
or first guesses, not tuned yet. Reported are test parts of seeds 2 and 3 of simulated data, and splits 21 to 23 of
MovieLens 1M. Each system runs in a process of its own, so that its memory can be told; the data is counted in, as is
everything that Python needs.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import dpals
from dpals.evaluation.metrics import rmse
from dpals.evaluation.splits import pairs, split_entries, top_items
from quality import MOVIES as DPALS_MOVIES
from quality import MOVIES_ADA, MOVIES_DPALS, SYNTHETIC, SYNTHETIC_RIDGE
from scores import read_ml1m, show, test_rmse

EPSILONS = (1, 5, 10, 20)
SYNTHETIC_SEEDS = (1, 2, 3)
RATIO_GOAL = 7.0  # RMSE of Frank-Wolfe over that of DPALS, at epsilon 5 and above

FRANK_WOLFE = {"frequent_fraction": 1.0, "centre": False, "user_shrinkage": None}
SYNTHETIC_FRANK_WOLFE: dict[int, dict[str, Any]] = {
    1: {"steps": 3, "radius": 10.0, "row_clip": 10.0},
    5: {"steps": 10, "radius": 23.0, "row_clip": 16.0},
    10: {"steps": 10, "radius": 23.0, "row_clip": 16.0},
    20: {"steps": 10, "radius": 23.0, "row_clip": 16.0},
}


def _by_epsilon(common: dict[str, Any], tuned: dict[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Those settings that were tuned for the epsilon, or else for the nearest."""
    return {epsilon: {**common, **tuned[min(tuned, key=lambda e: abs(np.log(e / epsilon)))]} for epsilon in EPSILONS}


# Settings on movies, for all epsilons or one by one.
MOVIES: dict[str, dict[str, Any] | dict[int, dict[str, Any]]] = {
    "PooledDPALS": {},
    "AdaDPALS": _by_epsilon(DPALS_MOVIES, MOVIES_ADA),
    "DPALS": _by_epsilon(DPALS_MOVIES, MOVIES_DPALS),
    "DPFrankWolfe": {},
    "DPSVD": {},
    "DPSGD": {},
    "SGLD": {},
    "PrivateBiases": {},
    "ItemMean": {},
    "UserMean": {},
    "GlobalMean": {},
    "ALS": {"rank": 32, "steps": 12, "ridge": 16.0},
    "StagewiseALS": {"rank": 32, "steps": 3, "ridge": 16.0},
    "TraceNorm": {},
}
NOT_PRIVATE = ("ALS", "StagewiseALS", "TraceNorm")
SAME_AT_ALL = (*NOT_PRIVATE, "UserMean")


def synthetic() -> None:
    """The paper's comparison with Frank-Wolfe, private and not."""
    print("Paper's synthetic task, 50,000 simulated users: test RMSE")
    tasks = {seed: dpals.simulate.paper_synthetic(50_000, seed=seed) for seed in SYNTHETIC_SEEDS}
    plain = {"rank": 5, "ridge": 0.01, "biases": False}
    als = [test_rmse(dpals.ALS(steps=2, **plain), task.train, task.test) for task in tasks.values()]
    show("ALS, 2 iterations, not private", als)
    settings = {**FRANK_WOLFE, "row_clip": 1e6, "radius": 23.0, "pace": "falling"}
    walk = [test_rmse(dpals.DPFrankWolfe(None, steps=40, **settings), task.train, task.test) for task in tasks.values()]
    show("Frank-Wolfe, 40 iterations", walk)
    print(f"  ALS is {'below' if np.mean(als) < np.mean(walk) else 'NOT BELOW'} Frank-Wolfe")
    for epsilon in EPSILONS:
        scores: dict[str, list[float]] = {"DPALS": [], "DPFrankWolfe": []}
        for seed, task in tasks.items():
            methods = (
                dpals.DPALS(epsilon, **SYNTHETIC, ridge=SYNTHETIC_RIDGE[epsilon], insecure_seed=seed),
                dpals.DPFrankWolfe(epsilon, **{**FRANK_WOLFE, **SYNTHETIC_FRANK_WOLFE[epsilon]}, insecure_seed=seed),
            )
            for method in methods:
                scores[type(method).__name__].append(test_rmse(method, task.train, task.test))
        for name, values in scores.items():
            show(f"{name}, epsilon {epsilon}", values)
        ratio = np.mean(scores["DPFrankWolfe"]) / np.mean(scores["DPALS"])
        print(f"  ratio {ratio:.1f}" + (f" (goal {RATIO_GOAL:g})" if epsilon >= 5 else ""), flush=True)


def table(data: str, names: list[str]) -> None:
    """One line per system: mean test RMSE at each epsilon, seconds per fit, peak memory."""
    print(f"{TITLES[data]}: test RMSE at epsilon {EPSILONS}, most seconds of a fit, peak GB")
    for name in names or MOVIES:
        command = [sys.executable, __file__, "--one", data, name]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        result = json.loads(done.stdout)
        scores = [np.mean(result["scores"].get(str(epsilon), [np.nan])) for epsilon in EPSILONS]
        spread = max(np.std(values) for values in result["scores"].values())
        cells = "".join(f"{score:8.4f}" if np.isfinite(score) else "       =" for score in scores)
        print(
            f"  {name:14}{cells}  ± {spread:.4f}  {max(result['seconds']):6.1f} s  {result['gigabytes']:.2f}",
            flush=True,
        )


def one(data: str, name: str) -> None:
    """Fit one system at all epsilons; print what came out as JSON."""
    scores: dict[int, list[float]] = {}
    seconds = []
    _warm_up(name)
    for seed, train, test in _splits(data):
        for epsilon in EPSILONS[:1] if name in SAME_AT_ALL else EPSILONS:
            settings = MOVIES[name]
            settings = settings.get(epsilon, {}) if all(isinstance(key, int) for key in settings) else settings
            if name not in NOT_PRIVATE:
                settings = {"epsilon": epsilon, "insecure_seed": seed, **settings}
            start = time.perf_counter()
            method = getattr(dpals, name)(**settings).fit(train)
            seconds.append(time.perf_counter() - start)
            score = rmse(method.predict(train, *pairs(test)), np.asarray(test.values))
            scores.setdefault(epsilon, []).append(score)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"scores": scores, "seconds": seconds, "gigabytes": peak}))


def _splits(data: str) -> Iterator[tuple[int, dpals.Ratings, dpals.Ratings]]:
    if data == "ml-1m":
        ratings = read_ml1m()
        for seed in (21, 22, 23):
            train, _, test = split_entries(ratings, seed=seed)
            yield seed, train, test
        return
    for seed in (2, 3):
        ratings = dpals.simulate.movielens_like(seed=seed)
        train, _, test = split_entries(top_items(ratings, 400) if data == "top400" else ratings, seed=seed)
        yield seed, train, test


def _warm_up(name: str) -> None:
    """Compile the kernels."""
    few = dpals.simulate.movielens_like(n_users=300, n_items=60, mean_ratings=20)
    getattr(dpals, name)(**({} if name not in ("ALS", "StagewiseALS", "TraceNorm") else {"rank": 3})).fit(few)


TITLES = {
    "movies": "movielens_like at full size, simulated",
    "top400": "The 400 most popular items of movielens_like, simulated",
    "ml-1m": "MovieLens 1M",
}

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--one", data, name]:
            one(data, name)
        case ["synthetic"]:
            synthetic()
        case [data, *names]:
            table(data, names)
        case []:
            synthetic()
            for data in TITLES:
                if data != "ml-1m" or read_ml1m() is not None:
                    table(data, [])
