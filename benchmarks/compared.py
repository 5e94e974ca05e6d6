"""Time and memory of every system, on simulated ratings in the shape of MovieLens 10M, at epsilon 1.

    python benchmarks/compared.py                # all of them, a few minutes on two cores
    python benchmarks/compared.py DPSGD SGLD     # some

How accurate they are, `dpals reproduce frontier` shows. Each system runs in a process of its own, so that its memory
can be told; the data is counted in, as is everything that Python needs.
"""

import json
import resource
import subprocess
import sys
import time

import dpals
from dpals.experiments.experiment import Scale
from dpals.experiments.settings import make, settings_for
from dpals.experiments.tasks import SIMULATED, load_split
from dpals.experiments.tradeoffs import LEVELS, PRIVATE
from dpals.methods.base.registry import NOT_PRIVATE

SYSTEMS = (*PRIVATE["ratings"], *LEVELS["ratings"], "StagewiseALS")


def table(systems: list[str]) -> None:
    """One line per system."""
    print("movielens_like at full size, simulated: seconds of a fit at epsilon 1, peak GB, test RMSE")
    for system in systems or SYSTEMS:
        done = subprocess.run(
            [sys.executable, __file__, "--one", system], check=True, stdout=subprocess.PIPE, text=True
        )
        seconds, gigabytes, score = json.loads(done.stdout)
        print(f"  {system:14} {seconds:6.1f} s  {gigabytes:.2f} GB  {score:.4f}", flush=True)


def one(system: str) -> None:
    """Fit one system, and print what it took as JSON."""
    few = dpals.simulate.movielens_like(n_users=300, n_items=60, mean_ratings=20)
    make(system, 1.0, 1, {"rank": 3} if system in NOT_PRIVATE else {}).fit(few)  # compiles the kernels
    split = load_split("ratings", SIMULATED, 21, Scale())
    method = make(system, 1.0, 21, settings_for("ratings", system, 1.0))
    start = time.perf_counter()
    method.fit(split.train)
    seconds = time.perf_counter() - start
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps([seconds, gigabytes, split.score(method)]))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--one", system]:
            one(system)
        case systems:
            table(systems)
