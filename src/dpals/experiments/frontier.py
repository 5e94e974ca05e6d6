"""All methods of the library on all tasks: the picture to see first."""

import polars as pl
from matplotlib.figure import Figure

from dpals.experiments.experiment import Cell, Experiment, Scale, verdict
from dpals.experiments.tasks import METRICS
from dpals.experiments.tradeoffs import EPSILONS, PRIVATE, draw_tradeoff, lookup, series, tradeoff_cells

TITLES = {
    "ratings": "Rating prediction, all movies",
    "top400": "Rating prediction, the 400 most popular movies",
    "items": "Item recommendation",
}
EARLIER = ("DPFrankWolfe", "DPSVD", "DPSGD", "SGLD")


def cells(scale: Scale) -> list[Cell]:
    """Those of the three trade-offs; what they have measured is not measured again."""
    return [cell for task in TITLES for cell in tradeoff_cells(task, scale)]


def draw(table: pl.DataFrame) -> dict[str, Figure]:
    return {task: draw_tradeoff(table.filter(task=task), task, title) for task, title in TITLES.items()}


def findings(table: pl.DataFrame) -> list[str]:
    result = []
    for task, title in TITLES.items():
        here, number = table.filter(task=task), METRICS[task]
        for data in here["data"].unique(maintain_order=True):
            scores = {name: lookup(here, number, data=data, method=name, epsilon=1.0) for name in PRIVATE[task]}
            order = sorted(scores, key=scores.__getitem__, reverse=number != "RMSE")
            best = ", ".join(f"{name} {scores[name]:.4f}" for name in order[:3])
            result.append(f"{title}, {data}: best at epsilon 1 are {best}.")
            if number == "RMSE":
                result.append(_against_earlier(here, title, data))
    return result


def _against_earlier(table: pl.DataFrame, title: str, data: str) -> str:
    paper = series(table, "RMSE", data, "DPALS")
    better = {
        name: sum(a < b for a, b in zip(paper, series(table, "RMSE", data, name), strict=True)) for name in EARLIER
    }
    shown = ", ".join(f"than {name} at {count}" for name, count in better.items())
    return verdict(
        all(count == len(EPSILONS) for count in better.values()),
        f"{title}, {data}: of {len(EPSILONS)} epsilons DPALS is better {shown}.",
    )


EXPERIMENT = Experiment(
    name="frontier",
    title="Accuracy against privacy",
    claim="DPALS is better than all private methods before it, at every epsilon.",
    cells=cells,
    draw=draw,
    findings=findings,
)
