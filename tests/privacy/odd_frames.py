"""Data sets of odd people in tables that have types: frames, Parquet, arrays and lists, sparse matrices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
from scipy.sparse import csr_array
from tests.privacy.odd_files import FORMATS, DataSet, Declared, in_parts, text_file
from tests.privacy.odd_rows import RANGES, Person, people, rating_text, time_value

from dpals.data.blocks import source as block_source
from dpals.data.blocks.writer import write_blocks
from dpals.data.ratings import Ratings
from dpals.data.read import read_ratings

Maker = Callable[[Random, Declared, Path], DataSet]

_USERS: dict[str, tuple[Any, ...]] = {
    "int64": (7, 5, 100000, -1, 0, 2**32, 2**53 + 1, 2**63 - 1, -(2**63)),
    "uint64": (7, 5, 0, 2**53 + 1, 2**63, 2**64 - 1, 2**63 - 1),
    "str": (
        *("7", " 7", "07", "guest", "bob", "\ufeffbob", "e\u0301", "\u00e9", "\U0001f600", "\uff17", "nan", "x" * 300),
        *("7\r", "a\nb"),
    ),
}
PARQUET = ("Parquet", "folder of Parquet", "Parquet as history in parts", "Parquet in blocks")
_TIMES = ("int64", "float64", "datetime64[ns]", "datetime64[ms]", "datetime64[D]")
_POLARS: dict[str, Any] = {
    "str": pl.String,
    "int64": pl.Int64,
    "uint64": pl.UInt64,
    "float64": pl.Float64,
    "float32": pl.Float32,
}


@dataclass(frozen=True)
class _Table:
    """Columns by role, what type each has, and whose each row is."""

    owners: list[Any]
    columns: dict[str, list[Any]]
    types: dict[str, str]

    def frame(self) -> pl.DataFrame:
        """As a polars frame of these types."""
        return pl.DataFrame({role: _series(values, self.types[role]) for role, values in self.columns.items()})


def _series(values: list[Any], kind: str) -> pl.Series:
    if kind == "float32":
        return pl.Series(values, dtype=pl.Float64).cast(pl.Float32)
    return pl.Series(values, dtype=_POLARS[kind]) if kind in _POLARS else pl.Series(np.array(values, kind))


def _table(dice: Random, said: Declared, mixed: bool = False) -> _Table:
    """Rows of people in columns whose types are decided before; if mixed, times are any numbers and dates of Python."""
    users = dice.choice(list(_USERS))
    types = {"user": users, "item": "str" if isinstance(said.catalogue[0], str) else "int64"}
    if said.limits is not None:
        types["rating"] = dice.choice(["float64", "float64", "float32"])
    if said.with_times:
        types["timestamp"] = dice.choice(["numbers", "numbers", "dates"]) if mixed else dice.choice(_TIMES)
    rows = []
    for name in dice.sample(_USERS[users], dice.randint(2, 6)):
        person = people(dice, integers=True, clean=said.policy == "error")[0]
        rows += [(name, _row(dice, person, name, said, types.get("timestamp", ""))) for _ in range(person.n_rows)]
    dice.shuffle(rows)
    return _Table([name for name, _ in rows], {role: [row[role] for _, row in rows] for role in types}, types)


def _row(dice: Random, person: Person, name: Any, said: Declared, time_type: str) -> dict[str, Any]:
    item: Any = dice.choice(said.catalogue[: 1 + person.n_rows // 2])
    rating: float | None = float(rating_text(dice, replace(person, broken=0.0), said.limits or RANGES[0]))
    if dice.random() < person.broken:
        item = dice.choice([item, None, 10**6 if isinstance(item, int) else "nowhere"])
        rating = dice.choice([rating, None, float("nan"), float("inf"), 1e308, -1e308])
    return {"user": name, "item": item, "rating": rating, "timestamp": _time(dice, person, time_type)}


def _time(dice: Random, person: Person, kind: str) -> Any:
    if kind.startswith("datetime64"):
        late = {"datetime64[ns]": 10**18, "datetime64[ms]": 10**12, "datetime64[D]": 10**4}[kind]
        return np.array(late + dice.randint(0, 3)).astype(kind)[()]
    time: Any = time_value(dice, person, with_dates=kind == "dates")
    return int(time) if kind == "int64" else float(time) if kind == "float64" else time


def frame(dice: Random, said: Declared, folder: Path, library: str) -> DataSet:  # noqa: ARG001
    """A pandas or polars frame or an Arrow table; rows are taken out as its library does."""
    table = _table(dice, said)
    given: Any = table.frame()
    if library == "polars" and table.types["user"] == "str" and dice.random() < 0.3:
        given = given.with_columns(pl.col("user").cast(pl.Categorical))
    if library == "Arrow":
        given = given.to_arrow()
    if library == "pandas":
        given = given.to_pandas(use_pyarrow_extension_array=dice.random() < 0.5)

    def read(numbers: Sequence[int]) -> list[Ratings]:
        taken = given[list(numbers)] if library == "polars" else given.take(list(numbers))
        return [Ratings.from_frame(taken, implicit=said.limits is None, **said.facts)]

    return DataSet(f"{library} frame", table.owners, said, read)


def parquet(dice: Random, said: Declared, folder: Path, kind: str) -> DataSet:
    """A Parquet file, a folder of parts, a history that is read in parts, or blocks that are written from a file."""
    table, said = _table(dice, said), replace(said, ids="auto")  # as the file's own schema says
    frame, rows_at_once = table.frame(), max(dice.choice([3, 1000]), len(table.owners) // 20)
    ratings_per_block = dice.choice([1, 5, 1000])

    def read(numbers: Sequence[int]) -> list[Ratings]:
        rows, path = frame[list(numbers)], folder / "ratings.parquet"
        if kind == PARQUET[1]:
            path = folder / "parts"
            path.mkdir(exist_ok=True)
            for number, part in enumerate((rows[: len(rows) // 2], rows[len(rows) // 2 :])):
                part.write_parquet(path / f"{number}.parquet")
        else:
            rows.write_parquet(path)
        if kind == PARQUET[2]:
            return in_parts(path, said, rows_at_once)
        if kind == PARQUET[3]:
            facts = {**said.facts, "implicit": said.limits is None, "ratings_per_block": ratings_per_block}
            with patch.object(block_source, "ROWS_AT_ONCE", rows_at_once):
                return list(write_blocks(path, folder / "blocks", overwrite=True, **facts))
        return [read_ratings(path, implicit=said.limits is None, **said.facts)]

    return DataSet(kind, table.owners, said, read)


def arrays(dice: Random, said: Declared, folder: Path, kind: str) -> DataSet:  # noqa: ARG001
    """Lists of Python's own values, or numpy arrays."""
    table = _table(dice, said, mixed=kind == "lists")
    columns: dict[str, Any] = dict(table.columns)
    if kind == "numpy":
        columns = {role: _array(dice, values, table.types[role]) for role, values in columns.items()}
    elif "rating" in columns:
        columns["rating"] = [_maybe_whole(dice, value) for value in columns["rating"]]

    def read(numbers: Sequence[int]) -> list[Ratings]:
        taken = {
            role: values[list(numbers)] if kind == "numpy" else [values[number] for number in numbers]
            for role, values in columns.items()
        }
        users, items, values, times = (taken.get(role) for role in ("user", "item", "rating", "timestamp"))
        assert users is not None
        assert items is not None
        return [Ratings.from_arrays(users, items, values, timestamps=times, **said.facts)]

    return DataSet(kind, table.owners, said, read)


