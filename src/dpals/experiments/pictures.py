"""How the pictures look: one colour and one mark for each method, whatever the picture."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Colours by Okabe and Ito, which people with any colour vision can tell apart; marks differ as well.
_ORANGE, _SKY, _GREEN, _BLUE, _RED, _PURPLE, _BLACK, _GREY = (
    "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#000000", "#7F7F7F",
)  # fmt: skip
STYLES: dict[str, tuple[str, str]] = {
    "PooledDPALS": (_RED, "o"),
    "DPALS": (_BLUE, "s"),
    "AdaDPALS": (_SKY, "D"),
    "DPFrankWolfe": (_GREEN, "^"),
    "DPFrankWolfe as published": (_GREY, "^"),
    "DPSVD": (_PURPLE, "v"),
    "DPSGD": (_ORANGE, "P"),
    "SGLD": ("#8C510A", "X"),
    "PrivateBiases": (_BLACK, "*"),
    "ItemMean": (_GREY, "<"),
    "Popularity": (_GREY, ">"),
}
_OTHERS = ((_BLUE, "s"), (_RED, "o"), (_GREEN, "^"), (_ORANGE, "P"), (_PURPLE, "v"), (_SKY, "D"), (_BLACK, "*"))
_DASHES = ((0, (6, 3)), (0, (2, 2)), (0, (6, 2, 1, 2)), (0, (1, 2)), (0, (8, 2, 2, 2, 2, 2)))


def panels(title: str, names: Sequence[str], height: float = 4.2) -> tuple[Figure, list[Axes]]:
    """A figure with one panel for each name, side by side, or four in two rows."""
    rows = 2 if len(names) == 4 else 1
    columns = len(names) // rows
    size = (2.2 + 4.7 * columns, height * rows)
    figure = Figure(figsize=size, layout="constrained")  # not by pyplot, which would keep it until it is closed
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    figure.suptitle(title, fontsize=13, fontweight="bold")
    for axis, name in zip(axes, names, strict=True):
        axis.set_title(name, fontsize=10)
        axis.grid(color="#DDDDDD", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def line(axis: Axes, table: pl.DataFrame, x: str, y: str, name: str, number: int = 0, **look: Any) -> None:
    """The mean of y against x, with a band for the spread. `number` chooses a look for names that have none."""
    color, marker = STYLES.get(name, _OTHERS[number % len(_OTHERS)])
    look = {"color": color, "marker": marker, "markersize": 5, "linewidth": 1.6, **look}
    table = table.sort(x)
    at, mean = table[x].to_numpy(), table[y].to_numpy()
    axis.plot(at, mean, label=name, **look)
    if f"{y} spread" in table.columns:
        spread = table[f"{y} spread"].to_numpy()
        axis.fill_between(at, mean - spread, mean + spread, color=look["color"], alpha=0.2, linewidth=0)


def level(axis: Axes, value: float, name: str, number: int) -> None:
    """A horizontal line, for what does not depend on x."""
    axis.axhline(value, color=_GREY, linestyle=_DASHES[number % len(_DASHES)], linewidth=1.3, label=name)


def label(axis: Axes, x: str, y: str, ticks: Sequence[float] | None = None, log: bool = False) -> None:
    """Names of the axes; with `ticks`, a logarithmic x axis with just these."""
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    if log or ticks is not None:
        axis.set_xscale("log")
    if ticks is not None:
        axis.set_xticks(list(ticks), [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()


def legend(figure: Figure, axes: Sequence[Axes]) -> Figure:
    """One legend for all panels, to their right."""
    entries = {}
    for axis in axes:
        handles, names = axis.get_legend_handles_labels()
        entries.update(dict(zip(names, handles, strict=True)))
    figure.legend(entries.values(), entries.keys(), loc="outside right center", frameon=False, fontsize=9)
    return figure
