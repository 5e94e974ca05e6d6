"""Recall against the share of movies that is trained on, in item recommendation."""

import polars as pl
from matplotlib.figure import Figure

from dpals.experiments.experiment import Cell, Experiment, Scale, verdict
from dpals.experiments.pictures import label, legend, line, panels
from dpals.experiments.tasks import data_of, method_cell

TITLE = "Training on frequent movies only, item recommendation, epsilon 5"
FRACTIONS = (0.02, 0.05, 0.1, 0.2, 0.4)
RANKS = (8, 32)


def cells(scale: Scale) -> list[Cell]:
    data = data_of("items", scale)[0]
    return [
        method_cell(
            "items",
            data,
            "DPALS",
            5.0,
            seed,
            scale,
            {"rank": rank, "movies": fraction},
            frequent_fraction=fraction,
            rank=rank,
        )
        for seed in scale.seeds(1)
        for rank in RANKS
        for fraction in FRACTIONS
    ]


def draw(table: pl.DataFrame) -> dict[str, Figure]:
    figure, (axis,) = panels(TITLE, [table["data"][0]])
    for number, rank in enumerate(RANKS):
        line(axis, table.filter(rank=rank), "movies", "Recall@20", f"rank {rank}", number)
    label(axis, "share of the movies that is trained on", "test Recall@20 (higher is better)", FRACTIONS)
    return {"frequent": legend(figure, [axis])}


def findings(table: pl.DataFrame) -> list[str]:
    best = {}
    for rank in RANKS:
        best[rank] = table.filter(rank=rank).sort("Recall@20", descending=True)["movies"][0]
    shown = ", ".join(f"{share:.0%} with rank {rank}" for rank, share in best.items())
    return [
        verdict(all(0.05 <= share <= 0.1 for share in best.values()), f"{table['data'][0]}: the best share is {shown}.")
    ]


EXPERIMENT = Experiment(
    name="frequent-items",
    title=TITLE,
    claim="The best share of movies to train on is between 5 and 10 per cent, depending on the rank.",
    cells=cells,
    draw=draw,
    findings=findings,
)
