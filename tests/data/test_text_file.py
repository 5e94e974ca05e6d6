"""Text files as rows: line ends, encodings, compression, and damage, which is always an error."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from tests.data.tables import GOOD, MANY, RANGE, assert_same, check_refused, write

from dpals import InputError, Ratings, read_ratings
from dpals.data import text_file as text_module


@pytest.mark.parametrize(
    "content",
    [
        "user,item,rating,ts\n1,10,3,7\n2,20,4,8\n",
        "user\titem\trating\tts\n1\t10\t3\t7\n2\t20\t4\t8\n",
        "user;item;rating;ts\r\n1;10;3;7\r\n2;20;4;8",
        "\nuser,item,rating,ts\n\n1,10,3,7\n\n   \n2,20,4,8\n\n",
        "user, item, rating, ts\n1, 10, 3, 7\n2, 20, 4, 8\n",
        "user,item,rating,timestamp\n1,10,3,1970-01-01T00:00:07\n2,20,4,1970-01-01 00:00:08.5\n",
        "timestamp,rating,movieId,user_id\n7.0,3,10,1\n8.9,4,20,2\n",
        " User ID , Item ,Score,TS\n1,10,3,7\n2,20,4,8\n",
        '"customer","product","stars","time","comment"\n"1","10","3","7","a,b"\n"2","20","4","8",""\n',
    ],
    ids=[
        "comma",
        "tab",
        "semicolon",
        "blank lines",
        "spaces",
        "dates",
        "order",
        "spaced header",
        "quotes",
    ],
)
def test_dialects(content: str, tmp_path: Path) -> None:
    expected = Ratings.from_arrays(["1", "2"], ["10", "20"], [3, 4], timestamps=[7, 8], rating_range=RANGE)
    assert_same(read_ratings(write(tmp_path, content), rating_range=RANGE), expected)


def test_line_ends_are_the_same_everywhere(tmp_path: Path) -> None:
    for text in ("user,item\r\nann,a\r\r\nbob,a\r\n", "user,item\r\nbob,a\r\r\nann,a\r"):
        assert read_ratings(write(tmp_path, text)).users.tolist() == ["ann", "bob"]


@pytest.mark.parametrize(
    ("content", "users"),
    [
        ("1\n20\n3\n", ["1", "20", "3"]),
        ("007\n7\n", ["007", "7"]),
        ("+7\n7\n", ["+7", "7"]),
        ("ann\n12\n", ["12", "ann"]),
        ("NA\nnull\nNaN\n", ["NA", "NaN", "null"]),
        (" a\na\nb\t\n", ["a", "b"]),
        ("\u00a0a\na\n", ["a", "\u00a0a"]),
        ("a\ufeff\n\ufeffa\na\n\ufeff\ufeffb\nc\ufeffd\n", ["a", "b", "c\ufeffd"]),
        ('a\n\ufeff"b, c"\n\ufeff"d"\n', ["a", "b, c", "d"]),
        ('"a ""b"", c"\n', ['a "b", c']),
        ('5" disk\n3" disk\n', ['3" disk', '5" disk']),
    ],
)
def test_ids(content: str, users: list[Any], tmp_path: Path) -> None:
    rows = "".join(f"{line},9\n" for line in content.splitlines())
    assert read_ratings(write(tmp_path, "user,item\n" + rows)).users.tolist() == users


BAD: dict[str, tuple[str | bytes, str]] = {
    "blank": ("\n\n", r"r\.csv: the file is empty"),
    "header only": ("user,item,rating\n", r"r\.csv: there are columns but no row of data"),
    "word": (GOOD + "2,2,good\n", r"r\.csv, line 3, column 'rating': 'good' is not a number"),
    "word far down": (MANY + "2,2,good\n", "line 1002, column 'rating': 'good' is not a number"),
    "decimal comma": ("user;item;rating\n1;1;3,5\n", "line 2, column 'rating': '3,5' is not a number"),
    "underscore": (GOOD + "2,2,1_0\n", "line 3, column 'rating': '1_0' is not a number"),
    "bad time": (
        "user,item,timestamp\n1,1,5\n1,2,soon\n",
        "line 3, column 'timestamp': 'soon' is not a number or date",
    ),
    "huge time": ("user,item,timestamp\n1,1,5\n1,2,1e30\n", "line 3, column 'timestamp': '1e30' is not"),
    "binary": (GOOD.encode() + b"\x00\x01\x02", "line 3: this is not a text file"),
    "UTF-16": (GOOD.encode("utf-16"), "line 1: (this is not a text file|invalid UTF-8)"),
    "Latin-1": (GOOD.encode() + "é,2,3\n".encode("latin-1"), "line 3: invalid UTF-8 .byte 0xe9"),
    "gzip cut short": (gzip.compress(MANY.encode())[:-20], "the compressed file is damaged or cut short"),
    "gzip with a wrong sum": (
        gzip.compress(MANY.encode())[:-8] + b"\0" * 8,
        "the compressed file is damaged or cut short",
    ),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=list(BAD))
def test_files_that_are_refused(content: str | bytes, message: str, tmp_path: Path) -> None:
    check_refused(write(tmp_path, content), message)


DAMAGED = {name: BAD[name] for name in ("binary", "Latin-1", "gzip cut short", "gzip with a wrong sum")} | {
    "empty": ("", r"r\.csv: the file is empty"),
    "open quote": (GOOD + '"2,2,3\n3,3,3\n', "line 3: broken quotes .*ends on its own line"),
}


@pytest.mark.parametrize(
    "name", ["empty", "open quote", "binary", "Latin-1", "gzip cut short", "gzip with a wrong sum"]
)
def test_damage_is_an_error_even_if_bad_rows_may_be_dropped(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, DAMAGED[name][0])
    with pytest.raises(InputError, match=DAMAGED[name][1]):
        read_ratings(path, rating_range=RANGE, on_bad_rows="drop")


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "CHUNK_BYTES", 100)
    with pytest.raises(InputError, match="line 1: a line of more than 100 bytes"):
        read_ratings(write(tmp_path, "1,2," * 200))
