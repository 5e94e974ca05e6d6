"""Accuracy with fewer users, on the 400 most popular movies."""

from itertools import pairwise

import polars as pl
from matplotlib.figure import Figure

from dpals.experiments.experiment import Cell, Experiment, Scale, verdict
from dpals.experiments.pictures import label, legend, line, panels
from dpals.experiments.settings import make, settings_for
from dpals.experiments.tasks import FEW_USERS, count_users, data_of, identity_of, load_ratings, split_for, title_of
from dpals.experiments.tradeoffs import listed

TITLE = "Fewer users, the 400 most popular movies"
EPSILONS = (1.0, 5.0, 20.0)
METHODS = ("PooledDPALS", "DPALS")
PAPER = 16_000
SIZES = (1_000, 4_000, 8_000, PAPER, 32_000)


def cells(scale: Scale) -> list[Cell]:
    data = data_of("top400", scale)[0]
    n_users = count_users(data, scale)
    sizes = (*(size for size in SIZES if size < n_users), n_users)
    return [
        _cell(data, method, n_users, epsilon, seed, scale)
        for seed in scale.seeds()
        for n_users in sizes
        for method in (*METHODS, *(("DPFrankWolfe",) if n_users == sizes[-1] else ()))
        for epsilon in EPSILONS
    ]


def _cell(data: str, method: str, n_users: int, epsilon: float, seed: int, scale: Scale) -> Cell:
    settings = settings_for("top400", method, epsilon, small=n_users < FEW_USERS)

    def measure() -> dict[str, float]:
        ratings = load_ratings("top400", data, seed, scale)
        split = split_for("top400", ratings.take_users(slice(n_users)), seed)
        return {"RMSE": split.fit_and_score(make(method, epsilon, seed, settings))}

    labels = {"data": title_of(data), "method": method, "users": n_users, "epsilon": epsilon, "seed": seed}
    return Cell(labels, {"experiment": "users", **identity_of(data, scale), "settings": settings}, measure)


def draw(table: pl.DataFrame) -> dict[str, Figure]:
    figure, axes = panels(f"{TITLE}\n{table['data'][0]}", [f"epsilon {epsilon:g}" for epsilon in EPSILONS])
    sizes = table["users"].unique().sort().to_list()
    for axis, epsilon in zip(axes, EPSILONS, strict=True):
        here = table.filter(epsilon=epsilon)
        for method in METHODS:
            line(axis, here.filter(method=method), "users", "RMSE", method)
        frank_wolfe = here.filter(method="DPFrankWolfe")["RMSE"].item()
        axis.axhline(frank_wolfe, color="#009E73", linestyle="--", label="DPFrankWolfe, all users")
        label(axis, "users", "test RMSE (lower is better)", sizes)
    return {"users": legend(figure, axes)}


def findings(table: pl.DataFrame) -> list[str]:
    sizes = table["users"].unique().sort().to_list()
    if len(sizes) == 1:
        return [f"Not tested: there are too few users, {sizes[0]:,}."]
    some = PAPER if PAPER in sizes else sizes[0]
    data, result = table["data"][0], []
    for epsilon in EPSILONS:
        here = table.filter(epsilon=epsilon)
        scores = here.filter(method="DPALS").sort("users")["RMSE"].to_list()
        frank_wolfe = float(here.filter(method="DPFrankWolfe")["RMSE"].item())
        few = float(here.filter(pl.col("users") == some, method="DPALS")["RMSE"].item())
        result += [
            verdict(
                all(a > b for a, b in pairwise(scores)),
                f"{data}, epsilon {epsilon:g}: DPALS improves with every size, {listed(scores)}.",
            ),
            verdict(
                few < frank_wolfe,
                f"{data}, epsilon {epsilon:g}: DPALS with {some:,} users has {few:.4f}, DPFrankWolfe with all "
                f"{frank_wolfe:.4f}.",
            ),
        ]
    return result


EXPERIMENT = Experiment(
    name="users",
    title=TITLE,
    claim=(
        "More users improve the trade-off; DPALS with 16,000 of 69,692 users (23 per cent; the paper prints 26.4) is "
        "better than Frank-Wolfe with all of them."
    ),
    cells=cells,
    draw=draw,
    findings=findings,
)
