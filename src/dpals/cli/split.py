"""``dpals split``: split a file of ratings into a training file and a test file."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpals.cli.common import FILE, json_option, quiet_option, ratings_argument, reading_options
from dpals.cli.outputs import TABLES, check_ending, writable
from dpals.system.terminal import echo

if TYPE_CHECKING:
    from dpals.data.ratings import Ratings

_ANY_RATING = (-3e38, 3e38)


@click.command("split")
@ratings_argument
@click.argument("train", type=FILE, callback=writable)
@click.argument("test", type=FILE, callback=writable)
@click.option(
    "--fraction",
    default=0.1,
    show_default=True,
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Share of the ratings that go to TEST.",
)
@click.option("--seed", default=0, show_default=True, help="Another seed gives another split.")
@reading_options
@json_option
@quiet_option
def command(
    ratings: Path, train: Path, test: Path, fraction: float, seed: int, as_json: bool, quiet: bool, **reading: Any
) -> None:
    """Split the file RATINGS at random into TRAIN and TEST, both .csv or .parquet.

    \b
    Examples:
        dpals split ratings.csv train.csv test.csv
        dpals fit train.csv -o model --epsilon 1 --rating-range 0.5 5
        dpals evaluate model --history train.csv --test test.csv

    A hash of seed, user and item decides where a rating goes, so no rating depends on another. The columns are user,
    item and, if there are ratings, rating. Only you can read the files.
    """
    check_ending(train, TABLES, "TRAIN")
    check_ending(test, TABLES, "TEST")
    if len({path.absolute() for path in (ratings, train, test)}) < 3:
        raise click.UsageError("RATINGS, TRAIN and TEST must be three different files")
    from dpals.data.write import write_ratings
    from dpals.evaluation.splits import split_entries
    from dpals.system.files import OWNER_ONLY

    parts = split_entries(_read(ratings, reading), (1 - fraction, fraction), seed)
    for part, path in zip(parts, (train, test), strict=True):
        write_ratings(part, path, OWNER_ONLY)
    if as_json:
        echo(json.dumps({str(path): part.n_ratings for part, path in zip(parts, (train, test), strict=True)}))
    elif not quiet:
        echo(f"{parts[0].n_ratings:,} rows in {train}, {parts[1].n_ratings:,} in {test}")


def _read(path: Path, reading: dict[str, Any]) -> "Ratings":
    """Read a file, whatever the scale of its ratings, if it has any."""
    from dpals.data.read import read_ratings
    from dpals.errors import RangeMissingError

    try:
        return read_ratings(path, **reading)
    except RangeMissingError:
        return read_ratings(path, rating_range=_ANY_RATING, **reading)
