"""Runs of an external sort: pieces of a table, each sorted by the hashes of users, in files of a work folder.

A run has numbers in place of items. They are places in the declared catalogue or, where none was declared, in the items
of that run; when all runs are there, each gets a table from these to places in the catalogue of all items.
"""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dpals.data.bad_rows import BadRows, ReadingReport
from dpals.data.blocks.array_file import (
    MappedFile,
    content_of,
    full_disk_explained,
    store_ids,
    stored_ids,
    write_content,
)
from dpals.data.blocks.folder import Blocks
from dpals.data.blocks.manifest import Facts, UserIds
from dpals.data.blocks.user_rows import UserRows, within
from dpals.data.bounded_batches import CommonIdType, pieces
from dpals.data.build import build_even_if_empty, refuse_if_all_dropped
from dpals.data.columns import IdType
from dpals.data.ids import is_text, positions, type_name
from dpals.data.population import PartOfPopulation, Population
from dpals.data.rating_arrays import Range, checked_range
from dpals.data.ratings import Ratings
from dpals.data.sources import Source
from dpals.kernels.threads import balanced_ranges
from dpals.system.files import OWNER_ONLY, write_whole

_DONE = "reading.json"
_ITEMS = "items.safetensors"


@dataclass(frozen=True, eq=False)
class Runs:
    """All runs of a table, and what is known of the whole table when it has been read."""

    folder: Path
    n_runs: int
    size: int
    """Ratings in all runs, or users where these are more; those that are in several runs count more than once."""
    facts: Facts
    report: ReadingReport
    items: NDArray[Any]

    def rows(self, prefix: str) -> list[UserRows]:
        """The users whose hashes have a prefix, from each run, with places in the catalogue of all items."""
        found = (self._rows(number, prefix) for number in range(self.n_runs))
        return [rows for rows in found if rows.n_users] or [self._rows(0, prefix)]

    def _rows(self, number: int, prefix: str) -> UserRows:
        """The same from one run, copied: while a file is mapped, more of it counts as memory than is read."""
        arrays = MappedFile(_run_file(self.folder, number)).arrays
        start, stop = within(arrays["hashes"], prefix)
        low, high = arrays["indptr"][start], arrays["indptr"][stop]
        indices = arrays["indices"][low:high]
        places = _places_file(self.folder, number)
        users = stored_ids(arrays, "users", start, stop)
        if not is_text(users):  # nor is a run without rows, whatever the ids of others
            users = users.astype("T" if self.facts.user_ids == "text" else self.facts.user_ids)
        return UserRows(
            arrays["hashes"][start:stop].copy(),
            users,
            arrays["indptr"][start : stop + 1] - low,
            MappedFile(places).arrays["places"][indices] if places.exists() else indices.copy(),
            arrays["values"][low:high].copy() if "values" in arrays else None,
            arrays["timestamps"][low:high].copy() if "timestamps" in arrays else None,
        )


def sort_table(
    folder: Path,
    source: Source,
    *,
    rating_range: Range | None,
    catalogue: NDArray[Any] | None,
    bad: BadRows,
    ids: IdType,
    rows_at_once: int,
    progress: Callable[[int], object],
) -> Runs:
    """Read a table to its end and sort it into runs. Runs that an interrupted call left are not made again.

    Parameters
    ----------
    folder
        Where runs go, or where those of the same table are.
    source, rating_range, catalogue, bad, ids
        As in `data.build.build`.
    rows_at_once
        About how many rows a run has.
    progress
        Called with the number of rows read, whenever there are more.
    """
    names = source.columns.used()
    limits = checked_range(rating_range, has_ratings="rating" in names)
    users, items = (CommonIdType(f"{source.name}, column {names[role]!r}") for role in ("user", "item"))
    notes: list[_Note] = []
    with _writing_behind() as write:
        for number, piece in enumerate(pieces(source, bad, rows_at_once)):
            file = _run_file(folder, number)
            if file.exists():
                deque(piece.batches(bad), maxlen=0)
                run = MappedFile(file)
                note = _Note(*json.loads(run.about["note"]))
                bad.dropped = Counter(note.dropped)
                users.include(_some_ids(run.arrays, "users"))
                if catalogue is None:
                    items.include(_some_ids(run.arrays, "items"))
            else:
                ratings = build_even_if_empty(
                    Ratings, piece, rating_range=limits, catalogue=catalogue, bad=bad, ids=ids
                )
                users.include(ratings.users)
                if catalogue is None:
                    items.include(ratings.items)
                note = _Note.of(ratings.report)
                write(_write_run, file, ratings, catalogue is None, note)
            notes.append(note)
            progress(sum(note.rows for note in notes) + bad.dropped.total())
    no_ids = np.empty(0, users.dtype or np.int64)
    facts = Facts(
        rating_range=limits,
        catalogue_declared=catalogue is not None,
        has_timestamps="timestamp" in names,
        user_ids=_stored_as(no_ids),
        schema=f"{source.schema} User ids are {type_name(no_ids)}." if source.schema else "",
    )
    if users.dtype is None:
        refuse_if_all_dropped(source.name, _report(notes))
    return _finished(folder, notes, facts, catalogue, items.dtype or np.dtype(np.int64))


