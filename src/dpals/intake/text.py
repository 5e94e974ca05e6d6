"""Text tables: CSV, TSV, semicolons, MovieLens `.dat`, plain or gzipped, with or without a header.

A file is read in blocks of whole lines. polars parses a block if nothing about it is unusual; otherwise
Python goes through it line by line, which is slower but knows which line is at fault.
"""

import csv
import gzip
import zipfile
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpals.errors import InputError
from dpals.intake.columns import Columns, Wanted, is_usual_name
from dpals.intake.rows import BadRows, Batch

BLOCK_BYTES = 8_000_000
DOUBLE_COLON = "::"
_STAND_IN = "\x1f"  # polars wants separators of one byte
_WITHOUT_HEADER = ("user", "item", "rating", "timestamp")
_TYPES: dict[str, type[pl.DataType]] = {"rating": pl.Float32, "timestamp": pl.Int64}


class TextSource:
    """A text table, a file or in a zip archive, ready to be read in batches."""

    def __init__(self, path: Path | zipfile.Path, wanted: Wanted) -> None:
        self.name = str(path)
        self._path = path
        first, second = self._first_two_lines()
        self._separator = _separator(first)
        names = [name.strip() for name in self._split(first, f"{path}, line 1")]
        if len(names) < 2:
            raise InputError(
                f"{path}: only one column. Columns are separated by comma, tab, semicolon or '::', but the first "
                f"line is {_shortened(first)}"
            )
        self._header = _is_header(names, self._split(second, f"{path}, line 2"), wanted)
        if not self._header:
            if not 2 <= len(names) <= len(_WITHOUT_HEADER):
                raise InputError(
                    f"{path}: {len(names)} columns and no header, so it is unclear what they are. Without a "
                    "header they are user, item, rating, timestamp, of which the last two may be missing. Add a "
                    "header line"
                )
            names = list(_WITHOUT_HEADER[: len(names)])
        self._names = names
        self.columns: Columns = wanted.find(names, self.name)
        self._position = {role: names.index(name) for role, name in self.columns.used().items()}

    def batches(self, bad: BadRows) -> Iterator[Batch]:
        """Read the file block by block. Lines that cannot be parsed go to `bad`."""
        header_ahead = self._header
        for first_line, block in self._blocks():
            if header_ahead and block.strip():
                lines_cut, block = _cut_first_line(block)
                first_line += lines_cut
                header_ahead = False
            batch = self._parse_quickly(first_line, block) or self._parse_by_line(first_line, block, bad)
            if batch.frame.height:
                yield batch

    def _parse_quickly(self, first_line: int, block: bytes) -> Batch | None:
        """Parse a block with polars, or return None if anything about it is unusual."""
        n_lines = block.count(b"\n")
        quoted = b'"' in block
        separator = self._separator
        if separator == DOUBLE_COLON:
            if _STAND_IN.encode() in block:
                return None
            block = block.replace(DOUBLE_COLON.encode(), _STAND_IN.encode())
            separator = _STAND_IN
        elif quoted and not _quotes_enclose_fields(block, separator):
            return None
        if not quoted and block.count(separator.encode()) != n_lines * (len(self._names) - 1):
            return None
        schema: dict[str, type[pl.DataType]] = {str(at): pl.String for at in range(len(self._names))}
        schema |= {str(self._position[role]): dtype for role, dtype in _TYPES.items() if role in self._position}
        quote = None if self._separator == DOUBLE_COLON else '"'
        try:
            table = pl.read_csv(block, has_header=False, separator=separator, quote_char=quote, schema=schema)
        except pl.exceptions.PolarsError:
            return None
        frame = table.select(**{role: str(at) for role, at in self._position.items()})
        short_rows_possible = quoted and table.to_series(-1).has_nulls()
        if table.height != n_lines or short_rows_possible or any(column.has_nulls() for column in frame):
            return None
        return Batch(frame, lambda row: f"{self._path}, line {first_line + row}")

    def _parse_by_line(self, first_line: int, block: bytes, bad: BadRows) -> Batch:
        """Parse a block line by line; the reference for `_parse_quickly`."""
        parsers: dict[str, Callable[[str], Any]] = {"rating": _rating, "timestamp": _timestamp}
        rows: list[list[Any]] = []
        lines: list[int] = []
        for line, text in enumerate(block.decode().split("\n")[:-1], first_line):
            if not text.strip():
                continue
            where = f"{self._path}, line {line}"
            fields = self._split(text, where)
            if len(fields) != len(self._names):
                problem = f"expected {len(self._names)} columns, found {len(fields)} in {_shortened(text)}"
                bad.found("line with a wrong number of columns", 1, where, problem)
                continue
            row: list[Any] = []
            for role, at in self._position.items():
                try:
                    row.append(parsers[role](fields[at]) if role in parsers else fields[at])
                except ValueError:
                    what = "number" if role == "rating" else "number or date"
                    problem = f"{_shortened(fields[at])} is not a {what}"
                    bad.found(f"{role} that is not a {what}", 1, f"{where}, column {self._names[at]!r}", problem)
                    break
            else:
                rows.append(row)
                lines.append(line)
        schema = {role: _TYPES.get(role, pl.String) for role in self._position}
        frame = pl.DataFrame(rows, schema=schema, orient="row", strict=False)
        return Batch(frame, lambda row: f"{self._path}, line {lines[row]}")

    def _split(self, text: str, where: str) -> list[str]:
        if self._separator == DOUBLE_COLON:
            return text.split(DOUBLE_COLON)
        try:
            return next(csv.reader([text], delimiter=self._separator, strict=True), [])
        except csv.Error as error:  # never a row to drop: where rows begin and end is no longer sure
            raise InputError(
                f"{where}: broken quotes ({error}) in {_shortened(text)}. A quoted field ends on its own line, "
                "and a quote inside it is doubled"
            ) from error

    def _first_two_lines(self) -> tuple[str, str]:
        for _, block in self._blocks():
            lines = [line for line in block[:100_000].decode(errors="ignore").split("\n") if line.strip()]
            if lines:
                return lines[0], lines[1] if len(lines) > 1 else ""
        raise InputError(f"{self._path}: the file is empty")

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yield blocks of whole lines that end in a newline, each with the number of its first line."""
        line, rest = 1, b""
        for piece in self._pieces():
            piece = rest + piece
            cut = piece.rfind(b"\n") + 1
            if not cut and len(piece) > BLOCK_BYTES:
                raise InputError(
                    f"{self._path}, line {line}: a line of more than {BLOCK_BYTES:,} bytes. Is this a table?"
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
                while piece := file.read(BLOCK_BYTES):
                    yield piece
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(
                f"{self._path}: the compressed file is damaged or cut short ({error}). Get it again"
            ) from error

    def _checked(self, block: bytes, first_line: int) -> bytes:
        """Return the block with plain newlines and no byte order mark, or raise if it is not UTF-8 text."""
        if b"\0" in block:
            line = first_line + block.count(b"\n", 0, block.index(b"\0"))
            raise InputError(
                f"{self._path}, line {line}: this is not a text file, or not UTF-8. Expected CSV or Parquet"
            )
        if not block.isascii():
            try:
                block.decode()
            except UnicodeDecodeError as error:
                line = first_line + block.count(b"\n", 0, error.start)
                raise InputError(
                    f"{self._path}, line {line}: invalid UTF-8 (byte 0x{block[error.start]:02x}). Save the file "
                    "as UTF-8"
                ) from error
        if first_line == 1:
            block = block.removeprefix(b"\xef\xbb\xbf")
        return block.replace(b"\r\n", b"\n") if b"\r" in block else block


def _open(path: Path | zipfile.Path) -> Any:
    if isinstance(path, zipfile.Path):
        return path.open("rb")
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if zipped else path.open("rb")


def _separator(line: str) -> str:
    if DOUBLE_COLON in line and not any(separator in line for separator in "\t;,"):
        return DOUBLE_COLON
    if "\t" in line:
        return "\t"
    return ";" if line.count(";") > line.count(",") else ","


def _is_header(first: list[str], second: list[str], wanted: Wanted) -> bool:
    """Tell names from data: names are not numbers, and are known or stand above numbers."""
    if wanted.named():
        return True
    if any(_is_number(field) for field in first):
        return False
    return any(is_usual_name(field) for field in first) or any(_is_number(field) for field in second)


def _cut_first_line(block: bytes) -> tuple[int, bytes]:
    """Cut off everything up to the end of the first line that is not blank; count the lines cut."""
    start = len(block) - len(block.lstrip())
    end = block.index(b"\n", start) + 1
    return block.count(b"\n", 0, end), block[end:]


def _quotes_enclose_fields(block: bytes, separator: str) -> bool:
    """Whether quotes enclose whole fields, and are doubled inside; polars guesses where they do not.

    Taken in turns, a quote opens or closes. A doubled one closes and opens again at once.
    """
    text = np.frombuffer(b"\n" + block, np.uint8)
    quotes = np.flatnonzero(text == ord('"'))
    if len(quotes) % 2:
        return False
    before_opening, after_closing = text[quotes[::2] - 1], text[quotes[1::2] + 1]
    allowed = [ord(separator), ord("\n"), ord('"')]
    return bool(np.isin(before_opening, allowed).all() and np.isin(after_closing, allowed).all())


def _is_number(text: str) -> bool:
    try:
        _rating(text)
    except ValueError:
        return False
    return bool(text.strip())


def _rating(text: str) -> float | None:
    if "_" in text:
        raise ValueError("Python allows 1_000, tables do not")
    return float(text) if text.strip() else None


def _timestamp(text: str) -> int | None:
    """Parse a whole number, a decimal one (rounded down) or an ISO date, which becomes seconds since 1970."""
    text = text.strip()
    if not text:
        return None
    if not _is_number(text):
        moment = datetime.fromisoformat(text)
        return floor((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    try:
        number = int(text)
    except ValueError:
        number = floor(float(text))
    if not -(2**63) <= number < 2**63:
        raise ValueError("does not fit in 64 bits")
    return number


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
