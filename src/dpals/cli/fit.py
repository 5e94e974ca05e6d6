"""``dpals fit``: train a model on a file of ratings."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpals.cli.common import (
    FILE,
    FOLDER,
    catalogue_option,
    delta_option,
    implicit_option,
    json_option,
    messages,
    print_json,
    quiet_option,
    range_asked_for,
    rating_range_option,
    ratings_argument,
    read_catalogue,
    reading_options,
    warnings_shown,
)
from dpals.cli.methods import METHODS, NOT_PRIVATE, estimator_of, settings_option
from dpals.cli.outputs import check_folder, check_model_folder, writable
from dpals.cli.spending import Spending
from dpals.system.terminal import echo

if TYPE_CHECKING:
    from dpals.data.ratings import Ratings
    from dpals.system.console import Console


@click.command("fit")
@ratings_argument
@click.option("-o", "--output", required=True, metavar="MODEL", type=FOLDER, help="Folder for the model.")
@click.option("--epsilon", type=float, help="How much privacy to spend; smaller is more private, 1 is a good start.")
@delta_option
@rating_range_option
@implicit_option
@catalogue_option
@click.option(
    "--method",
    default="pooled",
    show_default=True,
    metavar="NAME",
    type=click.Choice([*METHODS, *NOT_PRIVATE]),
    help=f"One of {', '.join(METHODS)}; not private: {', '.join(NOT_PRIVATE)}.",
)
@settings_option
@click.option(
    "--ledger",
    default="dpals-ledger.db",
    show_default=True,
    type=FILE,
    callback=writable,
    help="File that records what is spent on which data set.",
)
@click.option("--dataset", metavar="NAME", help="Name of the data set in the ledger. By default the name of the file.")
@click.option(
    "--checkpoint",
    type=FOLDER,
    help="Folder that keeps what is released until the model is saved. By default MODEL/checkpoint.",
)
@click.option("--fresh", is_flag=True, help="Do not resume an interrupted run: start over. What it spent stays spent.")
@click.option("--overwrite", is_flag=True, help="Replace the model that is in MODEL.")
@click.option("--threads", type=click.IntRange(1), help="Number of threads; by default one per core.")
@click.option("--dry-run", is_flag=True, help="Check everything and say what would be spent; spend nothing.")
@reading_options
@json_option
@quiet_option
def command(
    ratings: Path,
    output: Path,
    epsilon: float | None,
    delta: float,
    method: str,
    settings: tuple[str, ...],
    ledger: Path,
    dataset: str | None,
    checkpoint: Path | None,
    fresh: bool,
    overwrite: bool,
    threads: int | None,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Train a private model on RATINGS and write it to the folder MODEL.

    \b
    dpals fit ratings.csv -o model --epsilon 1 --rating-range 0.5 5
    dpals fit clicks.parquet -o model --epsilon 1 --implicit

    RATINGS is a CSV, TSV, MovieLens or Parquet file. Each row has a user, an item and, unless it is implicit feedback,
    a rating. Arguments, data and budget are checked before anything is spent, and each spend is in the ledger before
    its noise is drawn. An interrupted training resumes with the same command: what was released is kept, and is not
    paid for again.
    """
    estimator = estimator_of(method, epsilon, delta, settings)
    check_model_folder(output, overwrite)
    if checkpoint is not None:
        check_folder(checkpoint)
    if dataset == "":
        raise click.UsageError("the data set needs a name: --dataset NAME")
    private = method not in NOT_PRIVATE
    spending = Spending(
        estimator,
        dataset=ratings.resolve().name.split(".")[0] if dataset is None else dataset,
        ledger=ledger if private else None,
        checkpoint=(checkpoint or output / "checkpoint") if private else None,
    )
    spending.check(fresh)
    data = _read(ratings, **reading)
    estimator.check(data)
    console = messages(quiet)
    spending.announce(data, console)
    if dry_run:
        with warnings_shown():
            spending.warn_of_shared_users(data)
        console.print("Nothing was spent: this was a dry run.")
        if as_json:
            print_json(spending.facts())
        return
    with warnings_shown():
        result = _train(spending, data, output, fresh, threads, console)
    print_json(result) if as_json else _summarise(spending, result, output, console)


def _train(
    spending: Spending, data: "Ratings", output: Path, fresh: bool, threads: int | None, console: "Console"
) -> dict[str, Any]:
    """Train and save the model; return the facts about it."""
    from dpals.ledger.ledger import Ledger
    from dpals.methods.base.options import Options

    estimator = spending.estimator
    options = Options(threads, not console.quiet, spending.checkpoint)
    paid: dict[str, Any] = {}
    if spending.ledger is not None:
        ledger = Ledger(spending.ledger)
        if fresh:
            spending.give_up(ledger)
        paid = {"ledger": ledger, "dataset": spending.dataset}
    start = time.perf_counter()
    try:
        estimator.fit(data, options=options, **paid)
        estimator.save(output)
    except (OSError, KeyboardInterrupt):
        if spending.checkpoint is not None:
            console.print("What was released is kept. Run the same command again to resume without paying twice.")
        raise
    model = estimator.model_
    result = {
        "model": str(output),
        "method": spending.method,
        "items": len(model.items),
        "rank": model.rank,
        "seconds": round(time.perf_counter() - start, 2),
        "report": getattr(estimator, "report_", None),
        "private": model.privacy is not None and model.privacy.is_private,
    }
    if model.privacy is not None:
        facts = ("epsilon", "delta", "mu", "ledger_head", "dataset")
        of_all = ("dataset_epsilon", "dataset_delta", "dataset_mu", "dataset_searches")
        result |= {name: getattr(model.privacy, name) for name in (*facts, *of_all)}
    return result


def _summarise(spending: Spending, result: dict[str, Any], output: Path, console: "Console") -> None:
    """Say what the model is, what has been spent, and what to do next."""
    model = spending.estimator.model_
    echo(f"{model!r} in {output}, trained in {result['seconds']:.1f} s.")
    if result["report"]:
        echo(result["report"])
    if model.privacy is not None:
        echo(f"All runs on {spending.dataset!r} together: {model.privacy.together}.")
        console.print(f"What is promised:  dpals statement {output}")
    console.print(f"Recommendations:   dpals recommend {output} --history RATINGS")


def _read(path: Path, catalogue: Path | None, rating_range: tuple[float, float] | None, **columns: Any) -> "Ratings":
    """Read the ratings, with the catalogue if there is one."""
    from dpals.data.read import read_ratings

    with range_asked_for(path):
        return read_ratings(path, rating_range=rating_range, catalogue=read_catalogue(catalogue), **columns)
