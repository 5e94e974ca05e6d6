"""``dpals fit``: train a model on a file of ratings."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpals.cli.common import (
    json_option,
    messages,
    quiet_option,
    reading_options,
    warnings_shown,
    writable,
)
from dpals.cli.methods import METHODS, NOT_PRIVATE, estimator_of, settings_option
from dpals.system.terminal import echo

if TYPE_CHECKING:
    from dpals.data.ratings import Ratings
    from dpals.ledger.ledger import Ledger
    from dpals.methods.base.estimator import Estimator
    from dpals.system.console import Console


@click.command("fit")
@click.argument("ratings", type=click.Path(exists=True, path_type=Path))
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="MODEL",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the model.",
)
@click.option("--epsilon", type=float, help="How much privacy to spend; smaller is more private, 1 is a good start.")
@click.option("--delta", default=1e-6, show_default=True, help="Well below one over the number of users.")
@click.option("--rating-range", nargs=2, type=float, metavar="LOW HIGH", help="Lowest and highest possible rating.")
@click.option("--implicit", is_flag=True, help="Ignore ratings: only who has what counts.")
@click.option(
    "--catalogue",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="All items: a text file with one id per line. Without it the items in RATINGS are declared public.",
)
@click.option(
    "--method",
    default="pooled",
    show_default=True,
    metavar="NAME",
    type=click.Choice([*METHODS, *NOT_PRIVATE]),
    help=f"One of {', '.join(METHODS)}; not private: {', '.join(NOT_PRIVATE)}.",
)
@settings_option
@click.option(
    "--ledger",
    default="dpals-ledger.db",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    callback=writable,
    help="File that records what is spent on which data set.",
)
@click.option("--dataset", metavar="NAME", help="Name of the data in the ledger. By default the name of the file.")
@click.option(
    "--checkpoint",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder that keeps what is released until the model is saved. By default MODEL/checkpoint.",
)
@click.option("--fresh", is_flag=True, help="Start over where a run was broken off. What it spent stays spent.")
@click.option("--overwrite", is_flag=True, help="Replace a model that is in MODEL.")
@click.option("--threads", type=click.IntRange(1), help="How many to use; all cores by default.")
@click.option("--dry-run", is_flag=True, help="Check everything and say what would be spent; spend nothing.")
@reading_options
@json_option
@quiet_option
def command(
    ratings: Path,
    output: Path,
    epsilon: float | None,
    delta: float,
    method: str,
    settings: tuple[str, ...],
    ledger: Path,
    dataset: str | None,
    checkpoint: Path | None,
    fresh: bool,
    overwrite: bool,
    threads: int | None,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Train a private model on RATINGS and write it to the folder MODEL.

    \b
    dpals fit ratings.csv -o model --epsilon 1 --rating-range 0.5 5
    dpals fit clicks.parquet -o model --epsilon 1 --implicit

    RATINGS is a CSV, TSV, MovieLens or Parquet file with a user, an item and, unless it is implicit feedback, a
    rating in each row. Before anything is spent, arguments, data and budget are checked. Each spend is recorded in
    the ledger before its noise is drawn. If training is broken off, the same command goes on where it stopped:
    what was released is kept, and not paid for again.
    """
    estimator = estimator_of(method, epsilon, delta, settings)
    _check_output(output, overwrite)
    if checkpoint is not None:
        _check_folder(checkpoint)
    if dataset == "":
        raise click.UsageError("the data set needs a name: --dataset NAME")
    run = _Run(
        estimator=estimator,
        output=output,
        ledger=None if method in NOT_PRIVATE else ledger,
        dataset=ratings.resolve().name.split(".")[0] if dataset is None else dataset,
        checkpoint=None if method in NOT_PRIVATE else checkpoint or output / "checkpoint",
        console=messages(quiet),
    )
    run.check_budget(fresh)
    data = _read(ratings, **reading)
    estimator.check(data)
    run.announce(data)
    if dry_run:
        with warnings_shown():
            run.warn_if_known(data)
        run.console.print("Nothing was spent: this was a dry run.")
        if as_json:
            echo(json.dumps(run.intention(), indent=2))
        return
    with warnings_shown():
        result = run.train(data, fresh, threads, progress=not quiet)
    echo(json.dumps(result, indent=2)) if as_json else run.summarise(result)


