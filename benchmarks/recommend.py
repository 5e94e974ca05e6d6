"""Time of 20 recommendations for every user of simulated data in the shape of MovieLens 10M, user vectors included.

The models are by PooledDPALS, of rank 32: one of ratings and one of implicit feedback (ratings of at least 4). Seconds
of the processor, all cores together, are printed beside those of the clock, for machines are shared.
"""

import time
from collections.abc import Callable
from typing import Any

import polars as pl

import dpals
from dpals.evaluation.splits import liked

RANK, K = 32, 20
GOAL = 10.0
FEW = 500


def run() -> None:
    ratings = dpals.simulate.movielens_like(seed=1)
    for kind, history in (("ratings", ratings), ("implicit feedback", liked(ratings))):
        model = dpals.PooledDPALS(5.0, rank=RANK, steps=1, insecure_seed=1).fit(history)
        model.recommend(history.keep(history.rows < FEW), K)  # compiles
        print(
            f"{kind}, simulated: {history.n_users:,} users x {history.n_items:,} items, {history.n_ratings:,} entries"
        )
        print(f"  arrays: {_timed(model.recommend, history, K)} (goal {GOAL:g} s on 2 cores)", flush=True)
        columns = {"user": history.users[history.rows], "item": history.items[history.indices]}
        frame = pl.DataFrame(columns if history.is_implicit else {**columns, "rating": history.values})
        print(f"  frames: {_timed(model.recommend, frame, K)}", flush=True)


def _timed(work: Callable[..., Any], *arguments: Any) -> str:
    clock, processor = time.perf_counter(), time.process_time()
    work(*arguments)
    seconds, used = time.perf_counter() - clock, time.process_time() - processor
    return f"{seconds:.1f} s, {used:.1f} s of the processor"


if __name__ == "__main__":
    run()
