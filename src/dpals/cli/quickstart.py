"""``dpals quickstart``: the main job on simulated data, in a minute."""

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpals.cli.common import delta_option, folder_option, json_option, messages, print_json, quiet_option
from dpals.system.terminal import echo

if TYPE_CHECKING:
    from rich.table import Table

    from dpals.data.ratings import Ratings
    from dpals.methods.base.estimator import Estimator, PrivateEstimator

OTHER_EPSILONS = (0.25, 4.0)
"""The other epsilons of the plot, as multiples of the one that was asked for."""
MEASURES = {"RMSE": "Test RMSE of predicted stars", "Recall@20": "Test Recall@20 of recommended films"}
LEVELS = {"ALS": "not private", "UserMean": "learns from nobody else"}
N_EXAMPLES, N_TITLES = 3, 5


@click.command("quickstart")
@click.option("--epsilon", default=1.0, show_default=True, help="Privacy budget; smaller is more private.")
@delta_option
@click.option(
    "--users", default=20_000, show_default=True, type=click.IntRange(100), help="Number of users to simulate."
)
@folder_option("quickstart", "Folder for the model, the ratings, the plot and the privacy statement.")
@json_option
@quiet_option
def command(epsilon: float, delta: float, users: int, output: Path, as_json: bool, quiet: bool) -> None:
    """Simulate ratings, train models with and without privacy, compare them, and recommend films.

    \b
    dpals quickstart
    dpals quickstart --epsilon 0.5 -o more-private

    All data is simulated, and the run takes about a minute. The output folder gets the ratings, a private model, a plot
    of accuracy against privacy, the privacy statement, and the commands that do the same with a file of your own.
    """
    from dpals.data.write import write_ratings
    from dpals.ledger.amounts import spent
    from dpals.release.accounting import Budget
    from dpals.system.files import write_whole

    Budget(epsilon, delta)  # invalid arguments are refused before any work
    output.mkdir(parents=True, exist_ok=True)
    console = messages(quiet)
    with console.doing(f"Simulating {users:,} users ..."):
        data = _Data.simulated(users)
        write_ratings(data.ratings, output / "ratings.parquet")
    results, model = _compare(data, epsilon, delta, not quiet)
    model.save(output / "model")
    privacy = model.privacy
    write_whole(output / "statement.html", privacy.to_html().encode())
    commands = _COMMANDS.format(output=output, epsilon=f"{epsilon:g}", delta=f"{delta:g}")
    write_whole(output / "COMMANDS.md", commands.encode())
    _draw(results, epsilon, output / "frontier.png")
    examples = _examples(data.clicks, model)
    if as_json:
        shown = [vars(result) for result in results]
        print_json({"simulated": True, "results": shown, "recommendations": examples})
        return
    _print(_table(results, epsilon, users))
    echo(_CAPTION)
    echo()
    _print(_table_of_examples(examples))
    echo(
        f"\nThe model is private with {spent(privacy.epsilon, privacy.delta)}: an attacker who wrongly accuses 1% of\n"
        f"the people who are not in the training data recognises at most "
        f"{math.ceil(1000 * privacy.attack_power) / 10:.1f}% of those who are."
    )
    recommend = f"recommend {output}/model --history {output}/ratings.parquet --user-id {next(iter(examples))} -k 5"
    similar = f'similar {output}/model "{next(iter(examples.values()))[0][0]}"'
    echo(_FILES.format(output=output, attempt=similar if model.model_.rank > 1 else recommend))


@dataclass(frozen=True)
class Result:
    """One model on one task."""

    method: str
    measure: str
    epsilon: float | None
    score: float
    seconds: float


@dataclass(frozen=True)
class _Data:
    """The same simulated people twice: with the stars that they gave, and with only what they have seen."""

    ratings: "Ratings"
    train: "Ratings"
    test: "Ratings"
    clicks: "Ratings"

    @classmethod
    def simulated(cls, users: int) -> "_Data":
        from dpals.data.ratings import Ratings
        from dpals.data.simulate import movielens_like
        from dpals.evaluation.splits import split_entries

        ratings = movielens_like(users, n_items=3_000, mean_ratings=80, seed=0, titles=True)
        train, test = split_entries(ratings, (0.8, 0.2))
        clicks = Ratings.from_csr(train.to_csr(), users=train.users, items=train.items, implicit=True)
        return cls(ratings, train, test, clicks)

    def score(self, method: "Estimator", measure: str) -> float:
        import numpy as np

        from dpals.evaluation.metrics import recall_at_k, rmse
        from dpals.evaluation.splits import pairs

        if measure == "RMSE":
            return rmse(method.predict(self.train, *pairs(self.test)), np.asarray(self.test.values))
        return recall_at_k(method.recommend(self.clicks, k=20)[0], self.test)


def _compare(data: _Data, epsilon: float, delta: float, progress: bool) -> tuple[list[Result], "PrivateEstimator"]:
    """Train all models; the second result is PooledDPALS on what users have seen."""
    import dpals
    from dpals.experiments.settings import settings_for
    from dpals.system.progress import progress_bar

    private = {"RMSE": ("PrivateBiases", "DPALS", "PooledDPALS"), "Recall@20": ("Popularity", "DPALS", "PooledDPALS")}
    tasks: list[tuple[str, float | None, Any]] = [("RMSE", None, dpals.UserMean())]
    for measure, names in private.items():
        kind = {"RMSE": "ratings", "Recall@20": "items"}[measure]
        for at in (epsilon, *(share * epsilon for share in OTHER_EPSILONS)):
            for name in names:
                settings = settings_for(kind, name, at, small=True)
                tasks.append((measure, at, getattr(dpals, name)(at, delta, **settings)))
        tasks.append((measure, None, dpals.ALS(**settings_for(kind, "ALS", None, small=True))))
    results, chosen = [], None
    with progress_bar(f"Training {len(tasks)} models", progress) as advance:
        for number, (measure, budget, method) in enumerate(tasks):
            advance(number, len(tasks))
            start = time.perf_counter()
            method.fit(data.train if measure == "RMSE" else data.clicks)
            seconds = time.perf_counter() - start
            results.append(Result(type(method).__name__, measure, budget, data.score(method, measure), seconds))
            if (type(method), measure, budget) == (dpals.PooledDPALS, "Recall@20", epsilon):
                chosen = method
    assert chosen is not None
    return results, chosen


