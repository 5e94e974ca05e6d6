"""``dpals datasets``: list the known data sets, or download one."""

import click

from dpals.cli.common import json_option, print_json
from dpals.data.datasets.movielens import DATA_SETS
from dpals.system.terminal import echo


@click.group("datasets", invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the data sets that are known by name, with their size and location, or download one.

    \b
    Examples:
        dpals datasets
        dpals datasets get ml-1m
    """
    if ctx.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError("put --json after the command", ctx)
        return
    from dpals.data.datasets.archive import cache_folder, find

    places = {data.name: find(data.archive, cache_folder()) for data in DATA_SETS.values()}
    if as_json:
        facts = ("name", "users", "items", "ratings")
        listed = [{fact: getattr(data, fact) for fact in facts} for data in DATA_SETS.values()]
        print_json([{**one, "file": _text(places[one["name"]])} for one in listed])
        return
    for data in DATA_SETS.values():
        ratings = f"{'about ' if data.ratings_rounded_to > 1 else ''}{data.ratings:,}"
        echo(
            f"{data.name:13}  {data.users:7,} users  {data.items:6,} items  {ratings:>15} ratings  "
            f"{data.archive.size / 1e6:6.1f} MB  {places[data.name] or 'not downloaded'}"
        )


@command.command()
@click.argument("name", type=click.Choice(list(DATA_SETS)))
@json_option
def get(name: str, as_json: bool) -> None:
    """Download the data set NAME to the cache folder, unless it is there already, and print its path.

    The folder is ~/.cache/dpals, or the one in the environment variable DPALS_CACHE. An interrupted download resumes
    where it stopped.

    \b
    Example:
        dpals datasets get ml-1m
    """
    from dpals.data import datasets

    path = datasets.get(name)
    if as_json:
        import json

        echo(json.dumps({"name": name, "file": str(path)}))
    else:
        echo(path)


def _text(path: object) -> str | None:
    return None if path is None else str(path)
