"""Lines of a text table, split into fields. Each line is read by a rule that looks at nothing but that line."""

import csv
from collections.abc import Iterator
from itertools import compress

import numpy as np
import polars as pl

from dpals.data.bad_rows import BadRows, Place
from dpals.errors import InputError

DOUBLE_COLON = "::"
_STAND_IN = b"\x1f"  # polars wants separators of one byte
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # polars removes it at the start of what it reads, wherever that is in the file


def split_lines(chunk: bytes, separator: str, n_fields: int, place: Place, bad: BadRows) -> pl.DataFrame:
    """Split each line of a chunk at its separators.

    Formal guarantee (docs/privacy.md, step 10): what becomes of a line depends on that line, the separator and the
    number of fields alone. A line is plain if it has the right number of separators, no carriage return or other
    oddity, and quotes around whole fields only. polars splits plain lines; Python's csv reads the others, one by one.
    The line itself decides which.

    =============================  ========================================================
    blank line                     left out
    another number of fields       a bad row
    carriage return inside         a bad row
    quotes that do not close       InputError: where rows begin and end is no longer sure
    =============================  ========================================================

    Parameters
    ----------
    chunk
        UTF-8 lines that end in a newline.
    place
        Says where a line is, counted from 0.

    Returns
    -------
    frame
        Text columns "0", "1", ... and the number of the line in the chunk, in "line".

    Examples
    --------
    >>> split_lines(b'a,1\\n\\n"b,c",2\\n', ",", 2, str, BadRows("error")).rows()
    [('a', '1', 0), ('b,c', '2', 2)]
    """
    lines: list[bytes] = []
    n_lines = chunk.count(b"\n")
    oddities = [odd for odd in (b"\r", BYTE_ORDER_MARK, _STAND_IN) if odd in chunk]
    if not oddities and _all_plain(_with_one_byte_separator(chunk, separator), n_fields):
        frame = _split_plain(chunk, separator, n_fields)
    else:
        mark, lines = separator.encode(), chunk.split(b"\n")[:-1]
        is_plain = [line.count(mark) == n_fields - 1 and not any(odd in line for odd in oddities) for line in lines]
        frame = _split_plain(b"".join(line + b"\n" for line in compress(lines, is_plain)), separator, n_fields)
        frame = frame.with_columns(line=pl.Series(np.flatnonzero(is_plain), dtype=pl.Int64))
    if separator != DOUBLE_COLON and b'"' in chunk:
        frame = _without_quotes(frame, n_fields)
    if frame.height == n_lines:
        return frame
    lines = lines or chunk.split(b"\n")
    others = [(at, lines[at].decode()) for at in np.delete(np.arange(n_lines), frame["line"]).tolist()]
    rows = [(*fields, at) for at, fields in _split_carefully(others, separator, n_fields, place, bad)]
    return pl.concat([frame, pl.DataFrame(rows, schema=frame.schema, orient="row")]).sort("line")


def header_fields(line: str, separator: str, where: str) -> list[str]:
    """Names in the first line of a table."""
    quoted = '"' in line and separator != DOUBLE_COLON
    fields = next(_quoted_fields([(0, line)], separator, lambda _: where))[1] if quoted else line.split(separator)
    return [name.strip() for name in fields]


def shortened(text: str) -> str:
    """A text to quote in a message."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _with_one_byte_separator(chunk: bytes, separator: str) -> tuple[bytes, int]:
    """The chunk with a separator of one byte, and that byte."""
    if separator == DOUBLE_COLON:
        return chunk.replace(DOUBLE_COLON.encode(), _STAND_IN), _STAND_IN[0]
    return chunk, ord(separator)


def _all_plain(chunk_and_separator: tuple[bytes, int], n_fields: int) -> bool:
    """Whether each line has the right number of separators: every so many marks, one ends a line."""
    chunk, separator = chunk_and_separator
    text = np.frombuffer(chunk, np.uint8)
    is_end = text[(text == separator) | (text == ord("\n"))] == ord("\n")
    ends = is_end[n_fields - 1 :: n_fields]
    return len(is_end) % n_fields == 0 and bool(ends.all()) and np.count_nonzero(is_end) == len(ends)


def _split_plain(chunk: bytes, separator: str, n_fields: int) -> pl.DataFrame:
    """Fields of lines that are all plain."""
    schema = {str(at): pl.String for at in range(n_fields)}
    if not chunk:
        return pl.DataFrame(schema=schema | {"line": pl.Int64})
    joined, byte = _with_one_byte_separator(chunk, separator)
    frame = pl.read_csv(joined, has_header=False, separator=chr(byte), quote_char=None, schema=schema)
    assert frame.height == chunk.count(b"\n")
    return frame.with_columns(line=pl.Series(np.arange(frame.height)))


def _without_quotes(frame: pl.DataFrame, n_fields: int) -> pl.DataFrame:
    """Fields without the quotes around them. Lines that have quotes in another place are left out."""
    cells = [pl.col(str(at)) for at in range(n_fields)]
    n_quotes = [cell.str.count_matches('"', literal=True) for cell in cells]
    enclosed = [cell.str.starts_with('"') & cell.str.ends_with('"') for cell in cells]
    simple = [(n == 0) | ((n == 2) & whole) for n, whole in zip(n_quotes, enclosed, strict=True)]
    kept = frame.filter(pl.all_horizontal(is_simple.fill_null(True) for is_simple in simple))
    return kept.with_columns(cell.str.strip_prefix('"').str.strip_suffix('"') for cell in cells)


def _split_carefully(
    lines: list[tuple[int, str]], separator: str, n_fields: int, place: Place, bad: BadRows
) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of each line that is not blank and has as many fields as it should."""
    quotes = separator != DOUBLE_COLON
    quoted = _quoted_fields([line for line in lines if quotes and '"' in line[1]], separator, place)
    for at, text in lines:
        fields = next(quoted)[1] if quotes and '"' in text else text.split(separator)
        if not text.strip(" \t"):
            continue
        if "\r" in text:
            problem = f"a carriage return inside the line {shortened(text)}"
            bad.found("line with a carriage return", 1, place(at), problem)
        elif len(fields) != n_fields:
            problem = f"expected {n_fields} columns, found {len(fields)} in {shortened(text)}"
            bad.found("line with a wrong number of columns", 1, place(at), problem)
        else:
            yield at, fields


def _quoted_fields(lines: list[tuple[int, str]], separator: str, place: Place) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of lines with quotes, each of which must be whole."""
    reader = csv.reader((text.replace("\r", " ") for _, text in lines), delimiter=separator, strict=True)
    for count, (at, text) in enumerate(lines, 1):
        try:
            fields = next(reader)
            if reader.line_num != count:
                raise csv.Error("a field continues in the next line")
        except csv.Error as error:
            raise InputError(
                f"{place(at)}: broken quotes ({error}) in {shortened(text)}. A quoted field ends on its own line, "
                "and a quote inside it is doubled"
            ) from error
        yield at, fields
