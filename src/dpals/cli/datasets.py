"""``dpals datasets``: which data sets are known, which are here, and getting one."""

import click

from dpals import datasets
from dpals.datasets.files import cache_folder, find
from dpals.datasets.known import KNOWN


@click.group("datasets", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List the data sets that are known by name, or download one."""
    if ctx.invoked_subcommand is not None:
        return
    for data in KNOWN.values():
        file = find(data.archive, cache_folder())
        ratings = f"{'about ' if data.ratings_rounded_to > 1 else ''}{data.ratings:,}"
        click.echo(
            f"{data.name:13}  {data.users:7,} users  {data.items:6,} items  {ratings:>15} ratings  "
            f"{data.archive.size / 1e6:6.1f} MB  {file or 'not here'}"
        )


@command.command()
@click.argument("name", type=click.Choice(list(KNOWN)))
def get(name: str) -> None:
    """Download the data set NAME to the cache folder, unless it is there.

    The folder is ~/.cache/dpals, or the one in the environment variable DPALS_CACHE. A download that was broken off
    goes on where it stopped.
    """
    click.echo(datasets.get(name))
