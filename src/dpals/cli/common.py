"""What several commands share: arguments, options, messages and notes.

Results go to standard output, everything else to standard error, so that results can be piped.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dpals.cli.outputs import writable
from dpals.system.terminal import echo

if TYPE_CHECKING:
    from dpals.system.console import Console

Command = TypeVar("Command", bound=Callable[..., Any])

EXISTING = click.Path(exists=True, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)

ratings_argument = click.argument("ratings", type=EXISTING)
model_argument = click.argument("model", type=click.Path(exists=True, file_okay=False, path_type=Path))
history_option = click.option(
    "--history",
    required=True,
    type=EXISTING,
    help="The users' own ratings: CSV, TSV, Parquet (a file or a folder) or MovieLens.",
)
delta_option = click.option(
    "--delta", default=1e-6, show_default=True, help="Choose it well below one over the number of users."
)
rating_range_option = click.option(
    "--rating-range", nargs=2, type=float, metavar="LOW HIGH", help="The lowest and the highest possible rating."
)
implicit_option = click.option("--implicit", is_flag=True, help="Ignore the ratings: only who has what counts.")
catalogue_option = click.option(
    "--catalogue",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="All items: a text file with one id per line. Without it the items in RATINGS are declared public.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print only results and errors.")

_bad_rows_option = click.option(
    "--on-bad-rows",
    default="error",
    show_default=True,
    type=click.Choice(["error", "drop"]),
    help="Stop at a row that cannot be used, or drop such rows and count them.",
)
_ids_option = click.option(
    "--ids",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "integer", "string"]),
    help="Type of the ids. auto: the type in a Parquet file; text in a text file, except MovieLens.",
)


def _names(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _separator(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    return {"tab": "\t", "\\t": "\t"}.get(text, text) if text is not None else None


_columns_option = click.option(
    "--columns",
    metavar="NAMES",
    callback=_names,
    help="Columns of a text file without a header line, as in user,item,rating,timestamp.",
)
_separator_option = click.option(
    "--separator",
    metavar="CHARACTER",
    callback=_separator,
    help="What separates the columns of a text file without a header line; tab for a tab.",
)


def reading_options(command: Command) -> Command:
    """How to read a table: its columns, its separator, the type of its ids, and what to do with bad rows."""
    command = _columns_option(_separator_option(_ids_option(_bad_rows_option(command))))
    for role in ("timestamp", "rating", "item", "user"):
        text = f"Column of the {role}s, if its name is not recognised."
        command = click.option(f"--{role}", metavar="COLUMN", help=text)(command)
    return command


def count_option(default: int, text: str) -> Callable[[Command], Command]:
    """-k, the number of items, with its help text."""
    return click.option("-k", default=default, show_default=True, type=click.IntRange(1), help=text)


def output_option(text: str) -> Callable[[Command], Command]:
    """-o for a file, with its help text. Whether the file can be written is checked before any work."""
    return click.option("-o", "--output", type=FILE, help=text, callback=writable)


def folder_option(default: str, text: str) -> Callable[[Command], Command]:
    """-o for a folder, with its help text."""
    return click.option("-o", "--output", default=default, show_default=True, type=FOLDER, help=text)


def read_catalogue(file: Path | None) -> list[str] | list[int] | None:
    """The ids in a catalogue's file, as integers if all of them are."""
    if file is None:
        return None
    items = [line for line in file.read_text(encoding="utf-8").splitlines() if line]
    return [int(item) for item in items] if all(item.lstrip("-").isdigit() for item in items) else items


@contextmanager
def range_asked_for(path: Path) -> Iterator[None]:
    """Where ratings are read without their range, ask for it in the words of the command."""
    from dpals.errors import RangeMissingError

    try:
        yield
    except RangeMissingError:
        raise click.UsageError(
            f"{path.name} has ratings: declare their scale with --rating-range LOW HIGH, for example 0.5 5. The scale "
            "must be known without looking at the data. Or ignore the ratings with --implicit"
        ) from None


def messages(quiet: bool) -> "Console":
    """The console for messages, on standard error."""
    from dpals.system.console import Console

    return Console(stderr=True, quiet=quiet)


def print_json(value: Any) -> None:
    """Print a result as JSON."""
    import json

    echo(json.dumps(value, indent=2))


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Print the library's warnings, even where a command is quiet."""
    import logging

    class Shown(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            echo(f"Note: {record.getMessage()}.", err=True)

    handler, logger = Shown(logging.WARNING), logging.getLogger("dpals")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
