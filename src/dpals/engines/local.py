"""The engine of one machine: threads take one block after the other."""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain

from dpals.kernels.threads import limited_threads, thread_count
from dpals.release.passes import Block, Receipt, Table, Work

_LARGEST_COPIES = 1 << 28
"""How many bytes the tables of all threads but one take at most."""


@dataclass(frozen=True)
class LocalEngine:
    """Each thread opens one block at a time, so memory holds some blocks and tables, however many users there are.

    Parameters
    ----------
    blocks_at_once
        How many are open at most. By default one for each thread; with 1, all threads share the work on each block.
    """

    blocks_at_once: int | None = None

    def run(self, work: Work, blocks: Sequence[Block]) -> tuple[list[Table], list[Receipt]]:
        tables = work.empty()
        copies = _LARGEST_COPIES // max(1, sum(table.nbytes for table in tables))
        workers = max(1, min(self.blocks_at_once or thread_count(), len(blocks), 1 + copies))
        if workers == 1:
            return tables, [work.add(block, tables) for block in blocks]
        waiting = deque(blocks)
        all_tables = [tables, *(work.empty() for _ in range(workers - 1))]
        threads = max(1, thread_count() // workers)
        with ThreadPoolExecutor(workers) as pool:
            try:
                found = list(pool.map(lambda own: _add_blocks(work, waiting, own, threads), all_tables))
            finally:
                waiting.clear()  # where this thread is interrupted, the others end soon
        for others in all_tables[1:]:
            for table, other in zip(tables, others, strict=True):
                table += other
        return tables, list(chain.from_iterable(found))


def _add_blocks(work: Work, waiting: "deque[Block]", tables: list[Table], threads: int) -> list[Receipt]:
    """Add blocks to tables until none is left; after an error none is left for the other threads either."""
    receipts: list[Receipt] = []
    with limited_threads(threads):
        while True:
            try:
                block = waiting.popleft()
            except IndexError:
                return receipts
            try:
                receipts.append(work.add(block, tables))
            except BaseException:
                waiting.clear()
                raise
