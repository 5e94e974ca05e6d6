"""Accuracy against epsilon on all movies: the paper's figure for MovieLens 10M."""

import polars as pl

from dpals.experiments.experiment import Experiment, verdict
from dpals.experiments.tradeoffs import draw_tradeoff, listed, lookup, series, tradeoff_cells

TITLE = "Rating prediction, all movies"


def findings(table: pl.DataFrame) -> list[str]:
    result = []
    for data in table["data"].unique(maintain_order=True):
        paper, frank_wolfe, ours = (
            series(table, "RMSE", data, name) for name in ("DPALS", "DPFrankWolfe", "PooledDPALS")
        )
        reference = lookup(table, "RMSE", data=data, method="ALS")
        result += [
            verdict(
                all(a < b for a, b in zip(paper, frank_wolfe, strict=True)),
                f"{data}: DPALS has {listed(paper)} at epsilon 1, 5, 10, 20, DPFrankWolfe {listed(frank_wolfe)}.",
            ),
            f"{data}: PooledDPALS, which the paper does not have, {listed(ours)}; ALS without privacy {reference:.4f}.",
        ]
    return result


EXPERIMENT = Experiment(
    name="tradeoff-ratings",
    title=TITLE,
    claim=(
        "DPALS is better than Frank-Wolfe on all of MovieLens 10M as well; test RMSE .9398, .8725, .8530, .8373 at "
        "epsilon 1, 5, 10, 20, and .785 for ALS without privacy."
    ),
    cells=lambda scale: tradeoff_cells("ratings", scale),
    draw=lambda table: {"tradeoff": draw_tradeoff(table, "ratings", TITLE)},
    findings=findings,
)
