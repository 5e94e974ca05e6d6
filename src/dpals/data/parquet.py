"""Rows from Parquet: one file, or a folder of parts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from dpals.data.bad_rows import BadRows, Place
from dpals.data.columns import ColumnOptions
from dpals.data.frames import typed_batch
from dpals.data.sources import Batch
from dpals.errors import InputError

BATCH_ROWS = 500_000


class ParquetSource:
    """Parquet files with the same columns, read one after another in the order of their names."""

    def __init__(self, path: Path, options: ColumnOptions) -> None:
        self.name = str(path)
        self._files = parquet_files(path) if path.is_dir() else [path]
        names = _column_names(self._files[0])
        for part in self._files[1:]:
            of_part = _column_names(part)
            if set(of_part) != set(names):
                raise InputError(
                    f"{part}: the columns {', '.join(of_part)} differ from those of {self._files[0].name}, "
                    f"which are {', '.join(names)}"
                )
        self.columns = options.find(names, self.name)
        self.schema = self.columns.declared_by("The schema of the file")

    def batches(self, bad: BadRows) -> Iterator[Batch]:  # noqa: ARG002
        """Read the files slice by slice."""
        used = list(self.columns.used().values())
        for file in self._files:
            table = pl.scan_parquet(file, glob=False, hive_partitioning=False)
            with _damage_reported(file):
                n_rows = table.select(pl.len()).collect().item()
            for start in range(0, n_rows, BATCH_ROWS):
                with _damage_reported(file):
                    frame = table.select(used).slice(start, BATCH_ROWS).collect()
                if frame.height != min(BATCH_ROWS, n_rows - start):
                    raise InputError(f"{file}: rows are missing after row {start:,}. Write the file again")
                yield typed_batch(frame, self.columns, _place(file, start))


def _place(file: Path, start: int) -> Place:
    return lambda row: f"{file}, row {start + row} (counting from 0)"


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files in a folder and below it, in the order of their names; raises where there is none."""
    inside = (file.relative_to(folder) for file in folder.rglob("*.parquet"))
    visible = [file for file in inside if not any(part.startswith((".", "_")) for part in file.parts)]
    if not visible:
        raise InputError(f"{folder}: there is no .parquet file in this folder, and no manifest of blocks")
    return [folder / file for file in sorted(visible)]


def _column_names(file: Path) -> list[str]:
    with _damage_reported(file):
        return pl.scan_parquet(file, glob=False, hive_partitioning=False).collect_schema().names()


@contextmanager
def _damage_reported(file: Path) -> Iterator[None]:
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(f"{file}: not a Parquet file, or damaged or cut short ({reason}). Write it again") from error
