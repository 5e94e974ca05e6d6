"""What the experiments on accuracy against epsilon share."""

from collections.abc import Iterable

import polars as pl
from matplotlib.figure import Figure

from dpals.experiments.experiment import Cell, Scale
from dpals.experiments.pictures import label, legend, level, line, panels
from dpals.experiments.tasks import METRICS, data_of, method_cell, score_label
from dpals.methods.base.registry import NOT_PRIVATE

EPSILONS = (1.0, 5.0, 10.0, 20.0)
_OF_RATINGS = (
    "PooledDPALS", "AdaDPALS", "DPALS", "DPSGD", "SGLD", "DPSVD", "DPFrankWolfe", "PrivateBiases", "ItemMean",
)  # fmt: skip
_LEVELS_OF_RATINGS = ("ALS", "TraceNorm", "UserMean", "GlobalMean")
PRIVATE = {
    "ratings": _OF_RATINGS,
    "top400": _OF_RATINGS,
    "items": ("PooledDPALS", "AdaDPALS", "DPALS", "Popularity"),
}
LEVELS = {"ratings": _LEVELS_OF_RATINGS, "top400": _LEVELS_OF_RATINGS, "items": ("ALS",)}
"""Methods that are drawn as one line: they are not private, or the noise is too little to see."""


def tradeoff_cells(task: str, scale: Scale) -> list[Cell]:
    """Every method of a task at every epsilon."""
    return [
        method_cell(task, data, method, epsilon, seed, scale)
        for data in data_of(task, scale)
        for seed in scale.seeds()
        for methods, epsilons in ((LEVELS[task], (1.0,)), (PRIVATE[task], EPSILONS))
        for method in methods
        for epsilon in epsilons
    ]


def draw_tradeoff(table: pl.DataFrame, task: str, title: str) -> Figure:
    """One panel per data set, one line per private method."""
    names = table["data"].unique(maintain_order=True).to_list()
    figure, axes = panels(title, names)
    for axis, name in zip(axes, names, strict=True):
        here = table.filter(data=name)
        for method in PRIVATE[task]:
            line(axis, here.filter(method=method), "epsilon", METRICS[task], method)
        for number, method in enumerate(LEVELS[task]):
            level(axis, here.filter(method=method)[METRICS[task]].item(), level_name(method), number)
        label(axis, "epsilon (delta 1e-5)", score_label(task), EPSILONS)
    return legend(figure, axes)


def level_name(method: str) -> str:
    return f"{method}, not private" if method in NOT_PRIVATE else method


def lookup(table: pl.DataFrame, number: str, **labels: str | float) -> float:
    """One number of the table."""
    return float(table.filter(**labels)[number].item())


def series(table: pl.DataFrame, number: str, data: str, method: str) -> list[float]:
    """A method's numbers at all epsilons."""
    return [lookup(table, number, data=data, method=method, epsilon=epsilon) for epsilon in EPSILONS]


def listed(numbers: Iterable[float], digits: int = 4) -> str:
    """Numbers in a sentence."""
    return ", ".join(f"{number:.{digits}f}" for number in numbers)
