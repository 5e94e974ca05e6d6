"""``dpals evaluate``: how well a model predicts what it has not seen."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from dpals.cli.common import (
    history_option,
    json_option,
    messages,
    model_argument,
    quiet_option,
    reading_options,
)
from dpals.system.terminal import echo

if TYPE_CHECKING:
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
    type=click.Path(exists=True, path_type=Path),
    help="Other ratings of these users, which the model was not trained on; a file like that of --history.",
)
@click.option("-k", default=20, show_default=True, type=click.IntRange(1), help="How many recommendations count.")
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

    Prints the RMSE of predicted ratings (lower is better; not for implicit feedback), and Recall@k and NDCG@k of
    recommendations that leave out the history (higher is better). Users who are not in the history are predicted as
    newcomers. Items that the model does not know are left out and counted.

    \b
    Examples:
        dpals evaluate model/ --history train.csv --test test.csv
        dpals evaluate model/ --history clicks.parquet --test later.parquet -k 50 --json

    The numbers are exact and not private: they are for your eyes only.
    """
    from dpals.evaluation.held_out import evaluate
    from dpals.model.factor_model import load

    loaded, console = load(model), messages(quiet)
    known, wanted = (_read(path, loaded, columns, ids, on_bad_rows, console) for path in (history, test))
    found = evaluate(loaded, known, wanted, min(k, len(loaded.items)))
    if found.seen:
        echo(
            f"Warning: {found.seen:,} of {found.ratings:,} test rows are in the history as well, where the model sees "
            "them. Leave them out of one of the files.",
            err=True,
        )
    _print(found, as_json)


def _read(
    path: Path, model: "FactorModel", columns: "ColumnNames", ids: Any, on_bad_rows: Any, console: "Console"
) -> "Ratings":
    """A file of ratings for the model, with what was left out said."""
    from dpals.data.bad_rows import BadRows
    from dpals.data.read import read_file
    from dpals.model.history import wanted_columns

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
        import json

        facts = {name: getattr(found, name) for name in ("users", "newcomers", "ratings", "seen")}
        echo(json.dumps({**scores, **facts, "private": False, "note": FOR_YOUR_EYES_ONLY}, indent=2))
        return
    for name, score in scores.items():
        echo(f"{name:10} {score:.4f}  {'lower' if name == 'RMSE' else 'higher'} is better")
    newcomers = f", {found.newcomers:,} of them without a history" if found.newcomers else ""
    echo(f"Predicted: {found.ratings:,} test rows of {found.users:,} users{newcomers}.")
    echo(FOR_YOUR_EYES_ONLY)
