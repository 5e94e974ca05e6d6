"""``dpals plan``: what accuracy to expect, without touching data."""

from pathlib import Path

import click


@click.command("plan")
@click.option("--users", required=True, type=click.IntRange(100), help="Number of users that you have, about.")
@click.option("--items", required=True, type=click.IntRange(10), help="Number of items in your catalogue.")
@click.option("--ratings", required=True, type=click.IntRange(1), help="Number of ratings or clicks, about.")
@click.option("--epsilon", required=True, type=float, help="Privacy budget that you think of.")
@click.option("--delta", default=1e-6, show_default=True, help="Well below one over the number of users.")
@click.option(
    "--task",
    default="ratings",
    show_default=True,
    type=click.Choice(["ratings", "items"]),
    help="Predict ratings (RMSE, lower is better), or recommend items from clicks (Recall@20, higher is better).",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Where to write the plot, a PNG.")
def command(users: int, items: int, ratings: int, epsilon: float, delta: float, task: str, output: Path | None) -> None:
    """Show what accuracy each method can be expected to have on data of your size, and with which settings.

    Everything is simulated: no data is needed, and no privacy is spent. Numbers round off what you know; do not count
    your users exactly for it.
    """
    from rich.console import Console
    from rich.table import Table

    from dpals.experiments.planning import Size, draw_plan, make_plan, significant
    from dpals.experiments.tasks import METRICS
    from dpals.release.accounting import Budget

    Budget(epsilon, delta)  # wrong arguments are refused before any work
    size = Size.of(users, items, ratings)
    console = Console(soft_wrap=True)
    with console.status("...") as status:
        plan = make_plan(task, size, epsilon, delta, status.update)
    table = Table(title=f"Expected {METRICS[task]} at epsilon {epsilon:g}, delta {delta:g}: simulated")
    for heading in ("method", METRICS[task], "settings other than the defaults"):
        table.add_column(heading, justify="right" if heading == METRICS[task] else "left")
    for expected in plan.methods:
        shown = ", ".join(f"{name}={value!r}" for name, value in expected.settings.items())
        table.add_row(expected.method, significant(expected.score), shown)
    table.add_row("ALS, not private", significant(plan.reference), "")
    console.print(table)
    best = plan.methods[0].method
    others = ", ".join(f"{significant(score)} at {at:g}" for at, score in plan.best_at.items())
    console.print(f"{best} at other epsilons: {others}.", highlight=False)
    if size.users < users:
        console.print(
            f"Simulated were {size.users:,} users and {size.items:,} items, not {users:,} and {items:,}, with less "
            f"noise in proportion. With all of them the accuracy will be somewhat better, without privacy as well.",
            highlight=False,
        )
    console.print(
        "Your users are not these: expect differences of their own kind, but the same order.", highlight=False
    )
    if output is not None:
        draw_plan(plan, epsilon).savefig(output, dpi=150, bbox_inches="tight")
        console.print(f"The plot is in {output}.", highlight=False)
