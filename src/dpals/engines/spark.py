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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import MemoryBlock, whole_block
from dpals.engines.spark_frames import recommend, write_blocks
from dpals.engines.spark_session import clear_errors, session
from dpals.errors import InputError
from dpals.kernels.target import Target
from dpals.kernels.threads import limited_threads
from dpals.release.passes import Block, PassRefused, Receipt, Table, Work

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Engine", "recommend", "session", "write_blocks"]

_SHARD = 1 << 15
"""Numbers in one row: 256 KB. The memory of Java is divided into regions of 1 MB or more, and larger rows waste it."""
_BATCH = 64 * _SHARD
"""Numbers that are on the way between Java and Python at once: 16 MB."""
_SMALL = 1 << 21
"""Numbers in all partial sums together that the driver adds up itself: 16 MB. One more stage would take longer."""
_PIECE = 1 << 26
"""Numbers that the driver takes at once: 512 MB."""
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
        with clear_errors():
            own = self.spark.newSession()  # the same executors, with settings that nobody else sees
            for name, value in _OWN_SETTINGS.items():
                own.conf.set(name, value)
        object.__setattr__(self, "_own", own)

    def check(self, blocks: Sequence[Block]) -> None:
        """Refuse ratings that are in the memory of one machine: they would be sent to executors in every pass."""
        if any(isinstance(whole_block(block), MemoryBlock) for block in blocks):
            raise InputError("these ratings are in the memory of one machine: dpals.write_blocks puts them on disk")

    def run(self, work: Work, blocks: Sequence[Block]) -> tuple[list[Table], list[Receipt]]:
        """`work.add` on every block once, on executors; the sums come to the driver in one copy, piece by piece."""
        self.check(blocks)
        sums, tables = _tables(work)
        if not blocks:
            return tables, []
        receipts: list[tuple[int, list[str]]] = []
        with clear_errors():
            context = self._own.sparkContext
            slots = self.tasks or context.defaultParallelism
            tasks, reducers = min(len(blocks), slots), min(-(-len(sums) // _SHARD), slots)
            threads = int(self._own.conf.get("spark.task.cpus", "1") or 1)
            sent = context.broadcast((work, [tuple(blocks[first::tasks]) for first in range(tasks)]))
            try:
                shares = self._own.range(0, tasks, 1, tasks)
                partial = shares.mapInArrow(lambda batches: _partial_sums(batches, sent, threads), _ROW)
                if tasks * len(sums) <= _SMALL:
                    summed = _added_up(partial.toArrow().to_batches())
                else:
                    summed = _pieces(partial.repartition(reducers, "start").mapInArrow(_added_up, _ROW), len(sums))
                for table in summed:
                    for start, numbers, texts in _rows(table):
                        sums[start : start + _SHARD] = numbers
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


def _added_up(batches: Iterable["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    """Shards of several tasks added up, on executors or on the driver, each with the receipts of what is in it."""
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
    try:
        for first in range(0, size, _PIECE):
            yield summed.where(f"start >= {first} and start < {first + _PIECE}").toArrow()
    finally:
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
    texts = dict(receipts).get(0, [])
    digests = sorted(map(_digest, texts))
    if sorted(receipts) != [(0, texts), *((start, digests) for start in range(_SHARD, size, _SHARD))]:
        raise PassRefused("parts of the sums are missing, or not of the same blocks; nothing was spent for this pass")
    shares = [json.loads(text) for text in texts]
    return [Receipt(block, n_users, Target(**fields)) for fields, names in shares for block, n_users in names]
