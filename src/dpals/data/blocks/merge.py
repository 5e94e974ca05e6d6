"""Blocks from sorted runs: ranges of hashes are merged, split where they are too large, and written.

The hash space is cut into as many ranges as there are blocks to expect, and each is merged by itself. What the blocks
are does not depend on these ranges: users whose hashes have a prefix are a block if they are few enough and the users
with one bit less are too many.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dpals.data.blocks.array_file import content_of, digest_of, full_disk_explained, write_content
from dpals.data.blocks.folder import block_file
from dpals.data.blocks.manifest import Entry
from dpals.data.blocks.runs import Runs
from dpals.data.blocks.user_rows import UserRows, fits
from dpals.kernels.threads import map_ranges, thread_count
from dpals.system.files import OWNER_ONLY, write_whole

_MOST_RANGES = 2**16


@dataclass(frozen=True, eq=False)
class _Range:
    """What a range of hashes became: blocks that are written, or users who are too few to be sure that they are one."""

    prefix: str
    duplicates: int
    blocks: tuple[Entry, ...] = ()
    rows: UserRows | None = None


class BlockMerger:
    """Writes the blocks of sorted runs.

    Parameters
    ----------
    runs
        All runs.
    folder
        Where blocks go.
    ratings_per_block
        How many ratings, and how many users, a block has at most, unless it is one user.
    """

    def __init__(self, runs: Runs, folder: Path, ratings_per_block: int) -> None:
        self._runs, self._folder, self._at_most = runs, folder, ratings_per_block

    def write(self, progress: Callable[[int, int], object]) -> tuple[list[Entry], int]:
        """Write all blocks; return their entries in the manifest, and how many repeated ratings were left out."""
        duplicates = 0
        waiting: list[_Range] = []  # ranges that follow one another, each longer than the next
        for merged in self._ranges(progress):
            duplicates += merged.duplicates
            last = merged
            while waiting and len(waiting[-1].prefix) == len(last.prefix):
                last = self._joined(waiting.pop(), last)
            waiting.append(last)
        return [entry for last in waiting for entry in self._blocks(last)], duplicates

    def _ranges(self, progress: Callable[[int, int], object]) -> Iterator[_Range]:
        """Ranges of hashes, merged one after another, several at a time. Their size makes most of them two blocks."""
        expected = min(2 * self._runs.size // (3 * self._at_most), _MOST_RANGES)
        bits = max(1, expected).bit_length() - 1
        prefixes = [f"{number:0{bits}b}" if bits else "" for number in range(2**bits if self._runs.n_runs else 0)]
        threads = thread_count()
        for start in range(0, len(prefixes), threads):
            stop = min(start + threads, len(prefixes))
            numbers = [(number, number + 1) for number in range(start, stop)]
            yield from map_ranges(lambda number, _: self._merge(prefixes[number]), numbers, threads)
            progress(stop, len(prefixes))

    def _merge(self, prefix: str) -> _Range:
        """Merge a range, and write its blocks unless it may be a part of one."""
        note = self._runs.folder / f"range-{prefix}.json"
        if note.exists():  # an interrupted call has written them
            noted = json.loads(note.read_bytes())
            entries = tuple(Entry(**entry) for entry in noted["blocks"])
            if all((self._folder / entry.file).exists() for entry in entries):
                return _Range(prefix, noted["duplicates"], entries)
        parts = self._runs.rows(prefix)
        rows = UserRows.merged(parts)
        duplicates = sum(part.n_ratings for part in parts) - rows.n_ratings
        blocks = rows.split(prefix, self._at_most)
        if not blocks or blocks[0][0] == prefix:
            return _Range(prefix, duplicates, rows=rows)
        merged = _Range(prefix, duplicates, self._written(blocks))
        content = {"duplicates": duplicates, "blocks": [asdict(entry) for entry in merged.blocks]}
        with full_disk_explained(self._folder):
            write_whole(note, json.dumps(content).encode(), OWNER_ONLY)
        return merged

    def _joined(self, left: _Range, right: _Range) -> _Range:
        """Two halves as one range, whose users are together if they may be a part of one block."""
        prefix = left.prefix[:-1]
        if left.rows is not None and right.rows is not None:
            n_users = left.rows.n_users + right.rows.n_users
            if fits(n_users, left.rows.n_ratings + right.rows.n_ratings, self._at_most):
                return _Range(prefix, 0, rows=UserRows.merged([left.rows, right.rows]))
        return _Range(prefix, 0, self._blocks(left) + self._blocks(right))

    def _blocks(self, merged: _Range) -> tuple[Entry, ...]:
        """The blocks of a range, which are written now if they are not yet."""
        if merged.rows is None:
            return merged.blocks
        return self._written(merged.rows.split(merged.prefix, self._at_most))

    def _written(self, blocks: Sequence[tuple[str, UserRows]]) -> tuple[Entry, ...]:
        return tuple(write_block(self._folder, prefix, rows) for prefix, rows in blocks)


def write_block(folder: Path, prefix: str, rows: UserRows) -> Entry:
    """Write one block; return its entry in the manifest."""
    content = content_of(rows.stored())
    digest = digest_of(content)
    write_content(folder / block_file(digest), content)
    return Entry(block_file(digest), prefix, rows.n_users, rows.n_ratings, digest)
