"""Write blocks of users from a table that may be larger than memory."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from dpals.data.bad_rows import BadRows, OnBadRows
from dpals.data.blocks.array_file import content_of, digest_of, store_ids, write_content
from dpals.data.blocks.folder import Blocks, items_file, open_blocks
from dpals.data.blocks.manifest import MANIFEST, Manifest
from dpals.data.blocks.merge import BlockMerger
from dpals.data.blocks.runs import finished_runs
from dpals.data.blocks.source import BlockSource
from dpals.data.blocks.work_folder import is_interrupted, work_folder
from dpals.data.columns import ColumnOptions, IdOption
from dpals.data.ids import id_array
from dpals.errors import InputError
from dpals.system.files import remove_drafts
from dpals.system.progress import progress_bar

_FILES = r"(?:block|items)-[0-9a-f]{16}\.safetensors"


def write_blocks(
    source: Any,
    folder: str | Path,
    *,
    rating_range: tuple[float, float] | None = None,
    catalogue: ArrayLike | None = None,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    timestamp: str | None = None,
    implicit: bool = False,
    columns: Sequence[str] | None = None,
    separator: str | None = None,
    ids: IdOption = "auto",
    on_bad_rows: OnBadRows = "error",
    on_unknown_items: OnBadRows | None = None,
    ratings_per_block: int = 2**21,
    overwrite: bool = False,
    progress: bool = False,
) -> Blocks:
    """Write ratings to a folder of blocks, which methods train on without holding all of them in memory.

    A block is a file with all ratings of some users. A hash of the user's id decides which block it is. The blocks are
    the same bytes for the same ratings, whatever the order of their rows, the number of files they come from and the
    machine. Only you can read the files.

    The table may be larger than memory. It is sorted in a hidden folder inside `folder`, which needs as much space as
    the blocks and is removed in the end. An interrupted call leaves that folder; the same call on the same files
    resumes where it stopped. A folder is complete, and can be opened, when it has its manifest.

    Formal guarantee (docs/privacy.md, step 10): the row of a user is the one that `dpals.read_ratings` gives. It and
    the hash that places it are functions of that user's rows and id, and of what is declared. Others decide where the
    blocks begin and end.

    Parameters
    ----------
    source
        A file or folder as `dpals.read_ratings` takes it, a frame as `Ratings.from_frame` takes it, `Ratings` with ids,
        or other blocks, such as a part of them from `split_entries`. Files, lazy frames of polars and blocks may be
        larger than memory.
    folder
        Where the blocks go.
    rating_range, catalogue, user, item, rating, timestamp, implicit, columns, separator, ids, on_bad_rows
        As in `dpals.read_ratings`; `columns`, `separator` and `ids` are for files. `Ratings` and blocks
        have all of it.
    on_unknown_items
        As in `dpals.read_ratings`.
    ratings_per_block
        How many ratings a block has at most, unless they are all of one user. It has no more users, either.
    overwrite
        Replace the blocks that are in the folder, once the new ones are complete.
    progress
        Whether to show a bar with the time that is left, where the output is a terminal.

    Raises
    ------
    InputError
        With the file, the line, the column and what to do about it; or because the folder has blocks.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "ratings.csv")
    ...     _ = file.write_text("userId,movieId,rating\\n7,50,4.5\\n8,60,3\\n7,50,5\\n")
    ...     blocks = write_blocks(file, Path(folder, "blocks"), rating_range=(0.5, 5.0))
    >>> blocks
    Blocks(2 users, 2 items, 2 ratings from 0.5 to 5, in 1 block)
    >>> print(blocks.report)
    3 rows read, 1 repeated for the same user and item
    """
    folder = Path(folder)
    if type(ratings_per_block) is not int or ratings_per_block < 1:
        raise InputError(f"ratings_per_block must be a whole number from 1 on, not {ratings_per_block!r}")
    table = BlockSource(
        source,
        ColumnOptions(user, item, rating, timestamp, implicit, columns=columns, separator=separator),
        rating_range,
        None if catalogue is None else id_array(catalogue, "catalogue"),
        BadRows(on_bad_rows, on_unknown_items),
        ids,
    )
    task = table.identity(ratings_per_block, overwrite)
    if (folder / MANIFEST).exists() and not overwrite and not is_interrupted(folder, task):
        raise InputError(f"{folder} holds blocks: choose another folder, or pass overwrite=True")
    with work_folder(folder, task) as work:
        with progress_bar("Reading", progress) as said:
            runs = finished_runs(work) or table.sort(work, lambda rows: said(rows, None))
        with progress_bar("Writing blocks", progress) as said:
            blocks, duplicates = BlockMerger(runs, folder, ratings_per_block).write(said)
        items = content_of(store_ids("items", runs.items))
        digest = digest_of(items)
        write_content(folder / items_file(digest), items)
        report = replace(runs.report, duplicates_replaced=runs.report.duplicates_replaced + duplicates)
        Manifest(runs.facts, digest, report, tuple(blocks)).write(folder)
    _remove_others(folder, {items_file(digest), *(entry.file for entry in blocks)})
    return open_blocks(folder)


def _remove_others(folder: Path, belonging: set[str]) -> None:
    """Remove the blocks and catalogues that earlier calls left in a folder, complete or not."""
    for file in folder.glob("*.safetensors"):
        if re.fullmatch(_FILES, file.name) and file.name not in belonging:
            file.unlink()
    remove_drafts(folder, rf"{_FILES}|{re.escape(MANIFEST)}")
