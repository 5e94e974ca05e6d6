"""Columns and separator of a text file: declared by the caller, its header line or its name."""

import gzip
from pathlib import Path

import pytest
from tests.data.tables import GOOD, RANGE, assert_same, check_refused, write

from dpals import InputError, Ratings, read_ratings


def test_movielens_dat(tmp_path: Path) -> None:
    path = write(tmp_path, "1::122::5::838985046\n1::185::4.5::838983525\n7::122::3::838983392\n", "ratings.dat")
    expected = Ratings.from_arrays(
        [1, 1, 7],
        [122, 185, 122],
        [5, 4.5, 3],
        timestamps=[838985046, 838983525, 838983392],
        rating_range=RANGE,
    )
    assert_same(read_ratings(path, rating_range=RANGE), expected)


@pytest.mark.parametrize(
    ("name", "content", "separator"),
    [
        ("r.csv", "1,10,3,7\n2,20,4,8\n", None),
        ("r.csv.gz", gzip.compress(b"1,10,3,7\n2,20,4,8\n", mtime=0), None),
        ("r.tsv", "1\t10\t3\t7\n2\t20\t4\t8\n", None),
        ("r.csv", "1;10;3;7\r\n2;20;4;8", ";"),
        ("r.csv", "\n1|10|3|7\n\n2|20|4|8\n", "|"),
        ("r.csv", "1::10::3::7\n2::20::4::8\n", "::"),
        ("r.csv", "\ufeffuser,item,3,7\n2,20,4,8\n", None),
    ],
)
def test_without_a_header_columns_are_declared(
    name: str, content: str | bytes, separator: str | None, tmp_path: Path
) -> None:
    names = ["who", "what", "stars", "when"]
    roles = {"user": "who", "item": "what", "timestamp": "when"}
    path = write(tmp_path, content, name)
    ratings = read_ratings(path, rating_range=RANGE, columns=names, separator=separator, **roles)
    first = ("user", "item") if "user" in str(content) else ("1", "10")
    expected = Ratings.from_arrays([first[0], "2"], [first[1], "20"], [3, 4], timestamps=[7, 8], rating_range=RANGE)
    assert_same(ratings, expected)


def test_a_first_line_of_data_is_no_header(tmp_path: Path) -> None:
    path = write(tmp_path, "1,10,3\n2,20,4\n")
    with pytest.raises(InputError, match=r'If the first line is data .*columns=\["user", "item", "rating"\]'):
        read_ratings(path, rating_range=RANGE)


def test_what_the_file_declares_is_stated(tmp_path: Path) -> None:
    facts = read_ratings(write(tmp_path, "userId;movieId;note\n1;2;x\n")).public_facts()
    assert facts[-1] == (
        "The header line declares the columns 'userId' (user) and 'movieId' (item), separated by ';'. "
        "User ids are text."
    )


BAD: dict[str, tuple[str | bytes, str]] = {
    "one column": ("user\n1\n", "only one column.*comma, tab, semicolon"),
    "carriage returns for newlines": (GOOD.replace("\n", "\r"), "carriage returns inside the first line"),
    "no header": ("1,2,3,4,5\n", 'declare the columns: columns=\\["user", "item", "rating", "timestamp"'),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=list(BAD))
def test_files_that_are_refused(content: str | bytes, message: str, tmp_path: Path) -> None:
    check_refused(write(tmp_path, content), message)
