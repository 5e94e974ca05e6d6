"""``dpals audit``: evidence that a method keeps its promise."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpals.cli.common import delta_option, json_option, messages, output_option, quiet_option
from dpals.cli.methods import NOT_PRIVATE_CHOICES, PRIVATE_CHOICES, estimator_of, required_epsilon, settings_option
from dpals.system.terminal import echo

if TYPE_CHECKING:
    from dpals.methods.base.estimator import Estimator, PrivateEstimator

_SEARCH = "search"


@click.command("audit")
@click.argument("model", required=False, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--method",
    metavar="NAME",
    type=click.Choice([*PRIVATE_CHOICES, _SEARCH, *NOT_PRIVATE_CHOICES]),
    help=f"In place of a model: one of {', '.join([*PRIVATE_CHOICES, _SEARCH])}.",
)
@click.option("--epsilon", type=float, help="What the method claims to keep to.")
@delta_option
@settings_option
@click.option("--implicit", is_flag=True, help="Audit with implicit feedback, where the method takes ratings as well.")
@click.option(
    "--level",
    "levels",
    multiple=True,
    type=click.IntRange(1, 4),
    help="1 replay, 2 noise, 3 canary, 4 one run; repeatable. By default all of them.",
)
@click.option("--runs", type=click.IntRange(1), help="Pairs of releases in level 3: 100,000, or 5,000 with --quick.")
@click.option("--quick", is_flag=True, help="Try less of everything; takes less than a minute.")
@output_option("Where to write the report with plots, an HTML file.")
@json_option
@quiet_option
def command(
    model: Path | None,
    method: str | None,
    epsilon: float | None,
    delta: float,
    settings: tuple[str, ...],
    implicit: bool,
    levels: tuple[int, ...],
    runs: int | None,
    quick: bool,
    output: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Try to break the privacy promise of a method, on simulated data, and say what was found.

    Give MODEL to audit the method that trained it, with its settings, or --method and --epsilon. In place of the
    model's folder, MODEL may be a JSON file of settings such as {"method": "DPALS", "epsilon": 1, "rank": 8}.

    \b
    dpals audit model --quick
    dpals audit --method dpals --epsilon 1 --set rank=8 -o audit.html
    dpals audit --method pooled --epsilon 1 --level 3 --runs 100000

    Each level gives evidence of another kind: exact comparison of neighbouring data sets; tests of the noise; canaries,
    users who reach every bound; attacks on the published model. Your own data is not touched, and no privacy is spent.

    Exit codes: 0 the promise held, 1 it is broken or too little was tried to say so, 2 the command was wrong.
    """
    if output is not None and output.suffix != ".html":
        raise click.BadParameter(f"{output.name!r} must end in .html", param_hint="-o")
    estimator, is_implicit = _subject(model, method, epsilon, delta, settings)
    from dpals.audit.run import run_audit

    console = messages(quiet)
    with console.doing() as tell, redirect_stdout(sys.stderr):  # methods may print what they like
        report = run_audit(
            estimator,
            levels=levels or (1, 2, 3, 4),
            implicit=True if implicit else is_implicit,
            runs=runs,
            quick=quick,
            tell=tell,
        )
    echo(report.to_json() if as_json else str(report))
    if output is not None:
        from dpals.system.files import write_whole

        write_whole(output, report.to_html().encode())
        console.print(f"The report with its plots is in {output}.")
    if report.verdict != "passed":
        raise click.exceptions.Exit(1)


def _subject(
    model: Path | None,
    method: str | None,
    epsilon: float | None,
    delta: float,
    settings: tuple[str, ...],
) -> "tuple[PrivateEstimator, bool | None]":
    """What to audit, the method of a model or one that options describe; and whether on implicit feedback."""
    from dpals.audit.recorded_run import checked_subject

    if (model is None) == (method is None):
        raise click.UsageError("say what to audit: either the folder of a MODEL, or --method NAME and --epsilon E")
    if model is not None:
        if epsilon is not None or settings:
            raise click.UsageError("a model has its own settings: leave out --epsilon and --set")
        estimator, is_implicit = _of_model(model)
        return checked_subject(estimator), is_implicit
    assert method is not None
    if method in NOT_PRIVATE_CHOICES:
        raise click.UsageError(f"{method} is not private: it promises nothing that could be audited")
    if method == _SEARCH:
        import dpals

        if settings:
            raise click.UsageError(
                "search audits one search as an example: for one of your own, call dpals.audit.run.run_audit"
            )
        grid = {"residual_bound": [0.1, 0.5]}
        return dpals.PrivateSearch(dpals.ItemMean(), grid, required_epsilon(epsilon), delta, tries=3.0), None
    return checked_subject(estimator_of(method, epsilon, delta, settings)), None


def _of_model(path: Path) -> "tuple[Estimator, bool | None]":
    """The method that trained a model, or is described in a file, and whether it was for implicit feedback."""
    from dpals.errors import InputError
    from dpals.methods.base.settings import estimator_from
    from dpals.model.factor_model import load

    if path.is_file():
        import json

        try:
            return estimator_from(json.loads(path.read_bytes())), None
        except ValueError as problem:
            raise InputError(f"{path} is not a JSON file of a method's settings: {problem}") from problem
    model = load(path)
    if model.privacy is None:
        raise click.UsageError(f"the model in {path} is not private: it promises nothing that could be audited")
    if not model.privacy.is_private:
        raise click.UsageError(f"the model in {path} was trained with a known seed: its statement says NOT PRIVATE")
    return estimator_from(model.settings), model.rating_range is None
