"""What blocks are written from: files, frames, ratings or other blocks, with what the caller declares about them."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from numpy.typing import NDArray

from dpals import __version__
from dpals.data.bad_rows import BadRows
from dpals.data.blocks.array_file import content_of, digest_of, store_ids
from dpals.data.blocks.folder import Blocks
from dpals.data.blocks.manifest import FORMAT
from dpals.data.blocks.runs import Runs, sort_population, sort_table
from dpals.data.bounded_batches import ROWS_AT_ONCE
from dpals.data.build import refuse_if_no_rows
from dpals.data.columns import ColumnOptions, IdOption
from dpals.data.file_format import file_states, open_table, refuse_changes
from dpals.data.frames import FrameSource
from dpals.data.population import PartOfPopulation
from dpals.data.rating_arrays import Range
from dpals.data.ratings import Ratings
from dpals.errors import InputError

_POPULATIONS = (Ratings, Blocks, PartOfPopulation)


@dataclass
class BlockSource:
    """A table and what is declared about it; InputError where the two do not go together."""

    source: Any
    options: ColumnOptions
    rating_range: Range | None
    catalogue: NDArray[Any] | None
    bad: BadRows
    ids: IdOption

    def __post_init__(self) -> None:
        if self.ids not in get_args(IdOption):
            raise InputError(f'ids must be "auto", "integer" or "string", not {self.ids!r}')
        if isinstance(self.source, _POPULATIONS):
            if self.source.anonymous:
                raise InputError(
                    "these users have no ids, which decide the block they are in. Give ids with "
                    "Ratings.from_csr(..., users=...)"
                )
            if self.options != ColumnOptions() or self.rating_range is not None or self.catalogue is not None:
                raise InputError(
                    "ratings and blocks have their columns, range and catalogue already: give none of them to "
                    "write_blocks"
                )
        elif self._path is None and (self.options.columns is not None or self.options.separator is not None):
            raise InputError("columns and separator are for text files: leave them out for a frame")

    @property
    def _path(self) -> Path | None:
        return Path(self.source) if isinstance(self.source, str | os.PathLike) else None

    def identity(self, ratings_per_block: int, overwrite: bool) -> dict[str, Any] | None:
        """What tells these files and facts from all others; None where the table is not a file."""
        if self._path is None:
            return None
        states = file_states(self._path) or {}
        return {
            "dpals": __version__,
            "format": FORMAT,
            "files": [[str(file.resolve()), *state] for file, state in states.items()],
            "options": repr(self.options),
            "rating_range": repr(self.rating_range),
            "catalogue": None if self.catalogue is None else digest_of(content_of(store_ids("", self.catalogue))),
            "bad": [self.bad.policy, self.bad.unknown_items],
            "ids": self.ids,
            "rows_at_once": ROWS_AT_ONCE,
            "ratings_per_block": ratings_per_block,
            "overwrite": overwrite,
        }

    def sort(self, folder: Path, progress: Callable[[int], object]) -> Runs:
        """Read everything, into sorted runs."""
        if isinstance(self.source, _POPULATIONS):
            return sort_population(folder, self.source, ROWS_AT_ONCE, progress)
        facts: dict[str, Any] = {
            "rating_range": self.rating_range,
            "catalogue": self.catalogue,
            "bad": self.bad,
            "rows_at_once": ROWS_AT_ONCE,
            "progress": progress,
        }
        if self._path is None:
            frame = FrameSource(self.source, self.options)
            return sort_table(folder, frame, ids="given" if self.ids == "auto" else self.ids, **facts)
        with refuse_changes(self._path):
            source, ids = open_table(self._path, self.options, self.ids)
            runs = sort_table(folder, source, ids=ids, **facts)
        refuse_if_no_rows(source.name, runs.report)
        return runs
