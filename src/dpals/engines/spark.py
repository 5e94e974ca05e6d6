"""Spark: users in blocks on a cluster, with the same bits as on one machine. It needs ``pip install 'dpals[spark]'``.

*Who sees what.* Executors see the ratings of the blocks that they open, and sums over the users of some blocks. The
driver sees exact sums over all users, before noise: it is the curator, and it alone holds the noise, its key and the
ledger. Sums travel between executors, which may write them to local disks: `session` says how to encrypt both.

*Why every block counts once, whatever Spark repeats.* A task adds up the blocks of its share and cuts the sums into
shards. With each shard go the receipts of exactly these blocks, in the same row. Tasks of the next stage add shards,
and keep the receipts of all of them. So every sum that reaches the driver says what is in it. The driver compares the
shards with each other, and the mechanism compares the receipts with the population. A task that is run again gives the
same rows, and Spark uses one of them.
"""

import hashlib
import json
import os
import re
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from dpals.data.columns import ColumnOptions
from dpals.data.population import MemoryBlock
from dpals.errors import InputError
from dpals.kernels.target import Target
from dpals.kernels.threads import limited_threads
from dpals.release.passes import Block, PassRefused, Receipt, Table, Work

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from dpals.data.blocks import Blocks
    from dpals.model.history import ColumnNames

_SHARD = 1 << 15
"""Numbers in one row: 256 KB. The memory of Java is divided into regions of 1 MB or more, and larger rows waste it."""
_BATCH = 64 * _SHARD
"""Numbers that are on the way between Java and Python at once: 16 MB."""
_PIECE = 1 << 26
"""Numbers that the driver takes at once: 512 MB."""
_ROWS_AT_ONCE = 1 << 20
"""Rows of a history that are turned into recommendations together, at least."""
_NAMES = ("start", "numbers", "receipts")
_ROW = "start long, numbers binary, receipts array<string>"
_OWN_SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(_BATCH // _SHARD),
    "spark.sql.adaptive.enabled": "false",  # it would merge the stages of small sums, one job at a time
}


