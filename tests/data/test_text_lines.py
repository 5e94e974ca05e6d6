"""Lines split by two parsers against one rule for a line, whatever lines stand beside it."""

import csv
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.tables import GOOD, check_refused, write

from dpals import InputError
from dpals.data import text_lines
from dpals.data.bad_rows import BadRows
from dpals.data.text_lines import split_lines

FIELDS = [
    "a",
    "z",
    '"a"',
    'a"b',
    '"a""b"',
    '"a,b"',
    '""',
    'a"',
    ' "a"',
    '"a"",b"',
    "",
    " ",
    "\ufeffa",
    "\r",
    "a\x1fb",
    "a:",
    "::",
]
odd_lines = st.lists(st.sampled_from(FIELDS), min_size=1, max_size=4).flatmap(
    lambda fields: st.sampled_from([",", "::", ";"]).map(lambda separator: separator.join(fields))
)


def by_hand(line: str, separator: str) -> list[str] | None:
    """The fields of a line by itself, None where it has no such number of them or is broken."""
    if "\r" in line:
        return None
    if separator == "::" or '"' not in line:
        return line.split(separator)
    return next(csv.reader([line], delimiter=separator, strict=True))


def is_whole(line: str, separator: str) -> bool:
    try:
        by_hand(line.replace("\r", " "), separator)
    except csv.Error:
        return False
    return True


@settings(max_examples=400)
@given(st.lists(odd_lines, max_size=8), st.sampled_from([",", "::", ";"]), st.integers(2, 4))
def test_each_line_is_split_by_itself(some: list[str], separator: str, n_fields: int) -> None:
    some = [line for line in some if is_whole(line, separator)]
    block = "".join(line + "\n" for line in some).encode()
    bad = BadRows("drop")
    frame = split_lines(block, separator, n_fields, str, bad)
    expected = [
        (*fields, at)
        for at, line in enumerate(some)
        if line.strip(" \t") and (fields := by_hand(line, separator)) is not None and len(fields) == n_fields
    ]
    assert frame.with_columns(pl.col(pl.String).fill_null("")).rows() == expected
    blank = sum(not line.strip(" \t") for line in some)
    assert frame.height + bad.dropped.total() + blank == len(some)


@pytest.mark.parametrize("line", ['"a,b', '"a"b,c', '""a"",b'])
def test_broken_quotes_are_never_dropped(line: str) -> None:
    block = f"a,b\n{line}\nc,d\n".encode()
    with pytest.raises(InputError, match="1: broken quotes"):
        split_lines(block, ",", 2, str, BadRows("drop"))


def test_plain_lines_do_not_go_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards the speed: nothing above would notice if Python split every line."""
    monkeypatch.setattr(text_lines, "_split_carefully", lambda *_: pytest.fail("a plain line"))
    assert split_lines("a b,é\nc,\n".encode(), ",", 2, str, BadRows("error")).height == 2
    assert split_lines(b"1::2:::3\n", "::", 3, str, BadRows("error")).rows() == [("1", "2", ":3", 0)]


BAD: dict[str, tuple[str | bytes, str]] = {
    "short row": (GOOD + "2,2\n", r"r\.csv, line 3: expected 3 columns, found 2 in '2,2'"),
    "long row": (GOOD + "2,2,3,4\n", r"r\.csv, line 3: expected 3 columns, found 4 in '2,2,3,4'"),
    "short row after a blank line": (GOOD + "\n2,2\n", "line 4: expected 3 columns"),
    "short row elsewhere": ("user,item,rating,note\n1,1,3,x\n1,2,3\n", "line 3: expected 4 columns, found 3"),
    "short quoted row": ('user,item,note\n"1","1","x"\n"1","2"\n', "line 3: expected 3 columns, found 2"),
    "quotes inside fields": (GOOD + 'a"x,b"y,3,4\n', "line 3: expected 3 columns, found 4"),
    "quotes twice": (GOOD + '""a"",2,3\n', "line 3: broken quotes"),
    "carriage return": (GOOD + "a\rb,2,3\n", "line 3: a carriage return inside the line"),
    "quoted carriage return": (GOOD + '"a\rb",2,3\n', "line 3: a carriage return inside the line"),
    "open quote": (GOOD + '"2,2,3\n3,3,3\n', "line 3: broken quotes .*ends on its own line"),
    "line break in quotes": (GOOD + '"2\n2",2,3\n', "line 3: broken quotes"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=list(BAD))
def test_files_that_are_refused(content: str | bytes, message: str, tmp_path: Path) -> None:
    check_refused(write(tmp_path, content), message)
