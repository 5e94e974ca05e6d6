"""Accuracy against epsilon on the 400 most popular movies: the paper's comparison with Frank-Wolfe and Private SVD."""

import polars as pl

from dpals.experiments.experiment import Experiment, verdict
from dpals.experiments.tradeoffs import draw_tradeoff, listed, lookup, series, tradeoff_cells

TITLE = "Rating prediction, the 400 most popular movies"


def findings(table: pl.DataFrame) -> list[str]:
    result = []
    for data in table["data"].unique(maintain_order=True):
        paper, frank_wolfe, svd = (series(table, "RMSE", data, name) for name in ("DPALS", "DPFrankWolfe", "DPSVD"))
        gains = [100 * (1 - a / b) for a, b in zip(paper, frank_wolfe, strict=True)]
        mean = lookup(table, "RMSE", data=data, method="GlobalMean")
        result += [
            verdict(
                min(gains) >= 7,
                f"{data}: DPALS is {listed(gains, 1)} per cent below DPFrankWolfe at epsilon 1, 5, 10, 20.",
            ),
            verdict(
                max(svd) > mean,
                f"{data}: DPSVD has {listed(svd)}, the global mean {mean:.4f}.",
            ),
        ]
    return result


EXPERIMENT = Experiment(
    name="tradeoff-top400",
    title=TITLE,
    claim=(
        "DPALS has a test RMSE 7 to 11.6 per cent below Frank-Wolfe, more at larger epsilon, and Private SVD is worse "
        "than the global mean; DPALS .8855, .8321, .8201, .8147 at epsilon 0.8, 4, 8, 16."
    ),
    cells=lambda scale: tradeoff_cells("top400", scale),
    draw=lambda table: {"tradeoff": draw_tradeoff(table, "top400", TITLE)},
    findings=findings,
)
