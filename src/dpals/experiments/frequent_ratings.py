"""Accuracy against the share of movies that is trained on, at several epsilons."""

import polars as pl
from matplotlib.figure import Figure

from dpals.experiments.count_distribution import share_of_ratings
from dpals.experiments.experiment import Cell, Experiment, Scale, verdict
from dpals.experiments.pictures import label, legend, line, panels
from dpals.experiments.tasks import data_of, load_split, method_cell
from dpals.experiments.tradeoffs import EPSILONS

TITLE = "Training on frequent movies only"
FRACTIONS = (0.02, 0.05, 0.1, 0.2, 0.4, 1.0)


def cells(scale: Scale) -> list[Cell]:
    data = data_of("ratings", scale)[0]
    return [
        _with_share(
            method_cell(
                "ratings",
                data,
                "DPALS",
                epsilon,
                seed,
                scale,
                {"movies": fraction},
                frequent_fraction=fraction,
                rank=8,
            ),
            data,
            seed,
            fraction,
            scale,
        )
        for seed in scale.seeds(2)
        for epsilon in EPSILONS
        for fraction in FRACTIONS
    ]


def _with_share(cell: Cell, data: str, seed: int, fraction: float, scale: Scale) -> Cell:
    """The same cell, with the share of all ratings that the most popular movies have."""

    def measure() -> dict[str, float]:
        train = load_split("ratings", data, seed, scale).train
        return {**cell.measure(), "ratings": share_of_ratings(train, fraction)}

    return Cell(cell.labels, {**cell.settings, "with": "share"}, measure)


def draw(table: pl.DataFrame) -> dict[str, Figure]:
    figure, axes = panels(f"{TITLE}\n{table['data'][0]}", ["by movies", "by their ratings"])
    for axis, x in zip(axes, ("movies", "ratings"), strict=True):
        for number, epsilon in enumerate(EPSILONS):
            line(axis, table.filter(epsilon=epsilon), x, "RMSE", f"epsilon {epsilon:g}", number)
    label(axes[0], "share of the movies that is trained on", "test RMSE (lower is better)", FRACTIONS)
    label(axes[1], "their share of the ratings", "test RMSE (lower is better)")
    return {"frequent": legend(figure, axes)}


def findings(table: pl.DataFrame) -> list[str]:
    best = {}
    for epsilon in EPSILONS:
        row = table.filter(epsilon=epsilon).sort("RMSE").row(0, named=True)
        best[epsilon] = row["movies"], row["ratings"]
    shown = ", ".join(f"{movies:.0%} at epsilon {epsilon:g}" for epsilon, (movies, _) in best.items())
    order = [movies for movies, _ in best.values()]
    return [
        verdict(order == sorted(order) and order[0] < order[-1], f"{table['data'][0]}: the best share is {shown}."),
        verdict(
            best[1.0][1] > 0.5,
            f"{table['data'][0]}: at epsilon 1 the best share of the movies has {best[1.0][1]:.0%} of the ratings.",
        ),
    ]


EXPERIMENT = Experiment(
    name="frequent-ratings",
    title=TITLE,
    claim=(
        "The smaller epsilon, the fewer movies should be trained on: 5 per cent at epsilon 1, which still have more "
        "than half of the ratings."
    ),
    cells=cells,
    draw=draw,
    findings=findings,
)
