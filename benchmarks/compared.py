"""Every system of the library side by side: accuracy, time and memory at epsilon 1, 5, 10 and 20; delta 1e-5.

    python benchmarks/compared.py                       # everything, about an hour on two cores
    python benchmarks/compared.py synthetic             # or top400, movies, ml-1m
    python benchmarks/compared.py movies DPSGD SGLD     # some systems only

Settings are those of dpals.experiments.settings, tuned once on simulated data that is not reported on: seed 11 of the
synthetic task, validation parts of seeds 1 and 2 of movies. Reported are test parts, mean and largest spread of seeds.
Each system runs in a process of its own, so that its memory can be told; the data is counted in, as is everything that
Python needs.
"""

import json
import resource
import subprocess
import sys
import time

import numpy as np

import dpals
from dpals.experiments.experiment import Scale
from dpals.experiments.settings import AS_PUBLISHED, NOT_PRIVATE, make, settings_for
from dpals.experiments.tasks import SIMULATED, load_split, synthetic_split
from scores import read_ml1m, show

EPSILONS = (1, 5, 10, 20)
SEEDS = (21, 22)
RATIO_GOAL = 7.0  # RMSE of Frank-Wolfe over that of DPALS, at epsilon 5 and above
SYSTEMS = (
    "PooledDPALS",
    "DPSGD",
    "SGLD",
    "AdaDPALS",
    "DPALS",
    "DPSVD",
    "DPFrankWolfe",
    "PrivateBiases",
    "ItemMean",
    "UserMean",
    "GlobalMean",
    "ALS",
    "StagewiseALS",
    "TraceNorm",
)
SAME_AT_ALL = (*NOT_PRIVATE, "UserMean")  # they do not depend on epsilon
PARTS = {
    "top400": ("top400", SIMULATED, "The 400 most popular items of movielens_like, 98/1/1, simulated"),
    "movies": ("ratings", SIMULATED, "movielens_like at full size, 80/10/10, simulated"),
    "ml-1m": ("ratings", "ml-1m", "MovieLens 1M, 80/10/10"),
}


def synthetic() -> None:
    """The paper's comparison with Frank-Wolfe, private and not."""
    print("Paper's synthetic task, 50,000 simulated users: test RMSE")
    splits = {seed: synthetic_split(50_000, seed) for seed in (1, 2, 3)}

    def scores(method: str, epsilon: float | None, **changes: object) -> list[float]:
        settings = {**settings_for("synthetic", method, epsilon), **changes}
        return [split.fit_and_score(make(method, epsilon, seed, settings)) for seed, split in splits.items()]

    als = scores("ALS", None, steps=2)
    show("ALS, 2 iterations, not private", als)
    walk = scores("DPFrankWolfe", None)
    show("Frank-Wolfe, 40 iterations", walk)
    print(f"  ALS is {'below' if np.mean(als) < np.mean(walk) else 'NOT BELOW'} Frank-Wolfe")
    for epsilon in EPSILONS:
        ours = scores("DPALS", epsilon)
        show(f"DPALS, epsilon {epsilon}", ours)
        for method in (AS_PUBLISHED, "DPFrankWolfe"):
            theirs = scores(method, epsilon)
            show(f"{method}, epsilon {epsilon}", theirs)
            goal = f" (goal {RATIO_GOAL:g})" if epsilon >= 5 else ""
            print(f"    {np.mean(theirs) / np.mean(ours):.1f} times that of DPALS{goal}", flush=True)


def table(part: str, systems: list[str]) -> None:
    """One line per system: mean test RMSE at each epsilon, seconds per fit, peak memory."""
    print(f"{PARTS[part][2]}: test RMSE at epsilon {EPSILONS}, most seconds of a fit, peak GB")
    for system in systems or SYSTEMS:
        command = [sys.executable, __file__, "--one", part, system]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        result = json.loads(done.stdout)
        means = [np.mean(result["scores"].get(str(epsilon), [np.nan])) for epsilon in EPSILONS]
        spread = max(np.std(values) for values in result["scores"].values())
        cells = "".join(f"{mean:8.4f}" if np.isfinite(mean) else "       =" for mean in means)
        seconds, memory = max(result["seconds"]), result["gigabytes"]
        print(f"  {system:14}{cells}  ± {spread:.4f}  {seconds:6.1f} s  {memory:.2f}", flush=True)


def one(part: str, system: str) -> None:
    """Fit one system at all epsilons; print what came out as JSON."""
    task, data, _ = PARTS[part]
    scores: dict[int, list[float]] = {}
    seconds = []
    _warm_up(system)
    for seed in SEEDS:
        split = load_split(task, data, seed, Scale())
        for epsilon in EPSILONS[:1] if system in SAME_AT_ALL else EPSILONS:
            method = make(system, epsilon, seed, settings_for(task, system, epsilon, small=data == "ml-1m"))
            start = time.perf_counter()
            method.fit(split.train)
            seconds.append(time.perf_counter() - start)
            scores.setdefault(epsilon, []).append(split.score(method))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"scores": scores, "seconds": seconds, "gigabytes": peak}))


def _warm_up(system: str) -> None:
    """Compile the kernels."""
    few = dpals.simulate.movielens_like(n_users=300, n_items=60, mean_ratings=20)
    make(system, 1.0, 1, {"rank": 3} if system in NOT_PRIVATE else {}).fit(few)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--one", part, system]:
            one(part, system)
        case ["synthetic"]:
            synthetic()
        case [part, *systems]:
            table(part, systems)
        case []:
            synthetic()
            for part in PARTS:
                if part != "ml-1m" or read_ml1m() is not None:
                    table(part, [])
