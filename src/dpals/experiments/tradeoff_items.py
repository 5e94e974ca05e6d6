"""Recall against epsilon in item recommendation: the paper's figure for MovieLens 20M."""

import polars as pl

from dpals.experiments.experiment import Experiment, verdict
from dpals.experiments.tradeoffs import draw_tradeoff, listed, lookup, series, tradeoff_cells

TITLE = "Item recommendation"


def findings(table: pl.DataFrame) -> list[str]:
    result = []
    for data in table["data"].unique(maintain_order=True):
        paper, ours, popular = (
            series(table, "Recall@20", data, name) for name in ("DPALS", "PooledDPALS", "Popularity")
        )
        reference = lookup(table, "Recall@20", data=data, method="ALS")
        result += [
            verdict(
                min(score / reference for score in paper) > 0.85,
                f"{data}: DPALS has {listed(paper)} at epsilon 1, 5, 10, 20, ALS without privacy {reference:.4f}.",
            ),
            verdict(
                all(a > b for a, b in zip(paper, popular, strict=True)),
                f"{data}: DPALS is above recommending what is popular, {listed(popular)}.",
            ),
            f"{data}: PooledDPALS, which the paper does not have, {listed(ours)}.",
        ]
    return result


EXPERIMENT = Experiment(
    name="tradeoff-items",
    title=TITLE,
    claim=(
        "Recall@20 of DPALS on MovieLens 20M degrades little, even at a small epsilon: .3120, .3330, .3368, .3444 at "
        "epsilon 1, 5, 10, 20, against .360 for ALS without privacy, and well above the most rated movies."
    ),
    cells=lambda scale: tradeoff_cells("items", scale),
    draw=lambda table: {"tradeoff": draw_tradeoff(table, "items", TITLE)},
    findings=findings,
)