def sort_population(folder: Path, population: Population, rows_at_once: int, progress: Callable[[int], object]) -> Runs:
    """Sort ratings that are in memory, or in blocks, into runs, one block after another."""
    notes: list[_Note] = []
    with _writing_behind() as write:
        for block in population.blocks:
            for part in _parts(block.open(), rows_at_once):
                note = _Note(part.n_ratings, 0, {})
                write(_write_run, _run_file(folder, len(notes)), part, False, note)
                notes.append(note)
                progress(sum(note.rows for note in notes))
    whole = population
    while isinstance(whole, PartOfPopulation):
        whole = whole.whole
    assert isinstance(whole, Ratings | Blocks)
    facts = whole.facts if isinstance(whole, Blocks) else _facts(whole)
    return replace(_finished(folder, notes, facts, whole.items, whole.items.dtype), report=whole.report)


def _parts(ratings: Ratings, rows_at_once: int) -> Iterator[Ratings]:
    """Some users at a time."""
    ranges = balanced_ranges(ratings.indptr, parts=max(1, -(-ratings.n_ratings // rows_at_once)))
    return (ratings.take_users(slice(start, stop)) for start, stop in (ranges if ratings.n_users else []))


def _facts(ratings: Ratings) -> Facts:
    return Facts(
        rating_range=ratings.rating_range,
        catalogue_declared=ratings.catalogue_declared,
        has_timestamps=ratings.timestamps is not None,
        user_ids=_stored_as(ratings.users),
        schema=ratings.schema,
    )


def _stored_as(users: NDArray[Any]) -> UserIds:
    if is_text(users):
        return "text"
    return "uint64" if users.dtype == np.uint64 else "int64"


class _Note(NamedTuple):
    """What became of the rows of a run."""

    rows: int
    """Those that could be used."""
    duplicates: int
    dropped: dict[str, int]
    """The others, of this run and of all before it."""

    @classmethod
    def of(cls, report: ReadingReport) -> Self:
        dropped = dict(report.rows_dropped)
        return cls(report.rows_read - sum(dropped.values()), report.duplicates_replaced, dropped)


@contextmanager
def _writing_behind() -> Iterator[Callable[..., None]]:
    """A function that calls another one in a second thread, after what it was given before is done."""
    with ThreadPoolExecutor(1) as thread:
        waiting: deque[Future[None]] = deque()

        def call(function: Callable[..., None], *arguments: Any) -> None:
            if waiting:
                waiting.popleft().result()
            waiting.append(thread.submit(function, *arguments))

        yield call
        for call_made in waiting:
            call_made.result()


def _write_run(file: Path, ratings: Ratings, with_items: bool, note: _Note) -> None:
    rows = UserRows.of(ratings)
    arrays = {"hashes": rows.hashes, **rows.stored(), **(store_ids("items", ratings.items) if with_items else {})}
    write_content(file, content_of(arrays, {"note": json.dumps(note)}))


def _some_ids(arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """All ids if they are integers, and one of them if they are text: enough to tell what they are."""
    return arrays[name] if name in arrays else stored_ids(arrays, name, 0, 1)


def _finished(
    folder: Path, notes: Sequence[_Note], facts: Facts, catalogue: NDArray[Any] | None, item_type: np.dtype[Any]
) -> Runs:
    """The runs with the catalogue of all items and, where they have items of their own, the tables to it."""
    files = [_run_file(folder, number) for number in range(len(notes))]
    if catalogue is None:
        catalogue = _all_items(files, item_type)
        for number, file in enumerate(files):
            places = positions(catalogue, stored_ids(MappedFile(file).arrays, "items")).astype(np.int32)
            write_content(_places_file(folder, number), content_of({"places": places}))
    report = _report(notes)
    of_runs = (MappedFile(file).arrays for file in files)
    size = sum(max(len(arrays["hashes"]), len(arrays["indices"])) for arrays in of_runs)
    runs = Runs(folder, len(notes), size, facts, report, catalogue)
    write_content(folder / _ITEMS, content_of(store_ids("items", catalogue)))
    summary = {"n_runs": len(notes), "size": size, "facts": asdict(facts), "report": asdict(report)}
    with full_disk_explained(folder):
        write_whole(folder / _DONE, json.dumps(summary).encode(), OWNER_ONLY)
    return runs


def _report(notes: Sequence[_Note]) -> ReadingReport:
    dropped = notes[-1].dropped if notes else {}
    rows = sum(note.rows for note in notes) + sum(dropped.values())
    return ReadingReport(rows, sum(note.duplicates for note in notes), dropped)


def finished_runs(folder: Path) -> Runs | None:
    """The runs that an interrupted call left, if they are complete."""
    if not (folder / _DONE).exists():
        return None
    summary = json.loads((folder / _DONE).read_bytes())
    facts, report = Facts.from_dict(summary["facts"]), ReadingReport(**summary["report"])
    items = stored_ids(MappedFile(folder / _ITEMS).arrays, "items")
    return Runs(folder, summary["n_runs"], summary["size"], facts, report, items)


def _all_items(files: Sequence[Path], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The items of all runs, sorted as `dpals.read_ratings` does."""
    of_runs = (stored_ids(MappedFile(file).arrays, "items") for file in files)
    if isinstance(dtype, np.dtypes.StringDType):
        return np.array(sorted(set().union(*(items.tolist() for items in of_runs))), dtype)
    return reduce(np.union1d, (items.astype(dtype) for items in of_runs), np.empty(0, dtype))


def _run_file(folder: Path, number: int) -> Path:
    return folder / f"run-{number:06}.safetensors"


def _places_file(folder: Path, number: int) -> Path:
    return folder / f"places-{number:06}.safetensors"
