"""What an experiment is: cells that are measured one by one, a picture of them, and findings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Scale:
    """How large an experiment is to be."""

    quick: bool = False
    """Small data and few seeds: under a minute, to see that it works."""
    data: tuple[str, ...] | None = None
    """Names of data sets, ``simulated`` or those of `dpals.datasets`, or files; None for what the experiment has."""
    path: str | None = None
    """Where MovieLens is, if not in the usual folder."""
    rating_range: tuple[float, float] | None = None
    """Lowest and highest possible rating in the files."""

    def seeds(self, full: int = 3) -> range:
        """Seeds of data, split and noise, from 21: settings were tuned on seeds below."""
        return range(21, 22 if self.quick else 21 + full)


@dataclass(frozen=True)
class Cell:
    """One measurement.

    Attributes
    ----------
    labels
        What was varied: the first columns of the table. Where there is a ``seed``, the table has the mean and the
        spread over it.
    settings
        Everything else that decides the result. A cell that was measured with other settings is measured again.
    measure
        Does the work. It returns numbers, the last columns.
    """

    labels: dict[str, Any]
    settings: dict[str, Any]
    measure: Callable[[], dict[str, float]]


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    Attributes
    ----------
    name, title
        As in ``dpals reproduce NAME``, and above the picture.
    claim
        What the paper says.
    cells
        All that is to be measured, in the order in which it is. Cells on the same data should be neighbours.
    draw
        The pictures, by name, from the table.
    findings
        What was measured, in sentences that begin with a verdict, next to what is claimed.
    any_data
        Whether it runs on the data that is asked for; otherwise it has data of its own.
    """

    name: str
    title: str
    claim: str
    cells: Callable[[Scale], Sequence[Cell]]
    draw: Callable[["pl.DataFrame"], dict[str, "Figure"]]
    findings: Callable[["pl.DataFrame"], list[str]]
    any_data: bool = True


def verdict(holds: bool, sentence: str) -> str:
    """A finding, with its verdict in front."""
    return f"{'Confirmed' if holds else 'Not confirmed'}: {sentence}"
