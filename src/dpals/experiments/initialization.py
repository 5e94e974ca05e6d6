"""Starting points: how near random factors, noisy power iteration and private PCA come to the true directions."""

from functools import lru_cache

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpals.data.simulate import SyntheticTask, paper_synthetic
from dpals.experiments.experiment import Cell, Experiment, Scale, verdict
from dpals.experiments.pictures import label, legend, line, panels
from dpals.experiments.sample_complexity import users_at
from dpals.methods.shared.power_iteration import noisy_power_iteration, private_pca
from dpals.private.covariance import SampledRows
from dpals.public.initial_factors import random_factors
from dpals.release.accounting import Budget
from dpals.release.mechanism import Mechanism

TITLE = "Starting points on the synthetic task, simulated"
EPSILONS = (1.0, 5.0)
WAYS = ("random", "power iteration", "private PCA")
RANK = 5
SHARED = {"rank": RANK, "ratings_per_user": 150, "mean": 0.0, "entry_clip": 3.0}


@lru_cache(maxsize=1)
def _task(n_users: int, n_items: int, seed: int) -> SyntheticTask:
    return paper_synthetic(n_users, n_items, RANK, seed)


def cells(scale: Scale) -> list[Cell]:
    sizes = (1_000, 4_000) if scale.quick else (2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
    n_items = 300 if scale.quick else 1_000
    return [
        _cell(way, n_users, n_items, epsilon, seed)
        for n_users in sizes
        for seed in scale.seeds()
        for epsilon in EPSILONS
        for way in WAYS
    ]


def _cell(way: str, n_users: int, n_items: int, epsilon: float, seed: int) -> Cell:
    def measure() -> dict[str, float]:
        task = _task(n_users, n_items, seed)
        return {"subspace error": subspace_error(_start(way, task, epsilon, seed), task.item_factors)}

    labels = {"start": way, "users, simulated": n_users, "epsilon": epsilon, "seed": seed}
    return Cell(labels, {"experiment": "initialization", "items": n_items, **SHARED}, measure)


def _start(way: str, task: SyntheticTask, epsilon: float, seed: int) -> NDArray[np.float64]:
    mechanism = Mechanism(Budget(epsilon, 1e-5), insecure_seed=seed)
    everything = np.ones(task.train.n_items, bool)
    rows = SampledRows(everything, int(SHARED["ratings_per_user"]), SHARED["mean"], SHARED["entry_clip"], seed)
    if way == "power iteration":
        return noisy_power_iteration(task.train, mechanism, mechanism.budget.cost, rows, rank=RANK, steps=4)
    if way == "private PCA":
        return private_pca(task.train, mechanism, mechanism.budget.cost, rows, rank=RANK)
    return np.linalg.qr(random_factors(task.train.n_items, RANK, seed)).Q


def subspace_error(start: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """|(I - V* V*^T) V0|, the sine of the largest angle: 0 where the directions are right, 1 where one is missed."""
    return float(np.linalg.norm(start - truth @ (truth.T @ start), 2))


def draw(table: pl.DataFrame) -> dict[str, Figure]:
    figure, axes = panels(TITLE, [f"epsilon {epsilon:g}" for epsilon in EPSILONS])
    sizes = table["users, simulated"].unique().sort().to_list()
    for axis, epsilon in zip(axes, EPSILONS, strict=True):
        for number, way in enumerate(WAYS):
            here = table.filter(start=way, epsilon=epsilon)
            line(axis, here, "users, simulated", "subspace error", way, number)
        label(axis, "users", "distance from the true directions", sizes)
        axis.set_ylim(0, 1.05)
        axis.tick_params(axis="x", rotation=30)
    return {"initialization": legend(figure, axes)}


def findings(table: pl.DataFrame) -> list[str]:
    result = []
    for epsilon in EPSILONS:
        power, pca = (users_at(0.5, table.filter(start=way, epsilon=epsilon), "subspace error") for way in WAYS[1:])
        if power is None:
            result.append(f"Not tested: at epsilon {epsilon:g} there are too few users for power iteration.")
            continue
        shown = "more than there are" if pca is None else f"{pca:,.0f}"
        sentence = f"{power:,.0f} users give power iteration an error of one half, private PCA {shown}, simulated."
        result.append(verdict(pca is None or power < pca, f"at epsilon {epsilon:g} {sentence}"))
    return result


EXPERIMENT = Experiment(
    name="initialization",
    title=TITLE,
    claim=(
        "Noisy power iteration needs of the order of m users for a good start, private PCA of the order of m^1.5. "
        "(There is one catalogue here: who needs more is tested, the powers are not.)"
    ),
    cells=cells,
    draw=draw,
    findings=findings,
    any_data=False,
)
