"""Spark frames: blocks of users written from them, and recommendations as one."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Unpack

from dpals.data.columns import ColumnOptions
from dpals.engines.spark_session import active, clear_errors
from dpals.kernels.threads import limited_threads

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from dpals.data.blocks.folder import Blocks
    from dpals.model.history import ColumnNames

_ROWS_AT_ONCE = 1 << 20
"""Rows of a history that are turned into recommendations together, at least."""


def write_blocks(
    frame: "DataFrame",
    folder: str | Path,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    timestamp: str | None = None,
    implicit: bool = False,
    **declared: Any,
) -> "Blocks":
    """Write ratings of a Spark frame to a folder of blocks, as `dpals.write_blocks` does for files.

    Executors write the columns that are needed as Parquet to a temporary folder in `folder`, and the driver makes
    blocks of it, on its own. All machines need the folder under one path, and the same user who may write there. The
    blocks are the same bytes as from any other source.

    Parameters
    ----------
    frame
        A row for each rating, or for each pair of implicit feedback.
    folder, user, item, rating, timestamp, implicit, **declared
        As in `dpals.write_blocks`.
    """
    from dpals.data.blocks.writer import write_blocks

    options = ColumnOptions(user, item, rating, timestamp, implicit)
    columns: dict[str, Any] = {**options.find(frame.columns, "the frame").used()}
    Path(folder).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".spark-", dir=folder) as place, clear_errors():
        rows = Path(place, "rows").absolute()
        frame.select(*map(_quoted, columns.values())).write.parquet(rows.as_uri())
        return write_blocks(rows, folder, **columns, implicit=implicit, **declared)


def recommend(
    model: Any, history: "DataFrame | Blocks", k: int = 20, exclude_seen: bool = True, **columns: Unpack["ColumnNames"]
) -> "DataFrame":
    """Recommend items to every user of a history, on executors.

    Parameters
    ----------
    model
        A `FactorModel`, or an estimator that is fitted.
    history
        The users' own rows: a Spark frame, or blocks from `dpals.open_blocks`, for the active session.
    k, exclude_seen
        As in `FactorModel.recommend`.
    **columns
        Names of the columns of a frame, if they are not the usual ones.

    Returns
    -------
    DataFrame
        A row for each user and item: user, rank (1 is best), item, score. It belongs to these users.
    """
    from dpals.data.blocks.folder import Blocks
    from dpals.data.ids import is_text
    from dpals.model.batch import names_in_table
    from dpals.model.history import wanted_columns

    model = getattr(model, "model_", model)
    spark = active() if isinstance(history, Blocks) else history.sparkSession
    sent = spark.sparkContext.broadcast((model, history.blocks if isinstance(history, Blocks) else ()))
    if isinstance(history, Blocks):
        text, names, used = any(is_text(block.open().users) for block in history.blocks[:1]), ("user", "item"), {}
        rows = spark.range(0, len(history.blocks), 1, max(1, len(history.blocks)))
    else:
        found = wanted_columns(model.rating_range, columns).find(history.columns, "the history")
        used, names, by = found.used(), names_in_table(found), _quoted(found.user)
        text = history.schema[found.user].dataType.simpleString() == "string"
        rows = history.select(*map(_quoted, used.values())).repartition(by).sortWithinPartitions(by)
    kinds = ["string" if text else "long", "int", "string" if is_text(model.items) else "long", "float"]
    titles = [names[0], "rank", names[1], "score"]
    schema = ", ".join(f"{_quoted(title)} {kind}" for title, kind in zip(titles, kinds, strict=True))
    k = min(k, len(model.items))
    return rows.mapInArrow(lambda batches: _recommended(batches, sent, used, names, k, exclude_seen), schema)


def _recommended(
    batches: Iterator["pa.RecordBatch"], sent: Any, used: Any, names: tuple[str, str], k: int, exclude_seen: bool
) -> Iterator["pa.RecordBatch"]:
    """On executors: recommendations for the users of blocks, or of rows in which each user's come together."""
    import polars as pl

    from dpals.model.batch import recommend_in_blocks

    model, blocks = sent.value
    if used:
        histories = (model.history(table, **used) for table in _whole_users(batches, used["user"]))
    else:
        histories = (blocks[number].open() for batch in batches for number in batch.column("id").to_pylist())
    with limited_threads(1):
        for part in recommend_in_blocks(model, histories, k, exclude_seen):
            yield from part.table(*names).to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()


def _whole_users(batches: Iterator["pa.RecordBatch"], user: str) -> Iterator["pa.Table"]:
    """Rows in which each user's come together, cut between users into tables of a good size."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rest: list[Any] = []
    for batch in batches:
        rest.append(batch)
        if sum(map(len, rest)) >= _ROWS_AT_ONCE:
            table = pa.Table.from_batches(rest)
            cut = max(pc.index(table.column(user), table.column(user)[-1]).as_py(), 0)
            if cut:
                yield table.slice(0, cut)
            rest = table.slice(cut).to_batches()
    if rest:
        yield pa.Table.from_batches(rest)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