def _maybe_whole(dice: Random, value: Any) -> Any:
    return int(value) if value in (1.0, 2.0, 3.0) and dice.random() < 0.5 else value


def _array(dice: Random, values: list[Any], kind: str) -> Any:
    if kind == "str":
        as_text: Any = dice.choice([object, np.dtypes.StringDType(na_object=None)])
        return np.array(values, as_text)
    if kind in ("int64", "uint64") and None in values:
        return np.array(values, object)
    if kind.startswith("float"):
        with np.errstate(over="ignore"):
            return np.array([np.nan if value is None else value for value in values], kind)
    return np.array(values, kind)


def matrix(dice: Random, said: Declared, folder: Path, kind: str) -> DataSet:  # noqa: ARG001
    """A sparse matrix with entries that are stored twice, and rows without entries."""
    crowd = people(dice, integers=True, clean=True)
    entries = [[] if dice.random() < 0.1 else _entries(dice, person, said) for person in crowd]
    users: list[Any] = dice.sample(_USERS["str"] if dice.random() < 0.5 else range(100), len(entries))
    dtype, named = dice.choice([np.float64, np.float32]), kind == "CSR with users"

    def read(numbers: Sequence[int]) -> list[Ratings]:
        taken = [dice.sample(entries[number], len(entries[number])) for number in numbers]
        items, values = (np.array([entry[at] for row in taken for entry in row]) for at in (0, 1))
        with np.errstate(over="ignore"):
            stored = values.astype(dtype), items.astype(np.int32), np.cumsum([0, *map(len, taken)])
        table: Any = csr_array(stored, shape=(len(taken), len(said.catalogue)))
        facts: dict[str, Any] = {"rating_range": said.limits, "implicit": said.limits is None, "items": said.catalogue}
        if named:
            facts["users"] = [users[number] for number in numbers]
        return [Ratings.from_csr(table, **facts)]

    owners = users if named else list(range(len(entries)))
    said = replace(said, policy="error")  # which matrices always are read with
    return DataSet(kind, owners, said, read, in_any_order=False, anonymous=not named)


def _entries(dice: Random, person: Person, said: Declared) -> list[tuple[int, float]]:
    limits = said.limits or RANGES[0]
    n_items = len(said.catalogue)
    return [(dice.randrange(n_items), float(rating_text(dice, person, limits))) for _ in range(person.n_rows)]


def makers() -> dict[str, Maker]:
    """How to make a data set of each kind; without pandas or Arrow where they are not installed."""
    arrow = find_spec("pyarrow") is not None
    libraries = ["polars", *["Arrow"] * arrow, *["pandas"] * (arrow and find_spec("pandas") is not None)]
    found: dict[str, Maker] = {kind: _with(matrix, kind) for kind in ("CSR", "CSR with users")}
    found |= {kind: _with(arrays, kind) for kind in ("lists", "numpy")}
    found |= {f"{library} frame": _with(frame, library) for library in libraries}
    found |= {form.kind: _with(text_file, form) for form in FORMATS}
    return found | {kind: _with(parquet, kind) for kind in PARQUET}


def _with(make: Callable[..., DataSet], form: Any) -> Maker:
    return lambda dice, said, folder: make(dice, said, folder, form)
