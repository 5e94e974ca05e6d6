"""``dpals reproduce``: the paper's tables and figures, rerun."""

import shlex
from pathlib import Path

import click

from dpals.cli.common import folder_option, rating_range_option
from dpals.experiments import NAMES
from dpals.system.terminal import echo


@click.command("reproduce")
@click.argument("names", nargs=-1, metavar="[NAME]...", type=click.Choice(list(NAMES)))
@click.option("--list", "show_list", is_flag=True, help="Show the names of the experiments.")
@click.option("--all", "everything", is_flag=True, help="Run all of them.")
@click.option("--quick", is_flag=True, help="Small data and one seed, under a minute each: a trial run.")
@click.option(
    "--data",
    multiple=True,
    metavar="NAME|FILE",
    help="Data to run on: simulated, ml-100k, ml-1m, ml-10m, ml-20m, or a file of your own ratings; repeatable. "
    "By default simulated and, if it is found, ml-1m.",
)
@rating_range_option
@click.option("--path", type=click.Path(exists=True), help="Where MovieLens is, if not in the cache folder.")
@click.option("--fresh", is_flag=True, help="Discard what earlier runs measured.")
@folder_option("results", "Folder for tables, figures and findings.")
def command(
    names: tuple[str, ...],
    show_list: bool,
    everything: bool,
    quick: bool,
    data: tuple[str, ...],
    rating_range: tuple[float, float] | None,
    path: str | None,
    fresh: bool,
    output: Path,
) -> None:
    """Rerun tables and figures of the paper; --list shows their names.

    Each experiment writes a table, figures, and the paper's claim next to what was measured. An interrupted run
    resumes where it stopped.

    \b
    Examples:
        dpals reproduce --list
        dpals reproduce frontier --quick
        dpals reproduce frontier --data ratings.csv --rating-range 1 5

    A file of your own ratings needs --rating-range. Results are exact and not private: those on your own data are for
    your eyes only.
    """
    if show_list:
        width = max(map(len, NAMES))
        echo("\n".join(f"{name:{width}}  {title}" for name, title in NAMES.items()))
        return
    if everything == bool(names):
        raise click.UsageError("name some experiments, or pass --all; --list shows the names")
    from dpals.experiments import find
    from dpals.experiments.experiment import Scale
    from dpals.experiments.runner import run
    from dpals.system.console import Console

    if fresh:
        (output / "cells.jsonl").unlink(missing_ok=True)
    console = Console()
    scale = Scale(quick, data or None, path, rating_range)
    for name in NAMES if everything else names:
        options = ["--quick"] * quick + [part for one in data for part in ("--data", one)]
        options += ["--rating-range", *map(str, rating_range)] if rating_range else []
        experiment = find(name)
        if data and not experiment.any_data:
            console.print(f"{name} has data of its own: --data is ignored")
        home = run(experiment, scale, output, console, shlex.join(["dpals", "reproduce", name, *options]))
        console.print(f"{home / 'README.md'}\n")
