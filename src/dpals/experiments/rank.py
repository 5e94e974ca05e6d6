"""Accuracy against the length of the vectors."""

import polars as pl
from matplotlib.figure import Figure

from dpals.experiments.experiment import Cell, Experiment, Scale, verdict
from dpals.experiments.pictures import label, legend, line, panels
from dpals.experiments.tasks import METRICS, data_of, method_cell, score_label
from dpals.experiments.tradeoffs import EPSILONS

TITLE = "DPALS with vectors of different length"
RANKS = (4, 16, 64)
TASKS = ("ratings", "items")


def cells(scale: Scale) -> list[Cell]:
    return [
        method_cell(task, data_of(task, scale)[0], method, epsilon, seed, scale, {"rank": rank}, rank=rank)
        for task in TASKS
        for seed in scale.seeds(1 if task == "items" else 2)
        for rank in RANKS
        for method, epsilons in (("ALS", (None,)), ("DPALS", EPSILONS))
        for epsilon in epsilons
    ]


def draw(table: pl.DataFrame) -> dict[str, Figure]:
    names = [f"{task}: {table.filter(task=task)['data'][0]}" for task in TASKS]
    figure, axes = panels(TITLE, names)
    for axis, task in zip(axes, TASKS, strict=True):
        here = table.filter(task=task)
        for number, rank in enumerate(RANKS):
            line(axis, here.filter(method="DPALS", rank=rank), "epsilon", METRICS[task], f"rank {rank}", number)
        label(axis, "epsilon (delta 1e-5)", score_label(task), EPSILONS)
    return {"rank": legend(figure, axes)}


def findings(table: pl.DataFrame) -> list[str]:
    result = []
    for task in TASKS:
        here, number = table.filter(task=task), METRICS[task]
        sign = 1 if number == "RMSE" else -1

        def best(rows: pl.DataFrame, number: str = number, sign: int = sign) -> int:
            return min(rows.iter_rows(named=True), key=lambda row: sign * row[number])["rank"]  # type: ignore[no-any-return]

        exact = best(here.filter(method="ALS"))
        private = {epsilon: best(here.filter(method="DPALS", epsilon=epsilon)) for epsilon in EPSILONS}
        shown = ", ".join(f"{rank} at epsilon {epsilon:g}" for epsilon, rank in private.items())
        result.append(
            verdict(
                exact == max(RANKS) and private[EPSILONS[0]] < max(RANKS),
                f"{task}, {here['data'][0]}: best rank of ALS {exact}; of DPALS {shown}.",
            )
        )
    return result


EXPERIMENT = Experiment(
    name="rank",
    title=TITLE,
    claim=(
        "Without privacy longer vectors are always better; with it the best length falls with epsilon: 128 at epsilon "
        "20, 32 at epsilon 1."
    ),
    cells=cells,
    draw=draw,
    findings=findings,
)
