"""Plots of what an attacker gains: members recognised against false alarms."""

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLES = {
    "limit": {"color": "black", "linewidth": 1.2, "linestyle": "--"},
    "attack": {"color": "tab:blue", "linewidth": 1.6},
    "reference": {"color": "tab:red", "linewidth": 1.2},
}
_LOWEST = 1e-3


@dataclass(frozen=True)
class Curve:
    """Share of members recognised against false alarms, for a plot.

    ``kind`` is ``limit`` for what the promise allows, ``attack`` for what an attack on the private release reached and
    ``reference`` for what the same attack reaches without privacy.
    """

    name: str
    kind: Literal["limit", "attack", "reference"]
    false_alarms: tuple[float, ...]
    recognised: tuple[float, ...]


def draw_curves(curves: tuple[Curve, ...]) -> "Figure":
    """The curves of a level twice: on linear axes, and on logarithmic ones, which show few false alarms."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.2), layout="constrained")
    plain, logarithmic = figure.subplots(1, 2)
    for axes in (plain, logarithmic):
        axes.plot([_LOWEST / 10, 1], [_LOWEST / 10, 1], color="0.75", linewidth=1, label="guessing")
        for number, curve in enumerate(curves):
            shade = {"alpha": 0.5 + 0.5 / (1 + number)} if curve.kind != "limit" else {}
            axes.plot(curve.false_alarms, curve.recognised, label=curve.name, **_STYLES[curve.kind], **shade)
        axes.set_xlabel("false alarms: share of others taken for members")
        axes.set_ylabel("share of members recognised")
    plain.set(xlim=(0, 1), ylim=(0, 1))
    logarithmic.set(xscale="log", yscale="log", xlim=(_LOWEST, 1), ylim=(_LOWEST, 1.1))
    plain.legend(loc="lower right", fontsize="small")
    return figure


def svg_of(curves: tuple[Curve, ...]) -> str:
    """The curves of a level as SVG for a page."""
    buffer = io.StringIO()
    draw_curves(curves).savefig(buffer, format="svg")
    text = buffer.getvalue()
    return text[text.index("<svg") :]
