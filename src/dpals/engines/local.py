"""The engine of one machine: threads take one block after the other."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from queue import Empty, SimpleQueue

from dpals.kernels.threads import limited_threads, thread_count
from dpals.release.passes import Block, Receipt, Table, Work

_LARGEST_COPIES = 1 << 28
"""How many bytes the tables of all threads but one take at most."""


@dataclass(frozen=True)
class LocalEngine:
    """Each thread opens one block at a time, so memory holds some blocks and tables, however many users there are."""

    def run(self, work: Work, blocks: Sequence[Block]) -> tuple[list[Table], list[Receipt]]:
        tables = work.empty()
        copies = _LARGEST_COPIES // max(1, sum(table.nbytes for table in tables))
        workers = max(1, min(thread_count(), len(blocks), 1 + copies))
        if workers == 1:
            return tables, [work.add(block, tables) for block in blocks]
        waiting: SimpleQueue[Block] = SimpleQueue()
        for block in blocks:
            waiting.put(block)
        all_tables = [tables, *(work.empty() for _ in range(workers - 1))]
        threads = max(1, thread_count() // workers)
        with ThreadPoolExecutor(workers) as pool:
            try:
                found = list(pool.map(lambda own: _add_blocks(work, waiting, own, threads), all_tables))
            except BaseException:
                _drain(waiting)  # so that the other threads end soon
                raise
        for others in all_tables[1:]:
            for table, other in zip(tables, others, strict=True):
                table += other
        return tables, list(chain.from_iterable(found))


def _drain(waiting: "SimpleQueue[Block]") -> None:
    with suppress(Empty):
        while True:
            waiting.get_nowait()


def _add_blocks(work: Work, waiting: "SimpleQueue[Block]", tables: list[Table], threads: int) -> list[Receipt]:
    """Add blocks to tables until none is left."""
    receipts: list[Receipt] = []
    with limited_threads(threads):
        while True:
            try:
                block = waiting.get_nowait()
            except Empty:
                return receipts
            receipts.append(work.add(block, tables))
