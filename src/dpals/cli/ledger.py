"""``dpals ledger``: what was spent on which data set."""

import json
from pathlib import Path

import click

from dpals.release.accounting import mu_of
from dpals.release.ledger import Ledger

_PATH = click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.group("ledger")
def command() -> None:
    """Show or verify what was spent on which data set."""


@command.command()
@_PATH
@click.option("--json", "as_json", is_flag=True, help="Print the entries as JSON.")
def show(path: Path, as_json: bool) -> None:
    """Print every entry of the ledger at PATH, and what is left of each budget."""
    ledger = Ledger(path)
    entries = ledger.entries()
    if as_json:
        click.echo(json.dumps([vars(entry) for entry in entries], indent=2))
        return
    for entry in entries:
        click.echo(f"{entry.time}  {entry.kind:6}  mu {mu_of(entry.cost):<10.6g}  {entry.dataset}: {entry.purpose}")
    for dataset in sorted({entry.dataset for entry in entries}):
        spent, allowance = ledger.spent(dataset), ledger.allowance(dataset)
        limit = "no budget declared" if allowance is None else f"of mu {mu_of(allowance):.6g} allowed"
        click.echo(f"{dataset}: mu {mu_of(spent):.6g} spent in all, {limit}")


@command.command()
@_PATH
@click.option("--head", help="The head that a privacy statement printed: it must be in the ledger.")
def verify(path: Path, head: str | None) -> None:
    """Check the chain of the ledger at PATH, and that it still holds what a statement saw."""
    click.echo(f"sound; head {Ledger(path).verify(head)}")
