"""``dpals statement``: print the privacy statement of a model."""

from pathlib import Path

import click

from dpals.cli.common import json_option, model_argument, output_option
from dpals.cli.outputs import text_to


@click.command("statement")
@model_argument
@click.option("--html", "as_html", is_flag=True, help="Print the statement as a web page.")
@json_option
@output_option("Write to this file: a page if it ends in .html, JSON if it ends in .json, otherwise text.")
def command(model: Path, as_html: bool, as_json: bool, output: Path | None) -> None:
    """Print the privacy statement of MODEL, a folder that `dpals fit` wrote.

    It says what is promised, to whom, at what cost, what was declared public, and what is not covered. A reviewer
    should need nothing else.

    \b
    Examples:
        dpals statement model/
        dpals statement model/ -o privacy.html
    """
    from dpals.model.factor_model import load

    if as_html and as_json:
        raise click.UsageError("pass --html or --json, not both")
    privacy = load(model).privacy
    if privacy is None:
        raise ValueError(f"{model} has no privacy statement: it was trained without privacy and protects nobody")
    ending = "" if output is None or as_html or as_json else output.suffix
    as_html, as_json = as_html or ending == ".html", as_json or ending == ".json"
    text = privacy.to_html() if as_html else privacy.to_json() if as_json else str(privacy)
    text_to(output, text)