class _Run:
    """One training and where its parts are kept."""

    def __init__(
        self,
        estimator: "Estimator",
        output: Path,
        ledger: Path | None,
        dataset: str,
        checkpoint: Path | None,
        console: "Console",
    ) -> None:
        self.estimator = estimator
        self.output = output
        self.ledger = ledger
        self.dataset = dataset
        self.checkpoint = checkpoint
        self.console = console
        self.name = type(estimator).__name__

    def check_budget(self, fresh: bool) -> None:
        """Refuse what the data set's budget does not allow, before the data is read. No ledger is made for that."""
        from dpals.ledger.checkpoint import run_in
        from dpals.ledger.ledger import Ledger
        from dpals.release.accounting import Budget

        if self.ledger is None:
            return
        parameters = self.estimator.get_params()
        budget = Budget(parameters["epsilon"], parameters["delta"])
        if self.ledger.exists():
            run = "" if self.checkpoint is None else run_in(self.checkpoint)
            Ledger(self.ledger).check(self.dataset, f"training {self.name}", budget.cost, run, fresh)

    def intention(self) -> dict[str, Any]:
        """What training would spend, and on what."""
        from dpals.release.accounting import mu

        facts: dict[str, Any] = {"method": self.name, "dataset": self.dataset}
        if self.ledger is not None:
            parameters = self.estimator.get_params()
            epsilon, delta = parameters["epsilon"], parameters["delta"]
            facts |= {"epsilon": epsilon, "delta": delta, "mu": mu(epsilon, delta), "ledger": str(self.ledger)}
        return facts

    def announce(self, data: "Ratings") -> None:
        """Say what will be spent, and for what."""
        say = self.console.print
        say(f"Read: {data.report}. {data}")
        if data.schema:
            say(f"{data.schema} All this counts as public.")
        if self.ledger is None:
            say(f"{self.name} is NOT private: the model may tell about the people in the data.")
            return
        from dpals.ledger.amounts import spent

        facts = self.intention()
        limit = spent(facts["epsilon"], facts["delta"], facts["mu"])
        say(
            f"Will spend: at most {limit} of the data set {self.dataset!r}, to train {self.name}. The ledger is "
            f"{self.ledger}."
        )
        if self.estimator.get_params()["insecure_seed"] is not None:
            say("insecure_seed makes noise that can be removed: the model will NOT be private.")
        if self.ledger.exists():
            self._announce_earlier(facts["delta"])

    def _announce_earlier(self, delta: float) -> None:
        """Say what was spent before, and what else the ledger knows."""
        from dpals.ledger.amounts import allowed
        from dpals.ledger.ledger import Ledger
        from dpals.ledger.totals import budget_of, total_of

        assert self.ledger is not None
        entries = Ledger(self.ledger).entries()
        budget, limit = budget_of(entries, self.dataset), "no budget is declared"
        if budget is not None:
            delta, limit = budget.delta, f"its budget is {allowed(budget.epsilon, budget.delta)}"
        before = total_of(entries, self.dataset).text(delta)
        self.console.print(f"Spent on {self.dataset!r} before: {before}; {limit}.")
        others = sorted({entry.dataset for entry in entries} - {self.dataset})
        if others:
            names = ", ".join(map(repr, others))
            advice = "For ratings of the same people, --dataset makes spends add up."
            self.console.print(f"The ledger also knows {names}. {advice}")

    def warn_if_known(self, data: "Ratings") -> None:
        """Say where the ledger knows the people under another name."""
        from dpals.ledger.ledger import Ledger

        if self.ledger is not None and self.ledger.exists() and not data.anonymous:
            Ledger(self.ledger).warn_of_shared_users(self.dataset, data.users.tolist())

    def train(self, data: "Ratings", fresh: bool, threads: int | None, progress: bool) -> dict[str, Any]:
        """Train, save, and say in numbers what came out."""
        from dpals.ledger.ledger import Ledger
        from dpals.methods.base.options import Options

        options = Options(threads, progress, self.checkpoint)
        paid: dict[str, Any] = {}
        if self.ledger is not None:
            ledger = Ledger(self.ledger)
            if fresh:
                self._give_up(ledger)
            paid = {"ledger": ledger, "dataset": self.dataset}
        start = time.perf_counter()
        try:
            self.estimator.fit(data, options=options, **paid)
            self.estimator.save(self.output)
        except (OSError, KeyboardInterrupt):
            if self.checkpoint is not None:
                advice = "What was released is kept. Run the same command again to go on without paying twice."
                self.console.print(advice)
            raise
        model = self.estimator.model_
        result = {
            "model": str(self.output),
            "method": self.name,
            "items": len(model.items),
            "rank": model.rank,
            "seconds": round(time.perf_counter() - start, 2),
            "report": getattr(self.estimator, "report_", None),
            "private": model.privacy is not None and model.privacy.is_private,
        }
        if model.privacy is not None:
            facts = ("epsilon", "delta", "mu", "ledger_head", "dataset")
            of_all = ("dataset_epsilon", "dataset_delta", "dataset_mu", "dataset_searches")
            result |= {name: getattr(model.privacy, name) for name in (*facts, *of_all)}
        return result

    def _give_up(self, ledger: "Ledger") -> None:
        """Forget the run that was broken off, and give back what it had reserved and not spent."""
        from dpals.ledger.checkpoint import remove_checkpoint, run_in

        assert self.checkpoint is not None
        run = run_in(self.checkpoint)
        remove_checkpoint(self.checkpoint)  # first: it refuses if the run goes on
        if run:
            ledger.end(run)

    def summarise(self, result: dict[str, Any]) -> None:
        """Say what came out, and what to do next."""
        echo(f"{self.estimator.model_!r} in {self.output}, trained in {result['seconds']:.1f} s.")
        if result["report"]:
            echo(result["report"])
        privacy = self.estimator.model_.privacy
        if privacy is not None:
            echo(f"All runs on {self.dataset!r} together: {privacy.together}.")
            self.console.print(f"What is promised:  dpals statement {self.output}")
        self.console.print(f"Recommendations:   dpals recommend {self.output} --history RATINGS")


