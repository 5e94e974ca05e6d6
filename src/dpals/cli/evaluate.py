"""``dpals evaluate``: how well a model predicts what it has not seen."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from dpals.cli.common import (
    EXISTING,
    count_option,
    history_option,
    json_option,
    messages,
    model_argument,
    print_json,
    quiet_option,
    reading_options,
)
from dpals.cli.populations import holds_blocks, refuse_reading_options
from dpals.system.terminal import echo

if TYPE_CHECKING:
    from dpals.data.blocks.folder import Blocks
    from dpals.data.ratings import Ratings
    from dpals.evaluation.held_out import Evaluation
    from dpals.model.factor_model import FactorModel
    from dpals.model.history import ColumnNames
    from dpals.system.console import Console

FOR_YOUR_EYES_ONLY = "These numbers are exact and not private: they are for your eyes only."


@click.command("evaluate")
@model_argument
@history_option
@click.option(
    "--test",
    required=True,
    type=EXISTING,
    help="Other ratings of these users, not used in training; a file like that of --history, or blocks.",
)
@count_option(20, "Number of recommendations that count.")
@reading_options
@json_option
@quiet_option
def command(
    model: Path,
    history: Path,
    test: Path,
    k: int,
    ids: Any,
    on_bad_rows: Any,
    as_json: bool,
    quiet: bool,
    **columns: Unpack["ColumnNames"],
) -> None:
    """Measure how well MODEL predicts the test ratings of users from their history.

    It prints the RMSE of predicted ratings (lower is better; not for implicit feedback), and Recall@k and NDCG@k of
    recommendations that leave out the history (higher is better). Users without a history are treated as new users.
    Items that the model does not know are left out and counted.

    \b
    Examples:
        dpals evaluate model/ --history train.csv --test test.csv
        dpals evaluate model/ --history clicks.parquet --test later.parquet -k 50 --json

    History and test may be folders of blocks, which are evaluated one after another and need not fit in memory.
    The numbers are exact and not private: they are for your eyes only.
    """
    from dpals.evaluation.held_out import evaluate
    from dpals.model.factor_model import load

    if holds_blocks(history) and holds_blocks(test):
        refuse_reading_options(history)
    loaded, console = load(model), messages(quiet)
    known, wanted = (_read(path, loaded, columns, ids, on_bad_rows, console) for path in (history, test))
    found = evaluate(loaded, known, wanted, min(k, len(loaded.items)))
    if found.seen:
        echo(
            f"Warning: {found.seen:,} of {found.ratings:,} test rows are in the history as well, where the model sees "
            "them. Remove them from one of the files.",
            err=True,
        )
    _print(found, as_json)


def _read(
    path: Path, model: "FactorModel", columns: "ColumnNames", ids: Any, on_bad_rows: Any, console: "Console"
) -> "Ratings | Blocks":
    """Open blocks; or read a file of ratings for the model, and say how many rows were dropped."""
    from dpals.data.bad_rows import BadRows
    from dpals.data.blocks.folder import open_blocks
    from dpals.data.read import read_file
    from dpals.model.history import wanted_columns

    if holds_blocks(path):
        return open_blocks(path)
    ratings = read_file(
        path,
        wanted_columns(model.rating_range, columns),
        rating_range=model.rating_range,
        catalogue=model.items,
        bad=BadRows(on_bad_rows, "drop"),
        user_ids=ids,
    )
    if ratings.report.rows_dropped:
        console.print(f"{path}: {ratings.report}.")
    return ratings


def _print(found: "Evaluation", as_json: bool) -> None:
    scores = {} if found.rmse is None else {"RMSE": found.rmse}
    scores |= {f"Recall@{found.k}": found.recall, f"NDCG@{found.k}": found.ndcg}
    if as_json:
        facts = {name: getattr(found, name) for name in ("users", "newcomers", "ratings", "seen")}
        print_json({**scores, **facts, "private": False, "note": FOR_YOUR_EYES_ONLY})
        return
    for name, score in scores.items():
        echo(f"{name:10} {score:.4f}  {'lower' if name == 'RMSE' else 'higher'} is better")
    newcomers = f", {found.newcomers:,} of them without a history" if found.newcomers else ""
    echo(f"Predicted: {found.ratings:,} test rows of {found.users:,} users{newcomers}.")
    echo(FOR_YOUR_EYES_ONLY)
