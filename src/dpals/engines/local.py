"""The engine of one machine: block after block, each with all threads."""

from collections.abc import Sequence
from dataclasses import dataclass

from dpals.release.passes import Block, Receipt, Table, Work


@dataclass(frozen=True)
class LocalEngine:
    """Opens one block at a time, so that memory holds one block and the tables, however many users there are."""

    def run(self, work: Work, blocks: Sequence[Block]) -> tuple[list[Table], list[Receipt]]:
        tables = work.empty()
        return tables, [work.add(block, tables) for block in blocks]
