"""``dpals ledger``: what was spent on which data set."""

import json
from pathlib import Path

import click

from dpals.cli.common import json_option
from dpals.terminal import echo

_PATH = click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.group("ledger")
def command() -> None:
    """Show or verify what was spent on which data set, or declare how much may be.

    A ledger is the file that `dpals fit` writes each spend to before it draws noise: dpals-ledger.db, if you did not
    name another. Keep it as long as the data.

    \b
    dpals ledger declare dpals-ledger.db ratings --epsilon 4 --delta 1e-6
    dpals ledger show dpals-ledger.db
    """


@command.command()
@_PATH
@json_option
def show(path: Path, as_json: bool) -> None:
    """Print what was declared and spent in the ledger at PATH, and the sum for each data set."""
    from dpals.release.accounting import mu_of
    from dpals.release.ledger import Ledger

    ledger = Ledger(path)
    entries = ledger.entries()
    if as_json:
        echo(json.dumps([vars(entry) for entry in entries], indent=2))
        return
    published = {entry.receipt for entry in entries if entry.kind == "publication"}
    for entry in entries:
        if entry.kind != "publication":
            kept = ", not published" if entry.receipt and entry.receipt not in published else ""
            mu = f"mu {mu_of(entry.cost):<10.6g}"
            echo(f"{entry.time}  {entry.kind:6}  {mu}  {entry.dataset}: {entry.purpose}{kept}")
    for dataset in sorted({entry.dataset for entry in entries}):
        spent, allowance = ledger.spent(dataset), ledger.allowance(dataset)
        limit = "no budget declared" if allowance is None else f"of mu {mu_of(allowance):.6g} allowed"
        echo(f"{dataset}: mu {mu_of(spent):.6g} spent in all, {limit}")


@command.command()
@_PATH
@click.option("--head", help="The head that a privacy statement printed: it must be in the ledger.")
@json_option
def verify(path: Path, head: str | None, as_json: bool) -> None:
    """Check the chain of the ledger at PATH, and that it still holds what a statement saw."""
    from dpals.release.ledger import Ledger

    found = Ledger(path).verify(head)
    echo(json.dumps({"sound": True, "head": found}) if as_json else f"sound; head {found}")


@command.command()
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("dataset")
@click.option("--epsilon", required=True, type=float, help="The most that may ever be spent on the data set.")
@click.option("--delta", required=True, type=float, help="Well below one over the number of users.")
def declare(path: Path, dataset: str, epsilon: float, delta: float) -> None:
    """Set the most that may ever be spent on DATASET, in the ledger at PATH, which is made if it is not there.

    From then on, a training that would exceed it is refused before it spends anything. The last declaration counts.
    """
    if not dataset:
        raise click.UsageError("DATASET needs a name")
    from dpals.release.accounting import Budget, mu_of
    from dpals.release.ledger import Ledger

    budget = Budget(epsilon, delta)  # wrong numbers are refused before a ledger is made
    ledger = Ledger(path)
    ledger.declare(dataset, epsilon, delta)
    spent = mu_of(ledger.spent(dataset))
    echo(f"{dataset}: mu {budget.mu:.6g} allowed in all, mu {spent:.6g} spent so far")
    if spent > budget.mu:
        echo("More than that is spent already: nothing more may be.", err=True)
