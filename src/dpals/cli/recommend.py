"""``dpals recommend``: recommend items to every user of a file, or of blocks."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Unpack

import click

from dpals.cli.common import (
    count_option,
    history_option,
    json_option,
    messages,
    model_argument,
    output_option,
    quiet_option,
    reading_options,
)
from dpals.cli.outputs import check_ending
from dpals.cli.populations import (
    check_engine,
    engine_options,
    holds_blocks,
    refuse_reading_options,
    running_engine,
)
from dpals.system.terminal import is_terminal, visible

if TYPE_CHECKING:
    from dpals.data.columns import Columns
    from dpals.data.streamed_history import StreamedHistory
    from dpals.model.batch import HistoryInBlocks, Recommended
    from dpals.model.factor_model import FactorModel
    from dpals.model.history import ColumnNames

_ENDINGS = (".parquet", ".csv", ".jsonl")


@click.command("recommend")
@model_argument
@history_option
@count_option(20, "Number of items for each user.")
@output_option("Write to this file: .parquet, .csv or .jsonl. By default CSV goes to standard output.")
@click.option("--user-id", "users", multiple=True, metavar="ID", help="Recommend to this user only; repeatable.")
@click.option("--include-seen", is_flag=True, help="Also recommend items that are in the user's history.")
@engine_options
@reading_options
@json_option
@quiet_option
def command(
    model: Path,
    history: Path,
    k: int,
    output: Path | None,
    users: tuple[str, ...],
    include_seen: bool,
    engine: str,
    master: str | None,
    as_json: bool,
    quiet: bool,
    ids: Any,
    on_bad_rows: Any,
    **columns: Unpack["ColumnNames"],
) -> None:
    """Recommend items to every user of a history, from MODEL and the user's own rows of the history.

    Users need not have been in the training data. Items that the model does not know are left out and counted. A
    user's recommendations are made from that user's own history: show them to that user only.

    \b
    Examples:
        dpals recommend model/ --history ratings.csv -o recommended.parquet
        dpals recommend model/ --history ratings.csv --user-id 42 -k 5

    The result is a table with the columns user, rank (1 is best), item and score; user and item are named as in the
    history. With --json, and in a .jsonl file, each user is a line {"user": ..., "items": [...], "scores": [...]}.
    Users are sorted by id, numbers by value and text by characters, and each user's items by score. Only you can read
    the file.

    If the history is a folder of blocks, they are read one after another, and users come in the order of the blocks,
    not sorted by id. The blocks must have the items of the model, as those that it was trained on. With --engine spark
    the output is a new folder of Parquet files, which executors write.

    A file larger than memory is sorted in a temporary file: beside the output or, without -o, in the system's
    temporary folder (TMPDIR). That file has no name and disappears when the process ends, however it ends.
    """
    _check_output(output, history, as_json)
    check_engine(engine, master, history)
    from dpals.data.bad_rows import BadRows
    from dpals.data.blocks.folder import open_blocks
    from dpals.data.streamed_history import stream_history
    from dpals.model.batch import HistoryInBlocks
    from dpals.model.factor_model import load
    from dpals.model.history import wanted_columns
    from dpals.system.progress import progress_bar

    if holds_blocks(history):
        refuse_reading_options(history)
    loaded, console = load(model), messages(quiet)
    if engine == "spark":
        _recommend_on_spark(loaded, history, k, not include_seen, master, output, users)
        console.print(f"Recommendations for all users are in the folder {output}.")
        return
    read: AbstractContextManager[StreamedHistory | HistoryInBlocks]
    with ExitStack() as stack:
        with progress_bar(f"Reading {history.name}", not quiet) as said:
            if holds_blocks(history):
                read = nullcontext(HistoryInBlocks.of(open_blocks(history), loaded, users))
            else:
                read = stream_history(
                    history,
                    wanted_columns(loaded.rating_range, columns),
                    rating_range=loaded.rating_range,
                    catalogue=loaded.items,
                    bad=BadRows(on_bad_rows, "drop"),
                    user_ids=ids,
                    only=users,
                    folder=output.parent if output else None,
                    progress=lambda rows: said(rows, None),
                )
            parts = stack.enter_context(read)
        write = stack.enter_context(_output(output, as_json, parts.columns))
        n_users = _recommend(loaded, parts, k, not include_seen, write, bar=not quiet and not _seen_on_screen(output))
    if output is not None:
        console.print(f"Recommendations for {n_users:,} users are in {output}.")
    if parts.report.rows_dropped:
        console.print(f"{history}: {parts.report}.")


def _recommend(
    model: "FactorModel",
    parts: "StreamedHistory | HistoryInBlocks",
    k: int,
    exclude_seen: bool,
    write: Callable[["Recommended"], None],
    bar: bool,
) -> int:
    """Write recommendations for all users, and return the number of users."""
    from dpals.model.batch import recommend_in_blocks
    from dpals.system.progress import progress_bar

    done = n_users = 0
    with progress_bar("Recommending", bar) as said:
        for block in recommend_in_blocks(model, parts, min(k, len(model.items)), exclude_seen):
            write(block)
            n_users, done = n_users + len(block.users), done + block.n_ratings
            said(done, parts.n_rows)
    return n_users


def _recommend_on_spark(
    model: "FactorModel",
    history: Path,
    k: int,
    exclude_seen: bool,
    master: str | None,
    output: Path | None,
    users: tuple[str, ...],
) -> None:
    """Let executors write recommendations for all users to a folder of Parquet files."""
    from dpals.data.blocks.folder import open_blocks
    from dpals.engines import spark
    from dpals.engines.spark_session import clear_errors
    from dpals.model.history import check_facts

    if output is None or output.suffix != ".parquet" or users:
        raise click.UsageError("--engine spark recommends to all users, and writes Parquet: pass -o FOLDER.parquet")
    if output.exists():
        raise click.BadParameter(f"{output} exists: Spark writes to a new folder", param_hint="-o")
    blocks = open_blocks(history)
    check_facts(blocks, model.items, model.rating_range)
    with running_engine("spark", master), clear_errors():
        lists = spark.recommend(model, blocks, k, exclude_seen)
        lists.write.parquet(output.absolute().as_uri())


def _seen_on_screen(output: Path | None) -> bool:
    """Whether the results go to a terminal, where a progress bar would get in their way."""
    return output is None and is_terminal(sys.stdout)


def _check_output(output: Path | None, history: Path, as_json: bool) -> None:
    if output is None:
        return
    check_ending(output, _ENDINGS, "-o")
    if as_json and output.suffix != ".jsonl":
        raise click.UsageError("--json is for standard output: pass -o FILE.jsonl to write JSON to a file")
    if output.exists() and output.samefile(history):
        raise click.BadParameter("this would overwrite the history", param_hint="-o")


@contextmanager
def _output(path: Path | None, as_json: bool, columns: "Columns") -> Iterator[Callable[["Recommended"], None]]:
    """Where blocks go: to standard output one by one, or to a file that gets its name when it is complete."""
    from dpals.model.batch import names_in_table
    from dpals.model.parquet_writer import GrowingParquet
    from dpals.system.files import OWNER_ONLY, draft

    names = names_in_table(columns)
    if path is None:
        shown = visible if is_terminal(sys.stdout) else str
        yield _as_text(sys.stdout.buffer, as_json, names, shown)
        sys.stdout.buffer.flush()
        return
    with draft(path, OWNER_ONLY) as place:
        if path.suffix == ".parquet":
            with GrowingParquet(place) as file:
                yield lambda block: file.write(block.table(*names))
        else:
            with place.open("wb") as stream:
                yield _as_text(stream, path.suffix == ".jsonl", names)


def _as_text(
    stream: IO[bytes], as_json: bool, names: tuple[str, str], shown: Callable[[str], str] = str
) -> Callable[["Recommended"], None]:
    """A function that writes a block as lines of JSON, or of CSV with one header."""
    header = True

    def write(block: "Recommended") -> None:
        nonlocal header
        text = block.lists().write_ndjson() if as_json else block.table(*names).write_csv(include_header=header)
        stream.write(shown(text).encode())
        header = False

    return write