def _check_output(output: Path, overwrite: bool) -> None:
    """Refuse a folder that holds a model, or cannot be written, before anything is spent."""
    if (output / "model.json").exists() and not overwrite:
        raise click.UsageError(f"{output} holds a model that was paid for: give another folder, or --overwrite")
    _check_folder(output)


def _check_folder(folder: Path) -> None:
    """Refuse a folder that could not be made or written."""
    from tempfile import TemporaryFile

    existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not existing.is_dir():
        raise OSError(f"{folder} cannot be written: {existing} is a file, not a folder")
    with TemporaryFile(dir=existing):
        pass


def _read(path: Path, catalogue: Path | None, rating_range: tuple[float, float] | None, **columns: Any) -> "Ratings":
    from dpals.data.read import read_ratings
    from dpals.errors import RangeMissingError

    items: list[str] | list[int] | None = None
    if catalogue is not None:
        items = [line for line in catalogue.read_text(encoding="utf-8").splitlines() if line]
        if all(item.lstrip("-").isdigit() for item in items):
            items = [int(item) for item in items]
    try:
        return read_ratings(path, rating_range=rating_range, catalogue=items, **columns)
    except RangeMissingError:
        raise click.UsageError(
            f"{path.name} has ratings: declare their scale with --rating-range LOW HIGH, for example 0.5 5, to be "
            "known without looking at the data; or ignore them with --implicit"
        ) from None
