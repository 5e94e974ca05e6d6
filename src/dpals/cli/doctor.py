"""``dpals doctor``: check the installation."""

import platform
import tempfile
from pathlib import Path

import click

from dpals.cli.common import json_option, print_json, quiet_option
from dpals.system.terminal import echo


@click.command("doctor")
@json_option
@quiet_option
def command(as_json: bool, quiet: bool) -> None:
    """Check that this installation works: libraries, compiled kernels, noise, ledger and temporary files.

    It prints a line for each check. The exit code is 1 if a check fails. With --quiet only failed checks are printed.
    Whether Spark is installed is said as well; nothing else needs it.

    \b
    Examples:
        dpals doctor
        dpals doctor --json
    """
    from importlib.metadata import version

    found = {}
    here = f"dpals {version('dpals')} on Python {platform.python_version()}, {platform.platform()}"
    if not (as_json or quiet):
        echo(here)
    for check in (_libraries, _release, _ledger, _temporary_files, _spark):
        try:
            works, said = True, check()
        except Exception as problem:  # whatever is wrong is reported
            works, said = False, f"{type(problem).__name__}: {problem}"
        found[str(check.__doc__)] = {"works": works, "said": said}
        if not as_json and not (quiet and works):
            echo(f"  {check.__doc__}: {said}", fg="green" if works else "red")
    if as_json:
        print_json({"installation": here, "checks": found})
    if not all(result["works"] for result in found.values()):
        raise RuntimeError("this installation does not work")


def _libraries() -> str:
    """libraries"""
    from importlib.metadata import version

    names = ("numpy", "scipy", "numba", "polars", "cryptography")
    return ", ".join(f"{name} {version(name)}" for name in names)


def _release() -> str:
    """kernels and noise"""
    import numpy as np

    from dpals.release.accounting import Budget
    from dpals.release.contribution import Contribution, Pattern, Query
    from dpals.release.mechanism import Mechanism

    mechanism = Mechanism(Budget(epsilon=1.0, delta=1e-5))
    query = Query("doctor", 1, sensitivity=1.0, form="symmetric", dimension=80)
    contribution = Contribution(Pattern.one_item(0), np.ones(0), np.ones((0, 80)))
    noise = mechanism.release(query, contribution, mechanism.budget.cost)[0] / mechanism.releases[0].sigma
    if not 0.6 < noise.std() < 0.9:  # 1 on the diagonal, 0.71 off it
        raise RuntimeError(f"the standard deviation of the noise is {noise.std():.3f} times what it should be")
    return "a release works"


def _ledger() -> str:
    """ledger"""
    from dpals.ledger.ledger import Ledger

    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.db")
        ledger.spend("doctor", "check", cost=1)
        ledger.verify()
    return "written, read and verified"


def _temporary_files() -> str:
    """temporary files"""
    import shutil

    folder = tempfile.gettempdir()
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"dpals")
    return f"{folder} has {shutil.disk_usage(folder).free / 1e9:.1f} GB free"


def _spark() -> str:
    """Spark (optional)"""
    from importlib.util import find_spec
    from shutil import which

    pyspark = "PySpark is installed" if find_spec("pyspark") else "no PySpark: pip install 'dpals[spark]'"
    java = "Java is there" if which("java") else "no Java: apt-get install default-jre-headless"
    return f"{pyspark}; {java}"
