"""Users in blocks on the command line: a folder in place of a file, and the engine that runs over its blocks."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from dpals.cli.common import Command

if TYPE_CHECKING:
    from dpals.release.passes import Engine

_FOR_READING = {
    *("rating_range", "implicit", "catalogue", "user", "item", "rating", "timestamp"),
    *("columns", "separator", "ids", "on_bad_rows"),
}
_FILES_OF_BLOCKS = ("block-*.safetensors", "items-*.safetensors", ".writing")

_OWNER_ONLY = {"spark.hadoop.fs.permissions.umask-mode": "077"}


def holds_blocks(path: Path) -> bool:
    """Whether a path is a folder of blocks, complete or not."""
    return path.is_dir() and any(found for pattern in _FILES_OF_BLOCKS for found in path.glob(pattern))


def refuse_reading_options(folder: Path) -> None:
    """Refuse what tells the command how to read a file. Blocks were read, and their facts declared, before."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in _FOR_READING and context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            option = parameter.opts[0]
            raise click.UsageError(
                f"{option} is for reading a file, and {folder} holds blocks, for which it was settled when they were "
                f"written: leave it out, or write other blocks with `dpals blocks RATINGS -o FOLDER {option} ...`"
            )


def engine_options(command: Command) -> Command:
    """--engine and --master."""
    command = click.option(
        "--master",
        metavar="URL",
        help="Spark: where it runs, such as spark://host:7077. By default what spark-submit says, or this machine.",
    )(command)
    return click.option(
        "--engine",
        default="local",
        show_default=True,
        type=click.Choice(["local", "spark"]),
        help="What runs over blocks of users: this machine, or Spark. The result has the same bits.",
    )(command)


def check_engine(engine: str, master: str | None, path: Path) -> None:
    """Refuse a master without Spark, and Spark without blocks."""
    if master is not None and engine != "spark":
        raise click.UsageError("--master says where Spark runs: pass --engine spark as well")
    if engine == "spark" and not holds_blocks(path):
        raise click.UsageError(
            f"Spark needs users in blocks: write them with `dpals blocks {path} -o FOLDER ...`, and pass FOLDER here"
        )


@contextmanager
def running_engine(engine: str, master: str | None) -> Iterator["Engine"]:
    """The engine, ready to run, while the block runs."""
    if engine == "local":
        from dpals.engines.local import LocalEngine

        yield LocalEngine()
        return
    from warnings import filterwarnings

    from dpals.engines import spark

    filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    session = spark.session(master, settings=_OWNER_ONLY)
    try:
        session.sparkContext.setLogLevel("OFF")  # the command says what went wrong, in a sentence
        yield spark.Engine(session)
    finally:
        with suppress(Exception):  # it may be gone
            session.stop()