@dataclass(frozen=True, eq=False)
class Engine:
    """Runs passes on Spark: ``dpals.Options(engine=dpals.spark.Engine(session))``.

    Every executor needs the same version of dpals, and must reach the block files under the same path.

    Parameters
    ----------
    spark
        A running session, for example from `dpals.spark.session`. Kernels use ``spark.task.cpus`` threads in each task.
    tasks
        How many tasks share the blocks of a pass, each of which holds one copy of the sums; as many as there are
        cores by default.
    """

    spark: "SparkSession"
    tasks: int | None = None
    _own: "SparkSession" = field(init=False, repr=False)

    def __post_init__(self) -> None:
        with _clear_errors():
            own = self.spark.newSession()  # the same executors, with settings that nobody else sees
            for name, value in _OWN_SETTINGS.items():
                own.conf.set(name, value)
        object.__setattr__(self, "_own", own)

    def run(self, work: Work, blocks: Sequence[Block]) -> tuple[list[Table], list[Receipt]]:
        """`work.add` on every block once, on executors; the sums come to the driver in one copy, piece by piece."""
        if any(isinstance(block, MemoryBlock) for block in blocks):
            raise InputError("these ratings are in the memory of one machine: dpals.write_blocks puts them on disk")
        sums, tables = _tables(work)
        if not blocks:
            return tables, []
        receipts: list[tuple[int, list[str]]] = []
        with _clear_errors():
            context = self._own.sparkContext
            slots = self.tasks or context.defaultParallelism
            tasks, reducers = min(len(blocks), slots), min(-(-len(sums) // _SHARD), slots)
            threads = int(self._own.conf.get("spark.task.cpus", "1") or 1)
            sent = context.broadcast((work, [tuple(blocks[first::tasks]) for first in range(tasks)]))
            try:
                shares = self._own.range(0, tasks, 1, tasks)
                partial = shares.mapInArrow(lambda batches: _partial_sums(batches, sent, threads), _ROW)
                summed = partial.repartition(reducers, "start").mapInArrow(_added_up, _ROW)
                for table in _pieces(summed, len(sums)):
                    for start, numbers, texts in _rows(table):
                        sums[start : start + len(numbers)] = numbers
                        receipts.append((start, texts))
            except KeyboardInterrupt:
                context.cancelAllJobs()
                raise
            finally:
                with suppress(Exception):  # the executors may be gone
                    sent.destroy()
        return tables, _agreed(receipts, len(sums))


def _tables(work: Work) -> tuple[Table, list[Table]]:
    """All numbers of a pass in one array, and the tables as parts of it."""
    empty = work.empty()
    ends = list(accumulate((table.size for table in empty), initial=0))
    sums = np.zeros(ends[-1], np.int64)
    return sums, [sums[a:b].reshape(table.shape) for (a, b), table in zip(pairwise(ends), empty, strict=True)]


def _partial_sums(batches: Iterator["pa.RecordBatch"], sent: Any, threads: int) -> Iterator["pa.RecordBatch"]:
    """On executors: the sums over the blocks of each share."""
    work, shares = sent.value
    for batch in batches:
        for number in batch.column("id").to_pylist():
            sums, tables = _tables(work)
            with limited_threads(threads):
                receipts = [work.add(block, tables) for block in shares[number]]
            names = [(receipt.block, receipt.n_users) for receipt in receipts]
            text = json.dumps([asdict(receipts[0].target), names])
            for start in range(0, len(sums), _BATCH):
                numbers = sums[start : start + _BATCH]
                marks = [
                    [text if place == 0 else _digest(text)] for place in range(start, start + len(numbers), _SHARD)
                ]
                yield _shards(start, numbers, marks)


def _added_up(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    """On executors: shards of several tasks added up, each with the receipts of what is in it."""
    sums: dict[int, NDArray[np.int64]] = {}
    receipts: dict[int, list[str]] = {}
    for batch in batches:
        for start, numbers, texts in _rows(batch):
            if start in sums:
                sums[start] += numbers
            else:
                sums[start] = numbers.copy()
            receipts.setdefault(start, []).extend(texts)
    for start, total in sums.items():
        yield _shards(start, total, [sorted(receipts[start])])


def _pieces(summed: "DataFrame", size: int) -> Iterator["pa.Table"]:
    """All rows, some at a time if they are many: Spark refuses to bring more than ``spark.driver.maxResultSize``."""
    if size <= _PIECE:
        yield summed.toArrow()
        return
    summed.persist()
    for first in range(0, size, _PIECE):
        yield summed.where(f"start >= {first} and start < {first + _PIECE}").toArrow()
    summed.unpersist()


def _digest(text: str) -> str:
    """Stands for receipts in all shards but the first."""
    return hashlib.sha256(text.encode()).hexdigest()


def _shards(start: int, numbers: NDArray[np.int64], receipts: list[list[str]]) -> "pa.RecordBatch":
    """Numbers from `start` on as rows of one shard each, without copying them."""
    import pyarrow as pa

    ends = np.minimum(np.arange(len(receipts) + 1) * _SHARD, len(numbers))
    buffers = [None, pa.py_buffer((ends * 8).astype(np.int32)), pa.py_buffer(numbers)]
    columns = pa.array(start + ends[:-1]), pa.Array.from_buffers(pa.binary(), len(receipts), buffers)
    return pa.RecordBatch.from_arrays([*columns, pa.array(receipts, pa.list_(pa.string()))], _NAMES)


def _rows(table: "pa.RecordBatch | pa.Table") -> Iterator[tuple[int, NDArray[np.int64], list[str]]]:
    for start, numbers, receipts in zip(*(table.column(name) for name in _NAMES), strict=True):
        yield start.as_py(), np.frombuffer(numbers.as_buffer(), np.int64), receipts.as_py()


def _agreed(receipts: list[tuple[int, list[str]]], size: int) -> list[Receipt]:
    """The receipts that all shards agree on; an error if they do not, or if shards are missing."""
    (_, texts), *others = sorted(receipts) or [(0, [])]
    digests = sorted(map(_digest, texts))
    if others != [(start, digests) for start in range(_SHARD, size, _SHARD)]:
        raise PassRefused("parts of the sums are missing, or not of the same blocks; nothing was spent or released")
    shares = [json.loads(text) for text in texts]
    return [Receipt(block, n_users, Target(**fields)) for fields, names in shares for block, n_users in names]


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
    from dpals.data.block_writer import write_blocks

    options = ColumnOptions(user, item, rating, timestamp, implicit)
    columns: dict[str, Any] = {**options.find(frame.columns, "the frame").used()}
    Path(folder).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".spark-", dir=folder) as place, _clear_errors():
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
    from dpals.data.blocks import Blocks
    from dpals.data.ids import is_text
    from dpals.model.batch import names_in_table
    from dpals.model.history import wanted_columns

    model = getattr(model, "model_", model)
    spark = _pyspark().sql.SparkSession.active() if isinstance(history, Blocks) else history.sparkSession
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


def write_recommendations(
    model: Any, history: "Blocks", folder: str | Path, k: int = 20, exclude_seen: bool = True
) -> None:
    """Write what `recommend` gives to a new folder of Parquet files, which all machines must reach under this path."""
    with _clear_errors():
        recommend(model, history, k, exclude_seen).write.parquet(Path(folder).absolute().as_uri())


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


def session(
    master: str | None = None, *, settings: Mapping[str, str] | None = None, wait_seconds: float = 45
) -> "SparkSession":
    """A Spark session, or an `InputError` that says why there is none.

    Parameters
    ----------
    master
        Such as ``spark://host:7077`` or ``local[2]``; by default what ``spark-submit`` says, or this machine.
    settings
        Of Spark. Where others use the network or the machines, encrypt what executors exchange and write to local
        disks: ``{"spark.authenticate": "true", "spark.network.crypto.enabled": "true",
        "spark.io.encryption.enabled": "true"}``, and outside YARN and Kubernetes ``spark.authenticate.secret`` as well.
    wait_seconds
        How long the first executor may take to answer.
    """
    builder: SparkSession.Builder = _pyspark().sql.SparkSession.builder
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    if not submitted and shutil.which(java) is None:
        raise InputError(f"Spark needs Java 17 or later, and there is no {java}: apt-get install default-jre-headless")
    _check_answers(master or "")
    usual = {
        "spark.app.name": "dpals",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.worker.reuse": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    if master or not submitted:
        usual["spark.master"] = master or "local[*,4]"  # a task that fails is tried four times
    builder = builder.config(map={**usual, **(settings or {})})
    tried: Future[int] = Future()
    Thread(target=_try, args=(builder, tried), daemon=True).start()
    with _clear_errors():
        try:
            tried.result(wait_seconds)
        except TimeoutError:
            raise InputError(
                f"Spark, master {master or usual.get('spark.master')}, did no work within {wait_seconds:g} seconds: "
                "is this the address of a master, and has it free workers?"
            ) from None
        return builder.getOrCreate()


def _try(builder: "SparkSession.Builder", tried: "Future[int]") -> None:
    """Make a session and let an executor do something: where nobody answers, Spark waits for minutes or for ever."""
    try:
        tried.set_result(builder.getOrCreate().range(1).count())
    except Exception as problem:
        tried.set_exception(problem)


def _check_answers(master: str) -> None:
    """Raise if nothing listens at the address of a standalone master: Spark would try for a long time."""
    places = re.findall(r"([^,/:]+):(\d+)", master) if master.startswith("spark://") else []
    for host, port in places:
        with suppress(OSError), socket.create_connection((host, int(port)), timeout=10):
            return
    if places:
        raise InputError(f"the Spark master {master} does not answer: is it running, and is this its address?")


def _pyspark() -> Any:
    try:
        import pyspark.sql
    except ModuleNotFoundError as problem:
        raise InputError(f"Spark is not installed ({problem}): pip install 'dpals[spark]'") from None
    return pyspark


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Errors of Spark in one sentence that says what to do. Whatever was under way, it was before any noise."""
    _pyspark()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as problem:
        text = str(problem)
        if "No module named 'dpals'" in text:
            raise InputError("the executors have no dpals: install the same version on each of them") from problem
        lines = re.findall(r"^(?:dpals\.errors\.)?(\w[\w.]*(?:Error|Exception)\b.*)$", text, re.MULTILINE)
        reason = [text.split("\n")[0], *lines][-1]
        if reason.startswith("InputError: "):
            raise InputError(reason.removeprefix("InputError: ")) from problem
        raise RuntimeError(f"Spark did not finish, and nothing was spent for it: {reason}") from problem