def _table(results: list[Result], epsilon: float, users: int) -> "Table":
    from rich.table import Table

    rows = {
        "user mean": ("UserMean", "UserMean"),
        f"private biases, epsilon {epsilon:g}": ("PrivateBiases", "Popularity"),
        f"DPALS, epsilon {epsilon:g}": ("DPALS", "DPALS"),
        f"PooledDPALS, epsilon {epsilon:g}": ("PooledDPALS", "PooledDPALS"),
        "ALS, not private": ("ALS", "ALS"),
    }
    table = Table(title=f"{users:,} simulated users")
    table.add_column("method")
    for heading in ("RMSE", "Recall@20", "seconds"):
        table.add_column(heading, justify="right")
    for name, kinds in rows.items():
        found = [
            result
            for kind, measure in zip(kinds, MEASURES, strict=True)
            for result in results
            if (result.method, result.measure) == (kind, measure) and result.epsilon in (None, epsilon)
        ]
        scores = {result.measure: f"{result.score:.4f}" for result in found}
        seconds = sum(result.seconds for result in found)
        table.add_row(name, scores.get("RMSE", ""), scores.get("Recall@20", ""), f"{seconds:.1f}")
    return table


def _draw(results: list[Result], epsilon: float, path: Path) -> None:
    """Accuracy against epsilon, for both tasks."""
    import polars as pl

    from dpals.experiments.pictures import label, legend, level, line, panels
    from dpals.system.files import draft

    figure, axes = panels("Accuracy against privacy, simulated", list(MEASURES.values()))
    for axis, measure in zip(axes, MEASURES, strict=True):
        of_task = pl.DataFrame([vars(result) for result in results if result.measure == measure])
        for (name,), table in of_task.group_by("method", maintain_order=True):
            if name in LEVELS:
                level(axis, table["score"][0], f"{name}, {LEVELS[name]}", list(LEVELS).index(name))
            else:
                line(axis, table, "epsilon", "score", str(name))
        ticks = sorted(share * epsilon for share in (1.0, *OTHER_EPSILONS))
        label(axis, "epsilon: more private to the left", measure, ticks)
    legend(figure, axes)
    with draft(path) as place:
        figure.savefig(place, dpi=150, format="png")


def _examples(clicks: "Ratings", model: "Estimator") -> dict[Any, tuple[list[str], list[str]]]:
    """For users with a typical number of films: some that they have seen, and some that they might like."""
    import numpy as np

    counts = np.diff(clicks.indptr)
    users = np.argsort(np.abs(counts - np.median(counts)), kind="stable")[:N_EXAMPLES]
    ids, _ = model.recommend(clicks, k=N_TITLES)
    seen = {user: clicks.items[clicks.indices[clicks.indptr[user] :][:N_TITLES]].tolist() for user in users}
    return {clicks.users[user].item(): (seen[user], ids[user].tolist()) for user in users}


def _table_of_examples(examples: dict[Any, tuple[list[str], list[str]]]) -> "Table":
    from rich.table import Table

    table = Table(title="Recommended by PooledDPALS to three simulated users", show_lines=True)
    for heading in ("user", "has seen, among others", "might like"):
        table.add_column(heading)
    for user, titles in examples.items():
        table.add_row(str(user), *map("\n".join, titles))
    return table


def _print(table: "Table") -> None:
    from dpals.system.console import Console

    Console(soft_wrap=False).print(table)


_CAPTION = """\
RMSE: how far predicted stars are from those given; lower is better. Recall@20: share of the films that users went on
to see among 20 recommended ones; higher is better. Models that predict stars learn from stars. Models that recommend
learn from who saw what; there, private biases are the popularity of films. The seconds are for both. All data is
simulated."""

_FILES = """
In {output}/:
  model/            the model that recommends, and its privacy statement
  statement.html    the statement as a page for reviewers
  frontier.png      accuracy against epsilon
  ratings.parquet   the simulated ratings
  COMMANDS.md       the commands that do the same with a file of your own

Try:  dpals {attempt}
"""

_COMMANDS = """\
# The same with your own file

`ratings.csv` has a column for the user, one for the item and, if you have them, one for the rating.

To recommend items, learn from who saw what:

    dpals fit ratings.csv -o model --implicit --epsilon {epsilon} --delta {delta}
    dpals recommend model --history ratings.csv -k 20 -o recommendations.parquet
    dpals similar model ITEM
    dpals statement model

To predict ratings, declare their scale, which must be known without looking at the data:

    dpals split ratings.csv train.csv test.csv
    dpals fit train.csv -o rating-model --rating-range 0.5 5 --epsilon {epsilon} --delta {delta}
    dpals evaluate rating-model --history train.csv --test test.csv

Each training run adds to what was spent on the data. `dpals ledger show dpals-ledger.db` shows the total, and
`dpals ledger declare` sets a limit. `dpals plan` shows what accuracy to expect before anything is spent.

The model of the quickstart was trained on simulated ratings, which you can use as well:

    dpals recommend {output}/model --history {output}/ratings.parquet -k 5 -o recommendations.csv
"""
