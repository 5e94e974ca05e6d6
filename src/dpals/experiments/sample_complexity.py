"""Users needed for a fixed error as the catalogue grows: the paper's table of bounds, as an experiment."""

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from dpals.experiments.experiment import Cell, Experiment, Scale, verdict
from dpals.experiments.pictures import label, legend, line, panels
from dpals.experiments.settings import make, settings_for
from dpals.experiments.tasks import synthetic_split

TITLE = "Users needed as the catalogue grows, simulated"
METHODS = ("DPALS", "DPFrankWolfe")
GOAL = 0.5
EPSILON = 5.0
BOUNDS = {"DPALS": 1.0, "DPFrankWolfe": 1.25}


def cells(scale: Scale) -> list[Cell]:
    sizes = (200, 400) if scale.quick else (200, 400, 800, 1_600)
    multiples = (4, 16) if scale.quick else (4, 8, 16, 32)
    return [
        _cell(method, n_items, multiple * n_items, seed)
        for n_items in sizes
        for multiple in multiples
        for seed in scale.seeds(2)
        for method in METHODS
    ]


def _cell(method: str, n_items: int, n_users: int, seed: int) -> Cell:
    settings = settings_for("synthetic", method, EPSILON)
    if method == "DPALS":
        settings["ridge"] = 8.0 * n_users / n_items  # as much as at 50,000 users and 1,000 items, for each rating

    def measure() -> dict[str, float]:
        return {"RMSE": synthetic_split(n_users, seed, n_items).fit_and_score(make(method, EPSILON, seed, settings))}

    labels = {"method": method, "items": n_items, "users, simulated": n_users, "seed": seed}
    return Cell(labels, {"experiment": "sample-complexity", "settings": settings}, measure)


def users_at(goal: float, table: pl.DataFrame, number: str) -> float | None:
    """The users at which a number falls to the goal, by lines through the logarithms; None if it does not."""
    table = table.sort("users, simulated")
    users = np.log(table["users, simulated"].to_numpy())
    falling = np.minimum.accumulate(np.log(table[number].to_numpy()))
    if not falling[0] > np.log(goal) >= falling[-1]:
        return None
    return float(np.exp(np.interp(-np.log(goal), -falling, users)))


def users_needed(table: pl.DataFrame) -> pl.DataFrame:
    """For each method and catalogue, the users at which the RMSE falls to the goal.

    A catalogue for which the goal is not within what was measured is left out.
    """
    rows = []
    for (method, n_items), here in table.group_by("method", "items", maintain_order=True):
        needed = users_at(GOAL, here, "RMSE")
        if needed is not None:
            rows.append({"method": method, "items": n_items, "users": needed})
    return pl.DataFrame(rows, schema={"method": pl.String, "items": pl.Int64, "users": pl.Float64})


def exponent(needed: pl.DataFrame) -> float | None:
    """The slope of users against items, both in logarithms; None for fewer than two catalogues."""
    if len(needed) < 2:
        return None
    return float(np.polyfit(np.log(needed["items"].to_numpy()), np.log(needed["users"].to_numpy()), 1)[0])


def draw(table: pl.DataFrame) -> dict[str, Figure]:
    figure, axes = panels(TITLE, [f"RMSE at epsilon {EPSILON:g}", f"users for an RMSE of {GOAL:g}"])
    catalogues = table["items"].unique().sort().to_list()
    looks = ("-", "--", "-.", ":")
    for method in METHODS:
        for n_items, style in zip(catalogues, looks, strict=False):
            here = table.filter(method=method, items=n_items)
            line(axes[0], here, "users, simulated", "RMSE", method, linestyle=style)
        line(axes[1], users_needed(table).filter(method=method), "items", "users", method)
    axes[0].axhline(GOAL, color="#7F7F7F", linewidth=1)
    label(axes[0], f"users (lines: {', '.join(f'{size:,}' for size in catalogues)} items)", "test RMSE", log=True)
    label(axes[1], "items", "users needed", catalogues)
    axes[0].set_yscale("log")
    axes[1].set_yscale("log")
    return {"users-needed": legend(figure, axes)}


def findings(table: pl.DataFrame) -> list[str]:
    needed = users_needed(table)
    result = []
    for method in METHODS:
        own = needed.filter(method=method)
        slope = exponent(own)
        shown = ", ".join(f"{row['users']:,.0f} for {row['items']:,}" for row in own.iter_rows(named=True))
        if slope is None:
            result.append(f"Not tested: {method} had an RMSE of {GOAL:g} on too few catalogues ({shown or 'none'}).")
            continue
        result.append(
            verdict(
                abs(slope - BOUNDS[method]) < 0.25,
                f"users that {method} needs grow as items to the power {slope:.2f} (bound {BOUNDS[method]:g}): {shown} "
                f"items, simulated.",
            )
        )
    return result


EXPERIMENT = Experiment(
    name="sample-complexity",
    title=TITLE,
    claim=(
        "For a constant error DPALS needs of the order of m users, Frank-Wolfe of m^1.25, up to logarithms. (These are "
        "upper bounds; the entries seen per user do not grow with m here.)"
    ),
    cells=cells,
    draw=draw,
    findings=findings,
    any_data=False,
)
