"""Rows from a text file: CSV, TSV, semicolons, MovieLens, plain or gzipped, read in chunks of whole lines."""

import gzip
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from dpals.data.bad_rows import BadRows, Place
from dpals.data.cells import BLANKS
from dpals.data.columns import ColumnOptions, Columns, IdType
from dpals.data.rating_values import parse_ratings
from dpals.data.sources import Batch
from dpals.data.text_format import text_format
from dpals.data.text_lines import BYTE_ORDER_MARK, shortened, split_lines
from dpals.data.timestamps import parse_timestamps
from dpals.errors import InputError

CHUNK_BYTES = 8_000_000
_MARKS = re.compile(b"^(?:" + BYTE_ORDER_MARK + b")+", re.MULTILINE)
"""Byte order marks before lines. One begins many files, and in a neighbouring file another line is the first."""
_LINE_ENDS = re.compile(rb"\r+\n")
_NUMBERS: dict[str, tuple[Callable[[pl.Series], tuple[pl.Series, pl.Series]], str]] = {
    "rating": (parse_ratings, "number"),
    "timestamp": (parse_timestamps, "number or date"),
}


class TextSource:
    """A text table, a file or in a zip archive, ready to be read in batches."""

    def __init__(self, path: Path | zipfile.Path, options: ColumnOptions) -> None:
        self.name = str(path)
        self._path = path
        self._format = text_format(self.name, self._first_line(), options)
        self.columns = self._find(options)
        names = self._format.names
        self._position = {role: names.index(name) for role, name in self.columns.used().items()}
        self.schema = self.columns.declared_by(self._format.declared_by, self._format.separator)
        self.ids: IdType = "integer" if self._format.integer_ids else "string"

    def _find(self, options: ColumnOptions) -> Columns:
        try:
            return options.find(self._format.names, self.name)
        except InputError as problem:
            if not self._format.has_header or options.named():
                raise
            names = ", ".join(
                f'"{role}"' for role in ("user", "item", "rating", "timestamp")[: len(self._format.names)]
            )
            raise InputError(
                f"{problem}. If the first line is data and not a header, declare the columns: columns=[{names}]"
            ) from None

    def batches(self, bad: BadRows) -> Iterator[Batch]:
        """Read the file chunk by chunk. Lines that cannot be parsed go to `bad`."""
        header_ahead = self._format.has_header
        for first_line, chunk in self._chunks():
            if header_ahead and chunk.strip():
                lines_cut, chunk = _cut_first_line(chunk)
                first_line += lines_cut
                header_ahead = False
            batch = self._parse(chunk, lambda line, first=first_line: f"{self._path}, line {first + line}", bad)  # type: ignore[misc]
            if batch.frame.height:
                yield batch

    def _parse(self, chunk: bytes, place: Place, bad: BadRows) -> Batch:
        """Parse a chunk, line by line and cell by cell."""
        fields = split_lines(chunk, self._format.separator, len(self._format.names), place, bad)
        for role, (read, what) in _NUMBERS.items():
            if role in self._position:
                column = str(self._position[role])
                numbers, unreadable = read(fields[column])
                if unreadable.any():
                    row = unreadable.arg_max() or 0
                    where = f"{place(fields['line'][row])}, column {self.columns.used()[role]!r}"
                    problem = f"{shortened(fields[column][row])} is not a {what}"
                    bad.found(f"{role} that is not a {what}", int(unreadable.sum()), where, problem)
                fields = fields.with_columns(numbers.alias(column)).filter(~unreadable)
        chosen = {role: pl.col(str(at)) for role, at in self._position.items()}
        ids = {role: chosen[role].str.strip_chars(BLANKS) for role in ("user", "item")}
        lines = fields["line"]
        return Batch(fields.select(**chosen | ids), lambda row: place(lines[row]))

    def _first_line(self) -> str:
        """The first line that is not blank."""
        for _, chunk in self._chunks():
            for line in chunk[:100_000].split(b"\n"):
                if line.strip():
                    return line.decode(errors="ignore")
        raise InputError(f"{self._path}: the file is empty")

    def _chunks(self) -> Iterator[tuple[int, bytes]]:
        """Yield chunks of whole lines that end in a newline, each with the number of its first line."""
        line, rest = 1, b""
        for piece in self._pieces():
            piece = rest + piece
            cut = piece.rfind(b"\n") + 1
            if not cut and len(piece) > CHUNK_BYTES:
                raise InputError(
                    f"{self._path}, line {line}: a line of more than {CHUNK_BYTES:,} bytes. Is this a table?"
                )
            rest = piece[cut:]
            if cut:
                yield line, self._checked(piece[:cut], line)
                line += piece.count(b"\n", 0, cut)
        if rest:
            yield line, self._checked(rest + b"\n", line)

    def _pieces(self) -> Iterator[bytes]:
        try:
            with _open(self._path) as file:
                while piece := file.read(CHUNK_BYTES):
                    yield piece
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(
                f"{self._path}: the compressed file is damaged or cut short ({error}). Copy or download it again"
            ) from error

    def _checked(self, chunk: bytes, first_line: int) -> bytes:
        """The chunk with plain newlines and without byte order marks before lines; an error if it is not UTF-8."""
        if b"\0" in chunk:
            line = first_line + chunk.count(b"\n", 0, chunk.index(b"\0"))
            raise InputError(
                f"{self._path}, line {line}: this is not a text file, or not UTF-8. Expected CSV or Parquet"
            )
        if not chunk.isascii():
            try:
                chunk.decode()
            except UnicodeDecodeError as error:
                line = first_line + chunk.count(b"\n", 0, error.start)
                raise InputError(
                    f"{self._path}, line {line}: invalid UTF-8 (byte 0x{chunk[error.start]:02x}). Save the file "
                    "as UTF-8"
                ) from error
        chunk = _LINE_ENDS.sub(b"\n", chunk) if b"\r" in chunk else chunk
        return _MARKS.sub(b"", chunk) if BYTE_ORDER_MARK in chunk else chunk


def _open(path: Path | zipfile.Path) -> Any:
    if isinstance(path, zipfile.Path):
        return path.open("rb")
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if zipped else path.open("rb")


def _cut_first_line(chunk: bytes) -> tuple[int, bytes]:
    """Cut off everything up to the end of the first line that is not blank; count the lines cut."""
    start = len(chunk) - len(chunk.lstrip())
    end = chunk.index(b"\n", start) + 1
    return chunk.count(b"\n", 0, end), chunk[end:]
