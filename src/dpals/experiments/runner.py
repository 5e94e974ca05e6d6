"""Measures the cells of an experiment, remembers what is done, and writes table, picture and findings."""

import json
import os
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpals import __version__
from dpals.experiments.experiment import Cell, Experiment, Scale
from dpals.system.terminal import visible

if TYPE_CHECKING:
    import polars as pl

    from dpals.system.console import Console

Row = dict[str, Any]


def run(experiment: Experiment, scale: Scale, folder: Path, console: "Console", command: str) -> Path:
    """Measure what is not measured yet and write the results into ``folder/NAME``, which is returned.

    Every cell is written to ``folder/cells.jsonl`` as soon as it is there, so a run that was stopped goes on where it
    stopped, and what one experiment measured another needs not measure again. Another version of dpals measures anew.
    """
    home = folder / experiment.name
    home.mkdir(parents=True, exist_ok=True)
    rows = measure(experiment.cells(scale), folder / "cells.jsonl", console, experiment.name)
    findings = write(experiment, table_of(rows), home, command)
    console.print("\n".join(findings))
    return home


def measure(cells: Sequence[Cell], memory: Path, console: "Console", title: str) -> list[Row]:
    """Labels and numbers of all cells, from the memory or measured now."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    known = _recall(memory)
    missing = [cell for cell in cells if _identity(cell) not in known]
    if len(missing) < len(cells):
        console.print(f"{title}: {len(cells) - len(missing)} of {len(cells)} cells were measured before")
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[left]}"), console=console) as progress:
        bar = progress.add_task(title, total=len(missing), left="")
        start = time.perf_counter()
        for number, cell in enumerate(missing, 1):
            shown = ", ".join(str(value) for value in cell.labels.values() if value is not None)
            progress.update(bar, description=visible(f"{title}: {shown}"))
            numbers = cell.measure()
            known[_identity(cell)] = numbers
            _remember(memory, _identity(cell), numbers)
            left = (time.perf_counter() - start) / number * (len(missing) - number)
            progress.update(bar, advance=1, left=f"about {left / 60:.0f} min left" if left > 90 else "")
    return [{**cell.labels, **known[_identity(cell)]} for cell in cells]


def table_of(rows: list[Row]) -> "pl.DataFrame":
    """All cells as a table; where there are seeds, mean and spread over them in their place."""
    import polars as pl

    table = pl.DataFrame(rows, infer_schema_length=None)
    if "seed" not in table.columns:
        return table
    where = table.columns.index("seed")
    labels, numbers = table.columns[:where], table.columns[where + 1 :]
    spreads = [pl.col(name).std(ddof=0).alias(f"{name} spread") for name in numbers]
    return table.group_by(labels, maintain_order=True).agg(*(pl.col(name).mean() for name in numbers), *spreads)


def write(experiment: Experiment, table: "pl.DataFrame", home: Path, command: str) -> list[str]:
    """Write ``table.csv``, the pictures, and ``README.md`` with claim, findings, pictures and the table.

    Returns the findings, as lines of a list.
    """
    table.write_csv(home / "table.csv")
    figures = experiment.draw(table)
    for name, figure in figures.items():
        figure.savefig(home / f"{name}.png", dpi=150, bbox_inches="tight")
    lines = [f"# {experiment.title}", "", f"**The paper:** {experiment.claim}", "", "**Measured:**", ""]
    findings = [f"- {finding}" for finding in experiment.findings(table)]
    lines += [*findings, "", *(f"![{name}]({name}.png)" for name in figures)]
    lines += ["", *markdown(table), "", _provenance(command), ""]
    (home / "README.md").write_text("\n".join(lines), encoding="utf-8")
    return findings


def markdown(table: "pl.DataFrame") -> list[str]:
    """The lines of a table, numbers with four digits."""

    def shown(value: Any) -> str:
        if value is None:
            return ""
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    lines = ["| " + " | ".join(table.columns) + " |", "|" + "---|" * len(table.columns)]
    return lines + ["| " + " | ".join(map(shown, row)) + " |" for row in table.iter_rows()]


def _identity(cell: Cell) -> str:
    return json.dumps([__version__, cell.labels, cell.settings], sort_keys=True, default=str)


def _recall(memory: Path) -> dict[str, dict[str, float]]:
    """What the file holds; a last line that was cut off is dropped, and ended so that others can follow."""
    known: dict[str, dict[str, float]] = {}
    if not memory.exists():
        return known
    text = memory.read_text(encoding="utf-8")
    if text and not text.endswith("\n"):
        with memory.open("a", encoding="utf-8") as file:
            file.write("\n")
    for line in text.splitlines():
        try:
            identity, numbers = json.loads(line)
        except ValueError:
            continue
        known[identity] = numbers
    return known


def _remember(memory: Path, identity: str, numbers: dict[str, float]) -> None:
    with memory.open("a", encoding="utf-8") as file:
        file.write(json.dumps([identity, numbers]) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _provenance(command: str) -> str:
    day = datetime.now(UTC).date().isoformat()
    source = Path(__file__).resolve().parent
    done = subprocess.run(
        ["git", "-C", str(source), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    commit = f", commit {done.stdout.strip()}" if done.returncode == 0 else ""
    return f"`{command}`, dpals {__version__}{commit}, {day}"
