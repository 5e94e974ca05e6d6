"""``dpals simulate``: write simulated ratings to a file."""

from pathlib import Path

import click

from dpals.cli.common import FILE, json_option, print_json, quiet_option
from dpals.cli.outputs import TABLES, check_ending, writable
from dpals.system.terminal import echo


@click.command("simulate")
@click.argument("path", type=FILE, callback=writable)
@click.option("--users", default=20_000, show_default=True, type=click.IntRange(1), help="Number of users.")
@click.option("--items", default=3_000, show_default=True, type=click.IntRange(1), help="Number of items.")
@click.option(
    "--mean-ratings", default=80, show_default=True, type=click.IntRange(1), help="Mean number of ratings per user."
)
@click.option("--titles", is_flag=True, help="Use film titles as the ids of items, in place of numbers.")
@click.option("--seed", default=0, show_default=True, help="The same seed gives the same ratings.")
@json_option
@quiet_option
def command(
    path: Path, users: int, items: int, mean_ratings: int, titles: bool, seed: int, as_json: bool, quiet: bool
) -> None:
    """Write simulated ratings, shaped like MovieLens, to PATH (.csv or .parquet).

    \b
    Examples:
        dpals simulate ratings.csv
        dpals simulate ratings.parquet --users 100000 --items 5000 --titles

    The columns are user, item, and rating from 0.5 to 5 in half stars. To train on the file:

    \b
        dpals fit ratings.csv -o model --epsilon 1 --rating-range 0.5 5
    """
    check_ending(path, TABLES, "PATH")
    from dpals.data.simulate import movielens_like
    from dpals.data.write import write_ratings

    ratings = movielens_like(users, items, mean_ratings, seed=seed, titles=titles)
    write_ratings(ratings, path)
    if as_json:
        facts = {"path": str(path), "simulated": True, "users": users, "items": items, "ratings": ratings.n_ratings}
        print_json(facts)
    elif not quiet:
        echo(f"{ratings.n_ratings:,} simulated ratings of {users:,} users on {items:,} items in {path}")
