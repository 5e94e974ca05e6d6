"""``dpals plan``: estimate the accuracy to expect, without touching any data."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpals.cli.common import delta_option, json_option, messages, output_option, quiet_option
from dpals.cli.outputs import check_ending
from dpals.system.terminal import echo

if TYPE_CHECKING:
    from dpals.experiments.planning import Plan, Size


@click.command("plan")
@click.option("--users", required=True, type=click.IntRange(100), help="Approximate number of users.")
@click.option("--items", required=True, type=click.IntRange(10), help="Number of items in the catalogue.")
@click.option("--ratings", required=True, type=click.IntRange(1), help="Approximate number of ratings or clicks.")
@click.option("--epsilon", required=True, type=float, help="Privacy budget that you consider.")
@delta_option
@click.option(
    "--task",
    default="ratings",
    show_default=True,
    type=click.Choice(["ratings", "items"]),
    help="Predict ratings (RMSE, lower is better), or recommend items from clicks (Recall@20, higher is better).",
)
@output_option("Write a plot to this .png file.")
@json_option
@quiet_option
def command(
    users: int,
    items: int,
    ratings: int,
    epsilon: float,
    delta: float,
    task: str,
    output: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Estimate the accuracy of each method on data of a given size, and the settings that give it.

    Everything is simulated: no data is needed, and no privacy is spent. Give round numbers: the exact number of your
    users is private.

    \b
    Examples:
        dpals plan --users 50000 --items 8000 --ratings 4000000 --epsilon 1
        dpals plan --users 50000 --items 8000 --ratings 4000000 --epsilon 1 --task items -o plan.png

    The result is a table of the methods, best first, and the accuracy of the best one at other epsilons.
    """
    check_ending(output, (".png",), "-o")
    from dpals.experiments.planning import Size, draw_plan, make_plan
    from dpals.release.accounting import Budget

    Budget(epsilon, delta)  # invalid arguments are refused before any work
    size = Size.of(users, items, ratings)
    console = messages(quiet)
    with console.doing() as tell:
        plan = make_plan(task, size, epsilon, delta, tell)
    asked = {"users": users, "items": items, "ratings": ratings, "epsilon": epsilon, "delta": delta, "task": task}
    _print_json(plan, size, asked) if as_json else _print(plan, size, asked)
    if output is not None:
        from dpals.system.files import draft

        with draft(output) as place:
            draw_plan(plan, epsilon).savefig(place, format="png", dpi=150, bbox_inches="tight")
        console.print(f"The plot is in {output}.")


def _print_json(plan: "Plan", size: "Size", asked: dict[str, Any]) -> None:
    import json

    from dpals.experiments.tasks import METRICS

    result = {
        **asked,
        "simulated": {"users": size.users, "items": size.items},
        "metric": METRICS[asked["task"]],
        "methods": [{"method": one.method, "score": one.score, "settings": one.settings} for one in plan.methods],
        "not_private": plan.reference,
        "best_at": [{"epsilon": at, "score": score} for at, score in plan.best_at.items()],
    }
    echo(json.dumps(result, indent=2, default=str))


def _print(plan: "Plan", size: "Size", asked: dict[str, Any]) -> None:
    from rich.table import Table

    from dpals.experiments.planning import significant
    from dpals.experiments.tasks import METRICS
    from dpals.system.console import Console

    console, metric = Console(), METRICS[asked["task"]]
    table = Table(title=f"Expected {metric} at epsilon {asked['epsilon']:g}, delta {asked['delta']:g}: simulated")
    for heading in ("method", metric, "settings other than the defaults"):
        table.add_column(heading, justify="right" if heading == metric else "left")
    for expected in plan.methods:
        shown = ", ".join(f"{name}={value!r}" for name, value in expected.settings.items())
        table.add_row(expected.method, significant(expected.score), shown)
    table.add_row("ALS, not private", significant(plan.reference), "")
    console.print(table)
    others = ", ".join(f"{significant(score)} at {at:g}" for at, score in plan.best_at.items())
    console.print(f"{plan.methods[0].method} at other epsilons: {others}.")
    if size.users < asked["users"]:
        console.print(
            f"The simulation had {size.users:,} users and {size.items:,} items, not {asked['users']:,} and "
            f"{asked['items']:,}, with proportionally less noise. With all of them the accuracy will be somewhat "
            "better, with and without privacy."
        )
    console.print("Your users differ from simulated ones: expect other numbers, but the same order of methods.")
