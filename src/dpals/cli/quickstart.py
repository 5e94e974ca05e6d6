"""``dpals quickstart``: the main job on simulated data, in half a minute."""

import time
from pathlib import Path

import click


@click.command("quickstart")
@click.option("--epsilon", default=1.0, show_default=True, help="Privacy budget; smaller is more private.")
@click.option("--delta", default=1e-6, show_default=True, help="Well below one over the number of users.")
@click.option("--users", default=20_000, show_default=True, type=click.IntRange(100), help="Users to simulate.")
@click.option(
    "-o",
    "--output",
    default="quickstart",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the privacy statement.",
)
def command(epsilon: float, delta: float, users: int, output: Path) -> None:
    """Simulate ratings, train a private model, compare it and print its privacy statement."""
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from dpals.evaluation.metrics import rmse
    from dpals.evaluation.splits import pairs, split_entries
    from dpals.methods.als import ALS
    from dpals.methods.biases import PrivateBiases
    from dpals.methods.pooled_dpals import PooledDPALS
    from dpals.private.centering import user_offsets
    from dpals.release.accounting import Budget
    from dpals.simulate import movielens_like

    Budget(epsilon, delta)  # wrong arguments are refused before any work
    console = Console()
    with console.status(f"Simulating {users:,} users ..."):
        ratings = movielens_like(users, n_items=3_000, mean_ratings=80, seed=0)
        train, _, test = split_entries(ratings)
    with console.status("Training ..."):
        start = time.perf_counter()
        model = PooledDPALS(epsilon, delta).fit(train)
        seconds = time.perf_counter() - start
        biases = PrivateBiases(epsilon, delta).fit(train)
        reference = ALS(rank=16, steps=8).fit(train)

    test_users, test_items = pairs(test)
    truth = np.asarray(test.values)
    middle = np.full(train.n_items, model.model_.global_mean)
    user_means = model.model_.global_mean + user_offsets(train, middle, shrinkage=5.0)
    table = Table(title=f"Test RMSE on {ratings.n_ratings:,} simulated ratings of {users:,} users")
    table.add_column("model")
    table.add_column("RMSE", justify="right")
    for name, predictions in [
        ("global mean", np.full(test.n_ratings, model.model_.global_mean)),
        ("user mean", user_means[train.user_index(test_users)]),
        (f"PrivateBiases, epsilon {epsilon:g}", biases.predict(train, test_users, test_items)),
        (f"PooledDPALS, epsilon {epsilon:g}", model.predict(train, test_users, test_items)),
        ("ALS, not private", reference.predict(train, test_users, test_items)),
    ]:
        table.add_row(name, f"{rmse(predictions, truth):.4f}")
    console.print(table)
    console.print(f"PooledDPALS was trained in {seconds:.1f} s. {model.report_}\n", highlight=False)

    click.echo(str(model.privacy))
    output.mkdir(parents=True, exist_ok=True)
    page = output / "privacy.html"
    page.write_text(model.privacy.to_html(), encoding="utf-8")
    console.print(f"\nThe statement is in {page}. On your own ratings:\n")
    console.print(
        f"    import dpals\n"
        f'    ratings = dpals.read_ratings("ratings.csv", rating_range=(0.5, 5.0))\n'
        f"    model = dpals.PooledDPALS(epsilon={epsilon:g}, delta={delta:g}).fit(ratings)",
        markup=False,
        highlight=False,
    )
