"""``dpals blocks``: write ratings, which may be larger than memory, to a folder of blocks of users."""

from pathlib import Path
from typing import Any

import click

from dpals.cli.common import (
    FOLDER,
    catalogue_option,
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
)
from dpals.cli.outputs import check_folder
from dpals.system.terminal import echo


@click.command("blocks")
@ratings_argument
@click.option("-o", "--output", required=True, metavar="FOLDER", type=FOLDER, help="Folder for the blocks.")
@rating_range_option
@implicit_option
@catalogue_option
@click.option(
    "--ratings-per-block",
    default=2**21,
    show_default=True,
    type=click.IntRange(1),
    help="How many ratings a block has at most, unless they are all of one user.",
)
@click.option("--overwrite", is_flag=True, help="Replace the blocks that are in FOLDER.")
@reading_options
@json_option
@quiet_option
def command(
    ratings: Path,
    output: Path,
    catalogue: Path | None,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Write RATINGS, which may be larger than memory, to blocks of users in FOLDER, to train on.

    \b
    dpals blocks ratings.parquet -o blocks --rating-range 0.5 5
    dpals blocks clicks/ -o blocks --implicit

    RATINGS is a CSV, TSV, MovieLens or Parquet file, or a folder of Parquet files. The blocks are the same bytes for
    the same ratings, whatever the order of rows. Only you can read them. Sorting takes as much space in FOLDER as the
    blocks, until it is done. An interrupted command resumes when it is run again.
    """
    from dpals.data.blocks.writer import write_blocks

    check_folder(output)
    console = messages(quiet)
    items = read_catalogue(catalogue)
    try:
        with range_asked_for(ratings):
            written = write_blocks(ratings, output, catalogue=items, overwrite=overwrite, progress=not quiet, **reading)
    except (OSError, KeyboardInterrupt):
        console.print("What is finished is kept. Run the same command again to resume.")
        raise
    if as_json:
        print_json(
            {
                "blocks": len(written.blocks),
                "users": written.n_users,
                "items": written.n_items,
                "ratings": written.n_ratings,
                "folder": str(output),
            }
        )
    elif not quiet:
        echo(f"{written!r} in {output}")
    if written.report.rows_dropped:
        console.print(f"{ratings}: {written.report}.")
