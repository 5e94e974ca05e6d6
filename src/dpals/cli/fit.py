"""``dpals fit``: train a model on a file or on blocks of ratings."""

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
from dpals.cli.methods import NOT_PRIVATE_CHOICES, PRIVATE_CHOICES, estimator_of, settings_option
from dpals.cli.outputs import check_folder, check_model_folder, writable
from dpals.cli.populations import (
    check_engine,
    engine_options,
    holds_blocks,
    refuse_reading_options,
    running_engine,
)
from dpals.cli.spending import PlannedRun
from dpals.system.terminal import echo

if TYPE_CHECKING:
    from dpals.data.blocks.folder import Blocks
    from dpals.data.ratings import Ratings
    from dpals.release.passes import Engine
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
    type=click.Choice([*PRIVATE_CHOICES, *NOT_PRIVATE_CHOICES]),
    help=f"One of {', '.join(PRIVATE_CHOICES)}; not private: {', '.join(NOT_PRIVATE_CHOICES)}.",
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
@click.option("--dataset", metavar="NAME", help="Name of the data set in the ledger. By default that of RATINGS.")
@click.option(
    "--checkpoint",
    type=FOLDER,
    help="Folder that keeps what is released until the model is saved. By default MODEL/checkpoint.",
)
@click.option("--fresh", is_flag=True, help="Do not resume an interrupted run: start over. What it spent stays spent.")
@click.option("--overwrite", is_flag=True, help="Replace the model that is in MODEL.")
@click.option("--threads", type=click.IntRange(1), help="Number of threads; by default one per core.")
@engine_options
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
    engine: str,
    master: str | None,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Train a private model on RATINGS and write it to the folder MODEL.

    \b
    dpals fit ratings.csv -o model --epsilon 1 --rating-range 0.5 5
    dpals fit clicks.parquet -o model --epsilon 1 --implicit
    dpals fit blocks -o model --epsilon 1 --engine spark --master spark://host:7077

    RATINGS is a CSV, TSV, MovieLens or Parquet file. Each row has a user, an item and, unless it is implicit feedback,
    a rating. Arguments, data and budget are checked before anything is spent, and each spend is in the ledger before
    its noise is drawn. An interrupted run resumes with the same command: what was released is kept, and is not
    paid for again.

    RATINGS may also be a folder of blocks that `dpals blocks` wrote, larger than memory. What the ratings are was
    declared then, so the options for reading a file are refused. Blocks can be trained on with Spark, from here or
    under spark-submit.
    """
    estimator = estimator_of(method, epsilon, delta, settings)
    check_engine(engine, master, ratings)
    check_model_folder(output, overwrite)
    if checkpoint is not None:
        check_folder(checkpoint)
    if dataset == "":
        raise click.UsageError("the data set needs a name: --dataset NAME")
    private = method not in NOT_PRIVATE_CHOICES
    planned = PlannedRun(
        estimator,
        dataset=ratings.resolve().name.split(".")[0] if dataset is None else dataset,
        ledger=ledger if private else None,
        checkpoint=(checkpoint or output / "checkpoint") if private else None,
    )
    planned.check(fresh)
    data = _read(ratings, **reading)
    estimator.check(data)
    console = messages(quiet)
    planned.announce(data, console)
    with warnings_shown(), running_engine(engine, master) as running:
        if dry_run:
            planned.warn_of_shared_users(data)
            console.print("Nothing was spent: this was a dry run.")
            result = planned.facts()
        else:
            result = _train(planned, data, output, fresh, threads, running, console)
    if as_json:
        print_json(result)
    elif not dry_run:
        _summarise(planned, result, output, console)


def _train(
    planned: PlannedRun,
    data: "Ratings | Blocks",
    output: Path,
    fresh: bool,
    threads: int | None,
    engine: "Engine",
    console: "Console",
) -> dict[str, Any]:
    """Train and save the model; return the facts about it."""
    from dpals.ledger.ledger import Ledger
    from dpals.methods.base.options import Options

    estimator = planned.estimator
    options = Options(threads, not console.quiet, planned.checkpoint, engine)
    paid: dict[str, Any] = {}
    if planned.ledger is not None:
        ledger = Ledger(planned.ledger)
        if fresh:
            planned.give_up(ledger)
        paid = {"ledger": ledger, "dataset": planned.dataset}
    start = time.perf_counter()
    try:
        estimator.fit(data, options=options, **paid)
        estimator.save(output)
    except (OSError, RuntimeError, KeyboardInterrupt):
        if planned.checkpoint is not None:
            console.print("What was released is kept. Run the same command again to resume without paying twice.")
        raise
    model = estimator.model_
    result = {
        "model": str(output),
        "method": planned.method,
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


def _summarise(planned: PlannedRun, result: dict[str, Any], output: Path, console: "Console") -> None:
    """Say what the model is, what has been spent, and what to do next."""
    model = planned.estimator.model_
    echo(f"{model!r} in {output}, trained in {result['seconds']:.1f} s.")
    if result["report"]:
        echo(result["report"])
    if model.privacy is not None:
        echo(f"All runs on {planned.dataset!r} together: {model.privacy.together}.")
        console.print(f"What is promised:  dpals statement {output}")
    console.print(f"Recommendations:   dpals recommend {output} --history RATINGS")


def _read(
    path: Path, catalogue: Path | None, rating_range: tuple[float, float] | None, **columns: Any
) -> "Ratings | Blocks":
    """Read the ratings, with the catalogue if there is one, or open the blocks."""
    from dpals.data.blocks.folder import open_blocks
    from dpals.data.read import read_ratings

    if holds_blocks(path):
        refuse_reading_options(path)
        return open_blocks(path)
    with range_asked_for(path):
        return read_ratings(path, rating_range=rating_range, catalogue=read_catalogue(catalogue), **columns)
