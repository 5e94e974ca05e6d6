"""The epsilon of the paper's table of settings, recomputed: as printed, exactly, and with its errors corrected."""

import math

import polars as pl
from matplotlib.figure import Figure

from dpals.experiments.experiment import Cell, Experiment, Scale, verdict
from dpals.experiments.pictures import legend, panels
from dpals.methods.paper_settings import PRINTED_EPSILONS, private_settings
from dpals.release import accounting

TITLE = "The epsilon of the paper's settings"
WAYS = ("paper's conversion", "exact", "exact and corrected")


def cells(scale: Scale) -> list[Cell]:  # noqa: ARG001, there is nothing to make smaller
    return [_cell(name, epsilon) for name, printed in PRINTED_EPSILONS.items() for epsilon in printed]


def _cell(name: str, epsilon: float) -> Cell:
    def measure() -> dict[str, float]:
        return epsilons(name, epsilon)

    return Cell({"settings": name, "printed epsilon": epsilon}, {"experiment": "accounting"}, measure)


def epsilons(name: str, epsilon: float) -> dict[str, float]:
    """What one column of the table costs, in three ways of counting.

    Half the squared mu, rho^2, is k T / 2 (1 / sigma_G^2 + 1 / sigma_g^2) for the steps, plus the pre-processing:
    (k + 1) / sigma_p^2 as printed. One user moves the sum of k ratings by k times the largest, so the mean costs as
    much as both counts together, which makes it 2 k / sigma_p^2. Item recommendation has no mean, but the sum over all
    users K, T / (2 sigma_G^2) with the noise of the Gram matrices.
    """
    chosen = private_settings(name, epsilon)
    k, steps, delta = chosen["ratings_per_user"], chosen["steps"], chosen["delta"]
    gram, moment, count = (chosen[f"{part}_noise"] ** -2 for part in ("gram", "moment", "count"))
    training = k * steps / 2 * (gram + moment)
    printed = training + (k + 1) * count
    corrected = training + (k * count + steps / 2 * gram if name == "ml-20m" else 2 * k * count)
    converted = printed + 2 * math.sqrt(printed * math.log(1 / delta))
    exact, right = (accounting.epsilon(math.sqrt(2 * rho), delta) for rho in (printed, corrected))
    return dict(zip(WAYS, (converted, exact, right), strict=True))


def draw(table: pl.DataFrame) -> dict[str, Figure]:
    names = table["settings"].unique(maintain_order=True).to_list()
    figure, axes = panels(TITLE, names)
    looks = (("#7F7F7F", ""), ("#0072B2", "//"), ("#D55E00", ".."))
    for axis, name in zip(axes, names, strict=True):
        here = table.filter(settings=name)
        for number, (way, (color, hatch)) in enumerate(zip(WAYS, looks, strict=True)):
            at = [row + 0.27 * (number - 1) for row in range(len(here))]
            axis.bar(at, here[way].to_list(), 0.25, color=color, hatch=hatch, edgecolor="white", label=way)
        axis.set_xticks(range(len(here)), [f"{value:g}" for value in here["printed epsilon"]])
        axis.set_xlabel("epsilon as printed")
        axis.set_ylabel("epsilon")
    return {"accounting": legend(figure, axes)}


def findings(table: pl.DataFrame) -> list[str]:
    printed = table["printed epsilon"].to_numpy()
    converted, exact, corrected = (table[way].to_numpy() for way in WAYS)
    off = abs(converted / printed - 1)
    worst = int(off.argmax())
    saved = 1 - exact / converted
    above = corrected > printed
    return [
        verdict(
            bool(off.max() < 0.02),
            f"by the paper's own conversion the settings cost what is printed, within {off.max():.1%}; the most off is "
            f"{table['settings'][worst]} at {printed[worst]:g}, which costs {converted[worst]:.3f}.",
        ),
        f"The exact trade-off of the Gaussian mechanism states {saved.min():.0%} to {saved.max():.0%} less.",
        f"With the errors of the paper corrected and exact accounting, {int((~above).sum())} of {len(above)} settings "
        f"keep what is printed.",
    ]


EXPERIMENT = Experiment(
    name="accounting",
    title=TITLE,
    claim="Each column of the table of optimal settings spends the epsilon above it.",
    cells=cells,
    draw=draw,
    findings=findings,
    any_data=False,
)
