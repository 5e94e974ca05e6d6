"""``dpals split``: split ratings, in a file or in blocks, into a part to train on and a part to test on."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpals.cli.common import json_option, print_json, quiet_option, ratings_argument, reading_options
from dpals.cli.outputs import TABLES, check_ending, check_folder, writable
from dpals.cli.populations import holds_blocks, refuse_reading_options
from dpals.system.terminal import echo

if TYPE_CHECKING:
    from dpals.data.ratings import Ratings

_ANY_RATING = (-3e38, 3e38)


@click.command("split")
@ratings_argument
@click.argument("train", type=click.Path(path_type=Path), callback=writable)
@click.argument("test", type=click.Path(path_type=Path), callback=writable)
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
    """Split the file RATINGS at random into TRAIN and TEST, both .csv or .parquet; or a folder of blocks into two.

    \b
    Examples:
        dpals split ratings.csv train.csv test.csv
        dpals fit train.csv -o model --epsilon 1 --rating-range 0.5 5
        dpals evaluate model --history train.csv --test test.csv
        dpals split blocks train test

    A hash of seed, user and item decides where a rating goes, so no rating depends on another. The columns are user,
    item and, if there are ratings, rating. Where RATINGS is a folder of blocks, TRAIN and TEST become folders of blocks
    with the same users, items and facts; they are written one block after another. Files and blocks that are there are
    replaced. Only you can read them.
    """
    if len({path.absolute() for path in (ratings, train, test)}) < 3:
        raise click.UsageError("RATINGS, TRAIN and TEST must be three different places")
    places, fractions = (train, test), (1 - fraction, fraction)
    if holds_blocks(ratings):
        refuse_reading_options(ratings)
        sizes = _split_blocks(ratings, places, fractions, seed, not quiet)
    else:
        sizes = _split_file(ratings, places, fractions, seed, reading)
    if as_json:
        print_json({str(path): size for path, size in zip(places, sizes, strict=True)})
    elif not quiet:
        echo(f"{sizes[0]:,} rows in {train}, {sizes[1]:,} in {test}")


def _split_file(
    file: Path, places: tuple[Path, Path], fractions: tuple[float, float], seed: int, reading: dict[str, Any]
) -> list[int]:
    """Write the two files, and return how many rows each has."""
    for path, where in zip(places, ("TRAIN", "TEST"), strict=True):
        check_ending(path, TABLES, where)
    from dpals.data.write import write_ratings
    from dpals.evaluation.splits import split_entries
    from dpals.system.files import OWNER_ONLY

    parts = split_entries(_read(file, reading), fractions, seed)
    for part, path in zip(parts, places, strict=True):
        write_ratings(part, path, OWNER_ONLY)
    return [part.n_ratings for part in parts]


def _split_blocks(
    folder: Path, places: tuple[Path, Path], fractions: tuple[float, float], seed: int, progress: bool
) -> list[int]:
    """Write the two folders of blocks, and return how many ratings each has."""
    for path, where in zip(places, ("TRAIN", "TEST"), strict=True):
        if path.suffix in TABLES:
            raise click.BadParameter(f"{folder} holds blocks: this must be a folder for blocks, too", param_hint=where)
        check_folder(path)
    from dpals.data.blocks.folder import open_blocks
    from dpals.data.blocks.writer import write_blocks
    from dpals.evaluation.splits import split_entries

    parts = split_entries(open_blocks(folder), fractions, seed)
    return [
        write_blocks(part, path, overwrite=True, progress=progress).n_ratings
        for part, path in zip(parts, places, strict=True)
    ]


def _read(path: Path, reading: dict[str, Any]) -> "Ratings":
    """Read a file, whatever the scale of its ratings, if it has any."""
    from dpals.data.read import read_ratings
    from dpals.errors import RangeMissingError

    try:
        return read_ratings(path, **reading)
    except RangeMissingError:
        return read_ratings(path, rating_range=_ANY_RATING, **reading)
