"""``dpals ledger``: what was spent on which data set."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpals.cli.common import FILE, json_option, print_json
from dpals.system.terminal import echo

if TYPE_CHECKING:
    from dpals.ledger.entries import Entry
    from dpals.ledger.totals import Run

_PATH = click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
_SHOWN = ("budget", "reservation", "spend", "end", "search")


@click.group("ledger")
def command() -> None:
    """Show or verify what was spent on each data set, declare budgets, or give up an interrupted run.

    A ledger is the file in which `dpals fit` records each spend before it draws the noise: dpals-ledger.db, unless you
    name another. Keep it as long as the data.

    \b
    dpals ledger declare dpals-ledger.db ratings --epsilon 4 --delta 1e-6
    dpals ledger show dpals-ledger.db
    """


@command.command()
@_PATH
@json_option
def show(path: Path, as_json: bool) -> None:
    """Print the entries of the ledger at PATH, the total for each data set, and the runs that have not ended.

    A run reserves all that it may cost until it ends. An interrupted run can be resumed, with the command that started
    it, or given up, with `dpals ledger release`.
    """
    from dpals.ledger.ledger import Ledger
    from dpals.ledger.totals import runs_of

    entries = Ledger(path).entries()
    datasets = {name: _facts(entries, name) for name in sorted({entry.dataset for entry in entries})}
    held = [run for run in runs_of(entries) if run.is_open]
    if as_json:
        result = {
            "entries": [entry.public() for entry in entries if entry.kind != "population"],
            "datasets": datasets,
            "open_runs": [{**vars(run), "charge": run.charge} for run in held],
        }
        print_json(result)
        return
    published = {entry.receipt for entry in entries if entry.kind == "publication"}
    for entry in entries:
        if entry.kind in _SHOWN:
            kept = ", not published" if entry.receipt and entry.receipt not in published else ""
            echo(f"{entry.time}  {entry.kind:11}  {_size(entry):24}  {entry.dataset}: {entry.purpose}{kept}")
    for name, facts in datasets.items():
        echo(f"{name}: {facts['text']} spent in all, {facts['limit']}")
    for run in held:
        echo(_open_run(run, path))


@command.command()
@_PATH
@click.option("--head", help="A head printed in a privacy statement: it must be in the ledger.")
@json_option
def verify(path: Path, head: str | None, as_json: bool) -> None:
    """Check the hash chain of the ledger at PATH and, with --head, that nothing before that head was changed."""
    from dpals.ledger.ledger import Ledger

    found = Ledger(path).verify(head)
    echo(json.dumps({"sound": True, "head": found}) if as_json else f"sound; head {found}")


@command.command()
@click.argument("path", type=FILE)
@click.argument("dataset")
@click.option("--epsilon", required=True, type=float, help="The most that may ever be spent on the data set.")
@click.option("--delta", required=True, type=float, help="Choose it well below one over the number of users.")
@json_option
def declare(path: Path, dataset: str, epsilon: float, delta: float, as_json: bool) -> None:
    """Declare the budget of DATASET in the ledger at PATH, which is created if it does not exist.

    From then on a training run that would exceed the budget is refused before it spends anything. The last declaration
    counts.
    """
    if not dataset:
        raise click.UsageError("DATASET needs a name")
    from dpals.ledger.ledger import Ledger
    from dpals.release.accounting import Budget

    Budget(epsilon, delta)  # invalid numbers are refused before a ledger is created
    ledger = Ledger(path)
    ledger.declare(dataset, epsilon, delta)
    facts = _facts(ledger.entries(), dataset)
    if as_json:
        print_json({"dataset": dataset, **facts})
    else:
        echo(f"{dataset}: {facts['limit']}, {facts['text']} spent so far")
    if facts["exceeded"]:
        echo("More than that is spent already: every further spend will be refused.", err=True)


@command.command()
@_PATH
@click.argument("run")
@json_option
def release(path: Path, run: str, as_json: bool) -> None:
    """Give up the interrupted run RUN in the ledger at PATH: what it reserved and did not spend is given back.

    `dpals ledger show` lists such runs. What a run spent stays spent. Where costs depend on earlier releases, as with
    the method pooled, the first release spends the whole budget of the run.
    """
    from dpals.ledger.ledger import Ledger
    from dpals.ledger.totals import runs_of

    ledger = Ledger(path)
    held = ledger.end(run)
    if held is None:
        raise ValueError(f"{path} has no open run {run!r}: `dpals ledger show {path}` lists the open runs")
    (ended,) = [other for other in runs_of(ledger.entries()) if other.name == run]
    facts = _facts(ledger.entries(), held.dataset)
    if as_json:
        print_json({"run": run, "given_back": held.charge - ended.charge, "dataset": held.dataset, **facts})
        return
    part = "nothing: its costs depend on its releases" if held.charge == ended.charge else "what it did not spend"
    echo(f"{held.purpose!r} gives back {part}. {held.dataset}: {facts['text']} spent in all, {facts['limit']}")


def _facts(entries: "list[Entry]", dataset: str) -> dict[str, Any]:
    """What was spent on a data set and what may be spent, as data and in words."""
    from dpals.ledger.amounts import allowed
    from dpals.ledger.totals import budget_of, delta_of, total_of

    total, budget = total_of(entries, dataset), budget_of(entries, dataset)
    delta = delta_of(entries, dataset)
    epsilon, whole_delta = total.at(delta)
    return {
        "epsilon": epsilon,
        "delta": whole_delta,
        "mu": total.mu,
        "cost": total.cost,
        "searches": total.searches,
        "seeded": total.seeded,
        "budget": None if budget is None else {"epsilon": budget.epsilon, "delta": budget.delta},
        "exceeded": budget is not None and total.cost > total.allowance(budget),
        "text": total.text(delta) + (" (some of it with seeded noise: NOT PRIVATE)" if total.seeded else ""),
        "limit": "no budget declared" if budget is None else f"{allowed(budget.epsilon, budget.delta)} allowed in all",
    }


def _size(entry: "Entry") -> str:
    """The amount in an entry, in words."""
    from dpals.ledger.amounts import allowed, down, spent, up
    from dpals.release.accounting import mu_of

    if entry.kind == "search":
        return spent(entry.epsilon, entry.delta)
    if entry.kind == "budget":
        return allowed(entry.epsilon, entry.delta)
    if entry.kind == "end":
        return f"mu {down(mu_of(entry.cost))} given back"
    return f"mu {up(mu_of(entry.cost))}"


def _open_run(run: "Run", path: Path) -> str:
    """What an open run holds, and what to do about it."""
    from dpals.ledger.amounts import up
    from dpals.release.accounting import mu_of

    return (
        f"not ended: {run.purpose!r} on {run.dataset!r} since {run.since} holds mu {up(mu_of(run.charge))}, of which "
        f"mu {up(mu_of(run.spent))} is spent. If it is not running, resume it with the command that started it, "
        f"or give it up: dpals ledger release {path} {run.name}"
    )
