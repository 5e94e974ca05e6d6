"""``dpals simulate``: simulated ratings in a file."""

from pathlib import Path

import click

from dpals import simulate
from dpals.files import draft


@click.command("simulate")
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--users", default=20_000, show_default=True, type=click.IntRange(1), help="Number of users.")
@click.option("--items", default=3_000, show_default=True, type=click.IntRange(1), help="Number of items.")
@click.option("--mean-ratings", default=80, show_default=True, type=click.IntRange(1), help="Ratings per user.")
@click.option("--seed", default=0, show_default=True, help="The same seed gives the same ratings.")
def command(path: Path, users: int, items: int, mean_ratings: int, seed: int) -> None:
    """Write simulated ratings, shaped like MovieLens, to PATH (.csv or .parquet).

    Columns: user, item, rating from 0.5 to 5 in half stars.
    """
    import numpy as np
    import polars as pl

    if path.suffix not in (".csv", ".parquet"):
        raise click.BadParameter(f"{path.name!r} must end in .csv or .parquet", param_hint="PATH")
    ratings = simulate.movielens_like(users, items, mean_ratings, seed=seed)
    frame = pl.DataFrame(
        {
            "user": np.repeat(ratings.users, np.diff(ratings.indptr)),
            "item": ratings.items[ratings.indices],
            "rating": ratings.values,
        }
    )
    with draft(path) as place:
        frame.write_csv(place) if path.suffix == ".csv" else frame.write_parquet(place)
    click.echo(f"{ratings.n_ratings:,} simulated ratings of {users:,} users on {items:,} items in {path}")
