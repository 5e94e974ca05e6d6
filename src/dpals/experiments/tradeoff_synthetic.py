"""Accuracy against epsilon on the paper's synthetic task, for several numbers of users."""

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from dpals.experiments.experiment import Cell, Experiment, Scale, verdict
from dpals.experiments.pictures import label, legend, line, panels
from dpals.experiments.settings import AS_PUBLISHED, make, settings_for
from dpals.experiments.tasks import synthetic_split
from dpals.experiments.tradeoffs import EPSILONS, listed

TITLE = "Synthetic task of the paper, simulated"
METHODS = ("DPALS", "DPFrankWolfe", AS_PUBLISHED, "AdaDPALS", "PooledDPALS")


def cells(scale: Scale) -> list[Cell]:
    sizes = (2_000,) if scale.quick else (5_000, 10_000, 20_000, 50_000)
    return [
        _cell(n_users, method, epsilon, seed)
        for n_users in sizes
        for seed in scale.seeds()
        for method in METHODS
        for epsilon in EPSILONS
    ]


def _cell(n_users: int, method: str, epsilon: float, seed: int) -> Cell:
    settings = settings_for("synthetic", method, epsilon)

    def measure() -> dict[str, float]:
        return {"RMSE": synthetic_split(n_users, seed).fit_and_score(make(method, epsilon, seed, settings))}

    labels = {"users, simulated": n_users, "method": method, "epsilon": epsilon, "seed": seed}
    return Cell(labels, {"task": "synthetic", "settings": settings}, measure)


def draw(table: pl.DataFrame) -> dict[str, Figure]:
    sizes = table["users, simulated"].unique(maintain_order=True).to_list()
    figure, axes = panels(TITLE, [f"{size:,} users" for size in sizes])
    for axis, size in zip(axes, sizes, strict=True):
        for method in METHODS:
            line(axis, table.filter(pl.col("users, simulated") == size, method=method), "epsilon", "RMSE", method)
        axis.axhline(1, color="#7F7F7F", linestyle="--", label="always predict the mean")
        label(axis, "epsilon (delta 1e-5)", "test RMSE (lower is better)", EPSILONS)
        axis.set_yscale("log")
        axis.set_ylim(0.001, 1.5)
    return {"tradeoff": legend(figure, axes)}


def findings(table: pl.DataFrame) -> list[str]:
    largest = table.filter(pl.col("users, simulated") == pl.col("users, simulated").max())
    scores = {name: largest.filter(method=name).sort("epsilon")["RMSE"].to_numpy() for name in METHODS}
    improves = all(
        np.all(np.diff(table.filter(method=name, epsilon=epsilon)["RMSE"].to_numpy()) < 0)
        for name in ("DPALS", AS_PUBLISHED)
        for epsilon in EPSILONS
    )
    sizes = ", ".join(f"{size:,}" for size in table["users, simulated"].unique().sort())
    result = [verdict(improves, f"DPALS and {AS_PUBLISHED} get better with more users, at every epsilon, simulated.")]
    for name in (AS_PUBLISHED, "DPFrankWolfe"):
        at_one = table.filter(method=name, epsilon=1.0)["RMSE"].to_numpy()
        ratios = scores[name] / scores["DPALS"]
        result += [
            verdict(at_one.min() > 0.95, f"at epsilon 1 {name} has {listed(at_one, 3)} with {sizes} users, simulated."),
            verdict(
                ratios.min() >= 7,
                f"with the most users the RMSE of {name} is {listed(ratios, 1)} times that of DPALS at epsilon 1, 5, "
                f"10, 20, simulated.",
            ),
        ]
    ours = scores["DPALS"] / scores["PooledDPALS"]
    result.append(
        f"PooledDPALS, which the paper does not have, is at {listed(scores['PooledDPALS'])} with the most users, "
        f"simulated: the RMSE of DPALS is {listed(ours, 1)} times that."
    )
    return result


EXPERIMENT = Experiment(
    name="tradeoff-synthetic",
    title=TITLE,
    claim=(
        "Both methods improve with more users; at epsilon 1 Frank-Wolfe is no better than the trivial RMSE of 1; with "
        "50,000 users DPALS is at least 7 times better at every epsilon."
    ),
    cells=cells,
    draw=draw,
    findings=findings,
    any_data=False,
)
