"""What several commands share: options, messages and progress.

Results go to standard output, everything else to standard error, so that results can be piped.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dpals.system.terminal import echo

if TYPE_CHECKING:
    from dpals.system.console import Console

Command = TypeVar("Command", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print nothing but results and errors.")
model_argument = click.argument("model", type=click.Path(exists=True, file_okay=False, path_type=Path))
history_option = click.option(
    "--history",
    required=True,
    type=click.Path(exists=True, path_type=Path),
    help="The users' own ratings: CSV, TSV, Parquet (a file or a folder) or MovieLens.",
)
bad_rows_option = click.option(
    "--on-bad-rows",
    default="error",
    show_default=True,
    type=click.Choice(["error", "drop"]),
    help="Whether a row that cannot be used ends the work, or is dropped and counted.",
)
ids_option = click.option(
    "--ids",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "integer", "string"]),
    help="What ids are. auto: as the schema of a Parquet file says; text in a text file, but for MovieLens.",
)


def _names(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _separator(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    return {"tab": "\t", "\\t": "\t"}.get(text, text) if text is not None else None


columns_option = click.option(
    "--columns",
    metavar="NAMES",
    callback=_names,
    help="Columns of a text file without a header line, as in user,item,rating,timestamp.",
)
separator_option = click.option(
    "--separator",
    metavar="CHARACTER",
    callback=_separator,
    help="Between the columns of a text file, if its header line does not tell; tab for a tab.",
)


def output_option(text: str) -> Callable[[Command], Command]:
    """-o with its help text. Whether the file can be written is checked before any work."""
    kind = click.Path(dir_okay=False, path_type=Path)
    return click.option("-o", "--output", type=kind, help=text, callback=writable)


def writable(_ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """For an option or argument of click: the path of a file to write, or an error that says why it cannot be."""
    if path is None:
        return None
    import os

    folder = path.parent
    if not folder.is_dir():
        problem = "is a file, not a folder" if folder.exists() else "does not exist: create it first"
        raise OSError(f"{path} cannot be written: {folder} {problem}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OSError(f"{path} cannot be written: you may not write to {folder}. Choose another folder")
    return path


def text_to(output: Path | None, text: str) -> None:
    """Write a text to a file, whole or not at all, or to standard output."""
    if output is None:
        echo(text)
        return
    from dpals.system.files import write_whole

    write_whole(output, f"{text}\n".encode())


def reading_options(command: Command) -> Command:
    """How to read a table: which column is what, for those not found by their names, what ids are, and bad rows."""
    command = columns_option(separator_option(ids_option(bad_rows_option(command))))
    for role in ("timestamp", "rating", "item", "user"):
        text = f"Column with the {role}s, if its name does not tell." if role != "timestamp" else "And with the times."
        command = click.option(f"--{role}", metavar="COLUMN", help=text)(command)
    return command


def messages(quiet: bool) -> "Console":
    """Where to say what is going on."""
    from dpals.system.console import Console

    return Console(stderr=True, quiet=quiet)


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Print what the library warns of, also where a command is to be quiet."""
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
