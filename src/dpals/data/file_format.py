"""Which format a file has, Parquet or text: its first bytes, its name or the caller decide."""

from pathlib import Path

from dpals.data.columns import ColumnOptions, IdOption, IdType
from dpals.data.parquet import ParquetSource
from dpals.data.sources import Source
from dpals.data.text_file import TextSource
from dpals.errors import InputError


def open_table(path: Path, options: ColumnOptions, ids: IdOption = "auto") -> tuple[Source, IdType]:
    """The rows of a file or folder, and what their ids are."""
    if _is_parquet(path, is_text=options.columns is not None):
        return ParquetSource(path, options), "given" if ids == "auto" else ids
    source = TextSource(path, options)
    return source, source.ids if ids == "auto" else ids


def _is_parquet(path: Path, is_text: bool) -> bool:
    """Whether a file is Parquet, by its first bytes unless it is declared to be text; raise if it cannot be read."""
    if path.is_dir():
        return True
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}. Check the path") from error
    if not start:
        raise InputError(f"{path}: the file is empty")
    if is_text:
        return False
    if start[:2] == b"PK":
        raise InputError(f"{path}: this is a zip archive or a spreadsheet. Unpack it or save the table as CSV first")
    return start == b"PAR1" or path.suffix in (".parquet", ".pq")
