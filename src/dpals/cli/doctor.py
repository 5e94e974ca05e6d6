"""``dpals doctor``: does this installation work?"""

import platform
import tempfile
from importlib.metadata import version
from pathlib import Path

import click


@click.command("doctor")
def command() -> None:
    """Check that this installation works: libraries, compiled kernels, noise, ledger."""
    click.echo(f"dpals {version('dpals')} on Python {platform.python_version()}, {platform.platform()}")
    failed = False
    for check in (_libraries, _release, _ledger):
        click.echo(f"  {check.__doc__}: ", nl=False)
        try:
            click.secho(check(), fg="green")
        except Exception as problem:  # a doctor reports whatever is wrong
            failed = True
            click.secho(f"{type(problem).__name__}: {problem}", fg="red")
    if failed:
        raise RuntimeError("this installation does not work")


def _libraries() -> str:
    """libraries"""
    names = ("numpy", "scipy", "numba", "polars", "cryptography")
    return ", ".join(f"{name} {version(name)}" for name in names)


def _release() -> str:
    """kernels and noise"""
    import numpy as np

    from dpals.release.accounting import Budget
    from dpals.release.contribution import Offer, Pattern, Query
    from dpals.release.mechanism import Door

    door = Door(Budget(epsilon=1.0, delta=1e-5))
    query = Query("doctor", 1, bound=1.0, form="symmetric", dimension=80)
    offer = Offer(Pattern.one_item(0), np.ones(0), np.ones((0, 80)))
    noise = door.release(query, offer, door.budget.cost)[0] / door.releases[0].sigma
    if not 0.6 < noise.std() < 0.9:  # 1 on the diagonal, 0.71 off it
        raise RuntimeError(f"the noise has {noise.std():.3f} times the standard deviation that it should have")
    return "a release works"


def _ledger() -> str:
    """ledger"""
    from dpals.release.ledger import Ledger

    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.db")
        ledger.spend("doctor", "check", cost=1)
        ledger.verify()
    return "written, read and verified"
