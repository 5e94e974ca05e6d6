"""Files of every format against the arrays they were written from, and every way a file can be bad."""

import csv
import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.same_ratings import assert_same_arrays

from dpals import InputError, Ratings, read_ratings
from dpals.data import id_encoder
from dpals.data import parquet as parquet_module
from dpals.data import text_file as text_module
from dpals.data.bad_rows import BadRows

RANGE = (0.5, 5.0)
Table = dict[str, list[Any]]

visible_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\r"), min_size=1, max_size=8)
text_ids = visible_text.filter(lambda text: text.strip(" \t") != "")
integer_ids = st.integers(-(2**63), 2**63 - 1)
ids = st.one_of(
    st.lists(text_ids, min_size=1, max_size=6, unique=True),
    st.lists(integer_ids, min_size=1, max_size=6, unique=True),
)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    users, items = draw(ids), draw(ids)
    stars = st.integers(1, 10).map(lambda number: number / 2)
    row = st.tuples(st.sampled_from(users), st.sampled_from(items), stars, st.integers(0, 2**40))
    rows = draw(st.lists(row, min_size=1, max_size=30))
    names = ("userId", "movieId", "rating", "timestamp")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def as_text(table: Table) -> Table:
    """Ids as a text file has them."""
    users, items = list(table)[:2]
    return table | {name: [str(one).strip(" \t") for one in table[name]] for name in (users, items)}


def from_table(table: Table, **arguments: Any) -> Ratings:
    users, items, values, stamps = table.values()
    return Ratings.from_arrays(users, items, values, timestamps=stamps, rating_range=RANGE, **arguments)


def assert_same(a: Ratings, b: Ratings) -> None:
    assert_same_arrays(a, b)
    assert a.report == b.report


def write_csv(table: Table, path: Path, delimiter: str = ",", header: bool = True, end: str = "\n") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=end)
        if header:
            writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))


def write_gzip(table: Table, path: Path) -> None:
    plain = path.with_suffix(".plain")
    write_csv(table, plain)
    path.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()


def write_with_bom(table: Table, path: Path) -> None:
    write_csv(table, path, end="\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + b"\r\n\r\n")


def write_parts(table: Table, path: Path) -> None:
    frame = pl.DataFrame(table)
    half = frame.height // 2
    path.mkdir()
    (path / "_SUCCESS").touch()
    frame[:half].write_parquet(path / "part-0.parquet")
    frame[half:].write_parquet(path / "part-1.parquet")


FORMATS: dict[str, tuple[str, Callable[[Table, Path], None]]] = {
    "csv": ("r.csv", write_csv),
    "tsv": ("r.tsv", lambda table, path: write_csv(table, path, "\t")),
    "semicolons": ("r.csv", lambda table, path: write_csv(table, path, ";")),
    "gzip": ("r.csv.gz", write_gzip),
    "windows": ("r.csv", write_with_bom),
    "polars csv": ("r.csv", lambda table, path: pl.DataFrame(table).write_csv(path)),
    "quoted csv": ("r.csv", lambda table, path: pl.DataFrame(table).write_csv(path, quote_style="always")),
    "parquet": ("r.parquet", lambda table, path: pl.DataFrame(table).write_parquet(path)),
    "pyarrow parquet": ("r.pq", lambda table, path: pq.write_table(pa.table(table), path, row_group_size=7)),
    "parquet of unknown name": ("r.data", lambda table, path: pl.DataFrame(table).write_parquet(path)),
    "parts": ("folder", write_parts),
}


@pytest.mark.parametrize(("name", "write"), FORMATS.values(), ids=list(FORMATS))
@settings(max_examples=40, deadline=None)
@given(table=tables())
def test_round_trip(name: str, write: Callable[[Table, Path], None], table: Table) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        write(table, path)
        expected = table if "parquet" in name or name in ("folder", "r.pq", "r.data") else as_text(table)
        assert_same(read_ratings(path, rating_range=RANGE), from_table(expected))


@settings(max_examples=60, deadline=None)
@given(table=tables(), block=st.integers(60, 400), quoted=st.booleans())
def test_small_blocks_give_the_same(table: Table, block: int, quoted: bool) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "r.csv")
        pl.DataFrame(table).write_csv(path, quote_style="always" if quoted else "necessary")
        patch.setattr(text_module, "BLOCK_BYTES", block)
        patch.setattr(id_encoder, "_BLOCK", 3)
        assert_same(read_ratings(path, rating_range=RANGE), from_table(as_text(table)))


def read(name: str, folder: Path, **arguments: Any) -> Ratings:
    return read_ratings(folder / name, **({"rating_range": RANGE} | arguments))


def write(folder: Path, content: str | bytes, name: str = "r.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


class TestText:
    def test_movielens_dat(self, tmp_path: Path) -> None:
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
    def test_dialects(self, content: str, tmp_path: Path) -> None:
        expected = Ratings.from_arrays(["1", "2"], ["10", "20"], [3, 4], timestamps=[7, 8], rating_range=RANGE)
        assert_same(read_ratings(write(tmp_path, content), rating_range=RANGE), expected)

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
        self, name: str, content: str | bytes, separator: str | None, tmp_path: Path
    ) -> None:
        names = ["who", "what", "stars", "when"]
        roles = {"user": "who", "item": "what", "timestamp": "when"}
        path = write(tmp_path, content, name)
        ratings = read_ratings(path, rating_range=RANGE, columns=names, separator=separator, **roles)
        first = ("user", "item") if "user" in str(content) else ("1", "10")
        expected = Ratings.from_arrays([first[0], "2"], [first[1], "20"], [3, 4], timestamps=[7, 8], rating_range=RANGE)
        assert_same(ratings, expected)

    def test_a_first_line_of_data_is_no_header(self, tmp_path: Path) -> None:
        path = write(tmp_path, "1,10,3\n2,20,4\n")
        with pytest.raises(InputError, match=r'If the first line is data .*columns=\["user", "item", "rating"\]'):
            read_ratings(path, rating_range=RANGE)

    @pytest.mark.parametrize("columns", ["user,item", ["user"], [1, 2]])
    def test_columns_are_names(self, columns: Any, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="columns must be a list of the names of all columns"):
            read_ratings(write(tmp_path, "1,10\n"), columns=columns)

    @pytest.mark.parametrize("separator", ["", ",,", "a", '"', "\n"])
    def test_separators_are_separators(self, separator: str, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="separator must be one of"):
            read_ratings(write(tmp_path, "user,item\n1,10\n"), separator=separator)

    def test_what_the_file_declares_is_stated(self, tmp_path: Path) -> None:
        facts = read_ratings(write(tmp_path, "userId;movieId;note\n1;2;x\n")).public_facts()
        assert facts[-1] == (
            "The header line declares the columns 'userId' (user) and 'movieId' (item), separated by ';'. "
            "User ids are text."
        )

    def test_line_ends_are_the_same_everywhere(self, tmp_path: Path) -> None:
        for text in ("user,item\r\nann,a\r\r\nbob,a\r\n", "user,item\r\nbob,a\r\r\nann,a\r"):
            assert read_ratings(write(tmp_path, text)).users.tolist() == ["ann", "bob"]

    def test_declared_text_may_begin_like_any_file(self, tmp_path: Path) -> None:
        for first in ("PK", "PAR1"):
            path = write(tmp_path, f"{first},a\nbob,a\n")
            assert read_ratings(path, columns=["user", "item"]).users.tolist() == [first, "bob"]

    def test_implicit_leaves_out_the_ratings(self, tmp_path: Path) -> None:
        path = write(tmp_path, "user,item,rating\n1,2,bad\n")
        assert read_ratings(path, implicit=True).is_implicit

    def test_named_columns(self, tmp_path: Path) -> None:
        path = write(tmp_path, "who,what,how\nann,tea,3\n")
        assert read_ratings(path, user="who", item="what", rating="how", rating_range=RANGE).n_ratings == 1
        with pytest.raises(InputError, match=r"r\.csv: no column looks like the user.*user=.*'who', 'what', 'how'"):
            read_ratings(path, rating_range=RANGE)

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
    def test_ids(self, content: str, users: list[Any], tmp_path: Path) -> None:
        rows = "".join(f"{line},9\n" for line in content.splitlines())
        assert read_ratings(write(tmp_path, "user,item\n" + rows)).users.tolist() == users

    def test_ids_that_are_declared_integers(self, tmp_path: Path) -> None:
        path = write(tmp_path, "user,item\n 20,5\n9223372036854775807,5\n-5,5\n")
        assert read_ratings(path, ids="integer").users.tolist() == [-5, 20, 2**63 - 1]

    @pytest.mark.parametrize("odd", ["b", "007", "+7", "9223372036854775808", "18446744073709551615", "7.0", "\u0667"])
    def test_each_id_is_an_integer_by_itself(self, odd: str, tmp_path: Path) -> None:
        path = write(tmp_path, f"user,item\n{odd},5\n{odd},6\n{odd},7\n1,5\n")
        with pytest.raises(InputError, match=r"line 2, column 'user': .* is not a plain 64-bit integer"):
            read_ratings(path, ids="integer")
        dropped = read_ratings(path, ids="integer", on_bad_rows="drop")
        assert dropped.users.tolist() == [1]
        assert dropped.report.rows_dropped == {"user id that is not an integer": 3}

    def test_type_of_ids_can_be_chosen(self, tmp_path: Path) -> None:
        path = write(tmp_path, "user,item\n1,5\nb,5\n")
        assert read_ratings(path, ids="string").users.tolist() == ["1", "b"]
        with pytest.raises(InputError, match='ids must be "auto"'):
            read_ratings(path, ids="text")  # type: ignore[arg-type]

    def test_catalogue_says_what_item_ids_are(self, tmp_path: Path) -> None:
        path = write(tmp_path, "user,item\n1,5\n1,7\n")
        assert read_ratings(path, catalogue=["7", "5"]).items.tolist() == ["7", "5"]
        assert read_ratings(path, catalogue=[7, 5]).items.tolist() == [7, 5]
        with pytest.raises(InputError, match=r"r\.csv, line 3, column 'item': the item 7 is not in the catalogue"):
            read_ratings(path, catalogue=[5, 6])

    def test_bad_rows_are_dropped_and_counted(self, tmp_path: Path) -> None:
        rows = [
            "1,1,3,5",
            "1,2,abc,5",
            "1,3,9,5",
            "1,4",
            ",5,3,5",
            "1,,3,5",
            "1,7,nan,5",
            "1,8,3,x",
            "1,9,,5",
            "2,1,4,6",
        ]
        path = write(tmp_path, "user,item,rating,timestamp\n" + "\n".join(rows))
        ratings = read("r.csv", tmp_path, on_bad_rows="drop")
        assert path.exists()
        assert ratings.users.tolist() == ["1", "2"]
        assert ratings.n_ratings == 2
        assert ratings.report.rows_read == 10
        assert ratings.report.rows_dropped == {
            "rating that is not a number": 1,
            "line with a wrong number of columns": 1,
            "timestamp that is not a number or date": 1,
            "missing user id": 1,
            "missing item id": 1,
            "missing rating": 2,
            "rating outside the range": 1,
        }

    def test_duplicates_are_counted_once(self, tmp_path: Path) -> None:
        write(tmp_path, "user,item,rating,timestamp\n1,1,3,5\n1,1,4,9\n1,1,5,9\n1,1,2,1\n")
        ratings = read("r.csv", tmp_path)
        assert ratings.values is not None
        assert ratings.values.tolist() == [5.0]
        assert ratings.report.duplicates_replaced == 3

    def test_unknown_items_are_left_out_where_other_bad_rows_are_not(self, tmp_path: Path) -> None:
        path = write(tmp_path, "user,item\n1,5\n2,7\n")
        ratings = read_ratings(path, catalogue=[5], on_unknown_items="drop")
        assert ratings.users.tolist() == ["1", "2"]
        assert ratings.report.rows_dropped == {"item outside the catalogue": 1}
        path = write(tmp_path, "user,item\n1,\n1,5\n\n2,x\n2,7\n")
        with pytest.raises(InputError, match=r"line 6, column 'item': the item 7 is not"):
            read_ratings(path, catalogue=[5], on_bad_rows="drop", on_unknown_items="error")
        ratings = read_ratings(write(tmp_path, "user,item\n1,5\n2,x\n"), catalogue=[5], on_bad_rows="drop")
        assert ratings.users.tolist() == ["1"]


GOOD = "user,item,rating\n1,1,3\n"
MANY = "user,item,rating\n" + "".join(f"{row},1,3\n" for row in range(1000))
BAD_TEXT: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", r"r\.csv: the file is empty"),
    "blank": ("\n\n", r"r\.csv: the file is empty"),
    "header only": ("user,item,rating\n", r"r\.csv: there are columns but no row of data"),
    "one column": ("user\n1\n", "only one column.*comma, tab, semicolon"),
    "short row": (GOOD + "2,2\n", r"r\.csv, line 3: expected 3 columns, found 2 in '2,2'"),
    "long row": (GOOD + "2,2,3,4\n", r"r\.csv, line 3: expected 3 columns, found 4 in '2,2,3,4'"),
    "short row after a blank line": (GOOD + "\n2,2\n", "line 4: expected 3 columns"),
    "short row elsewhere": ("user,item,rating,note\n1,1,3,x\n1,2,3\n", "line 3: expected 4 columns, found 3"),
    "short quoted row": ('user,item,note\n"1","1","x"\n"1","2"\n', "line 3: expected 3 columns, found 2"),
    "quotes inside fields": (GOOD + 'a"x,b"y,3,4\n', "line 3: expected 3 columns, found 4"),
    "quotes twice": (GOOD + '""a"",2,3\n', "line 3: broken quotes"),
    "word": (GOOD + "2,2,good\n", r"r\.csv, line 3, column 'rating': 'good' is not a number"),
    "word far down": (MANY + "2,2,good\n", "line 1002, column 'rating': 'good' is not a number"),
    "decimal comma": ("user;item;rating\n1;1;3,5\n", "line 2, column 'rating': '3,5' is not a number"),
    "underscore": (GOOD + "2,2,1_0\n", "line 3, column 'rating': '1_0' is not a number"),
    "NaN": (GOOD + "2,2,NaN\n", "line 3, column 'rating': the rating is missing"),
    "no rating": (GOOD + "2,2,\n", "line 3, column 'rating': the rating is missing"),
    "infinite": (GOOD + "2,2,-inf\n", "line 3, column 'rating': the rating is infinite"),
    "out of range": (GOOD + "2,2,7.5\n", "line 3, column 'rating': 7.5 is outside .* 0.5 to 5"),
    "out of range far down": (MANY + "2,2,7.5\n", "line 1002, column 'rating': 7.5"),
    "missing user": (GOOD + ",2,3\n", "line 3, column 'user': the user id is missing"),
    "missing quoted item": (GOOD + '2,"",3\n', "line 3, column 'item': the item id is missing"),
    "carriage return": (GOOD + "a\rb,2,3\n", "line 3: a carriage return inside the line"),
    "quoted carriage return": (GOOD + '"a\rb",2,3\n', "line 3: a carriage return inside the line"),
    "carriage returns for newlines": (GOOD.replace("\n", "\r"), "carriage returns inside the first line"),
    "open quote": (GOOD + '"2,2,3\n3,3,3\n', "line 3: broken quotes .*ends on its own line"),
    "line break in quotes": (GOOD + '"2\n2",2,3\n', "line 3: broken quotes"),
    "bad time": (
        "user,item,timestamp\n1,1,5\n1,2,soon\n",
        "line 3, column 'timestamp': 'soon' is not a number or date",
    ),
    "huge time": ("user,item,timestamp\n1,1,5\n1,2,1e30\n", "line 3, column 'timestamp': '1e30' is not"),
    "no time": ("user,item,timestamp\n1,1,5\n1,2,\n", "line 3, column 'timestamp': the timestamp is missing"),
    "binary": (GOOD.encode() + b"\x00\x01\x02", "line 3: this is not a text file"),
    "zip": (b"PK\x03\x04....", "this is a zip archive or a spreadsheet"),
    "UTF-16": (GOOD.encode("utf-16"), "line 1: (this is not a text file|invalid UTF-8)"),
    "Latin-1": (GOOD.encode() + "é,2,3\n".encode("latin-1"), "line 3: invalid UTF-8 .byte 0xe9"),
    "gzip cut short": (gzip.compress(MANY.encode())[:-20], "the compressed file is damaged or cut short"),
    "gzip with a wrong sum": (
        gzip.compress(MANY.encode())[:-8] + b"\0" * 8,
        "the compressed file is damaged or cut short",
    ),
    "no header": ("1,2,3,4,5\n", 'declare the columns: columns=\\["user", "item", "rating", "timestamp"'),
    "two users": ("user,uid,item\n1,2,3\n", "'user' and 'uid' both look like the user"),
    "same name twice": ("user,user,item\n1,2,3\n", "'user' and 'user' both look like the user"),
    "unknown header": ("who,what\n1,2\n", r"no column looks like the user.*user=.*'who', 'what'"),
}


@pytest.mark.parametrize(("content", "message"), BAD_TEXT.values(), ids=list(BAD_TEXT))
def test_bad_text(content: str | bytes, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, content)
    has_ratings = b"rating" in path.read_bytes() or path.read_bytes()[:2] == b"\x1f\x8b"
    with pytest.raises(InputError, match=message) as error:
        read_ratings(path, rating_range=RANGE if has_ratings else None)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "name", ["empty", "open quote", "binary", "Latin-1", "gzip cut short", "gzip with a wrong sum"]
)
def test_damage_is_an_error_even_if_bad_rows_may_be_dropped(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, BAD_TEXT[name][0])
    with pytest.raises(InputError, match=BAD_TEXT[name][1]):
        read_ratings(path, rating_range=RANGE, on_bad_rows="drop")


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "BLOCK_BYTES", 100)
    with pytest.raises(InputError, match="line 1: a line of more than 100 bytes"):
        read_ratings(write(tmp_path, "1,2," * 200))


def test_a_rating_column_needs_a_range(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"rating_range=\(lowest, highest\).*leak who is in it.*implicit=True"):
        read_ratings(write(tmp_path, GOOD))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.csv: No such file"):
        read_ratings(tmp_path / "nowhere.csv")


class TestParquet:
    table = pl.DataFrame({"user": ["b", "a", "b"], "item": [1, 1, 2], "rating": [3.0, 4.0, 9.0]})

    def test_row_and_column_are_named(self, tmp_path: Path) -> None:
        self.table.write_parquet(tmp_path / "r.parquet")
        with pytest.raises(InputError, match=r"r\.parquet, row 2 .*column 'rating': 9 is outside"):
            read("r.parquet", tmp_path)
        assert read("r.parquet", tmp_path, on_bad_rows="drop").n_ratings == 2

    def test_row_of_a_later_slice(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dpals.data.parquet.BATCH_ROWS", 2)
        self.table.write_parquet(tmp_path / "r.parquet")
        with pytest.raises(InputError, match=r"r\.parquet, row 2 .*column 'rating': 9 is outside"):
            read("r.parquet", tmp_path)
        with pytest.raises(InputError, match=r"r\.parquet, row 2 .*column 'item': the item 2 is not in the catalogue"):
            read("r.parquet", tmp_path, rating_range=(1, 9), catalogue=[1])

    @pytest.mark.parametrize("keep", [0.0, 0.3, 0.6, 0.99])
    def test_cut_short(self, keep: float, tmp_path: Path) -> None:
        path = tmp_path / "r.parquet"
        self.table.write_parquet(path)
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * keep)])
        with pytest.raises(InputError, match=r"r\.parquet: (not a Parquet file, or damaged|the file is empty)"):
            read("r.parquet", tmp_path, on_bad_rows="drop")

    def test_damaged_inside(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "r.parquet"
        rng = np.random.default_rng(0)
        pl.DataFrame({"user": rng.integers(0, 99, 9999), "item": rng.integers(0, 99, 9999)}).write_parquet(path)
        content = bytearray(path.read_bytes())
        content[100:600] = b"\xff" * 500
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"r\.parquet: not a Parquet file, or damaged"):
            read_ratings(path)
        capfd.readouterr()

    def test_text_called_parquet(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"r\.parquet: not a Parquet file, or damaged"):
            read_ratings(write(tmp_path, GOOD, "r.parquet"))

    def test_folder_without_parquet(self, tmp_path: Path) -> None:
        write(tmp_path, GOOD)
        with pytest.raises(InputError, match=r"there is no .parquet file in this folder"):
            read_ratings(tmp_path)

    def test_parts_with_different_columns(self, tmp_path: Path) -> None:
        self.table.write_parquet(tmp_path / "a.parquet")
        self.table.drop("rating").write_parquet(tmp_path / "b.parquet")
        with pytest.raises(InputError, match=r"b\.parquet: the columns user, item differ from those of a\.parquet"):
            read_ratings(tmp_path, rating_range=RANGE)

    def test_parts_with_different_ids(self, tmp_path: Path) -> None:
        self.table.write_parquet(tmp_path / "a.parquet")
        self.table.with_columns(user=pl.lit(1)).write_parquet(tmp_path / "b.parquet")
        with pytest.raises(InputError, match=r"b\.parquet, row 0 .*column 'user': mixed id types: 1 is an integer"):
            read_ratings(tmp_path, rating_range=(1, 9))
        assert read_ratings(tmp_path, rating_range=(1, 9), ids="string").users.tolist() == ["1", "a", "b"]

    def test_empty(self, tmp_path: Path) -> None:
        self.table[:0].write_parquet(tmp_path / "r.parquet")
        with pytest.raises(InputError, match="there are columns but no row of data"):
            read("r.parquet", tmp_path)

    def test_text_that_stands_for_integers(self, tmp_path: Path) -> None:
        pl.DataFrame({"user": ["10", "9"], "item": [1, 1]}).write_parquet(tmp_path / "r.parquet")
        assert read_ratings(tmp_path / "r.parquet").users.tolist() == ["10", "9"]
        assert read_ratings(tmp_path / "r.parquet", ids="integer").users.tolist() == [9, 10]

    def test_a_name_with_wildcards(self, tmp_path: Path) -> None:
        self.table.write_parquet(tmp_path / "r[1]*.parquet")
        assert read("r[1]*.parquet", tmp_path, rating_range=(1, 9)).n_ratings == 3


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"9,1,3\n")


def touch_up(path: Path) -> None:
    """Another rating in place of one, the same size."""
    with path.open("r+b") as file:
        file.seek(-2, os.SEEK_END)
        file.write(b"5")


def replace_by_another(path: Path) -> None:
    """The same size and time: only the inode differs."""
    facts = path.stat()
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    other.replace(path)


CHANGES = {
    "grown": grow,
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "same size": touch_up,
    "replaced": replace_by_another,
    "gone": Path.unlink,
}
CHANGED = "changed while it was read: wait until it is complete, or read a copy of it"


def change_while_reading(patch: pytest.MonkeyPatch, module: str, change: Callable[[], object]) -> None:
    """Have the change happen after the first of several batches."""
    kind = {"text": text_module.TextSource, "parquet": parquet_module.ParquetSource}[module]
    batches = kind.batches

    def interleaved(source: Any, bad: BadRows) -> Iterator[Any]:
        for number, batch in enumerate(batches(source, bad)):
            yield batch
            if number == 0:
                change()

    patch.setattr(kind, "batches", interleaved)
    patch.setattr(text_module, "BLOCK_BYTES", 1000)
    patch.setattr(parquet_module, "BATCH_ROWS", 100)


class TestFilesThatChange:
    @pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
    def test_text(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]) -> None:
        path = write(tmp_path, MANY)
        os.utime(path, (1, 1))  # long ago, for the clock of a file system may be coarse
        change_while_reading(monkeypatch, "text", lambda: change(path))
        with pytest.raises(InputError, match=CHANGED) as error:
            read("r.csv", tmp_path, on_bad_rows="drop")
        assert str(path) in str(error.value)

    @pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
    @pytest.mark.parametrize("in_folder", [False, True])
    def test_parquet(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], in_folder: bool
    ) -> None:
        frame = pl.DataFrame({"user": np.arange(1000), "item": 1, "rating": 3.0})
        paths = [tmp_path / "part-0.parquet", tmp_path / "part-1.parquet"]
        for path in paths:
            frame.write_parquet(path)
            os.utime(path, (1, 1))
        change_while_reading(monkeypatch, "parquet", lambda: change(paths[in_folder]))
        with pytest.raises(InputError, match=CHANGED):
            read_ratings(tmp_path if in_folder else paths[0], rating_range=RANGE)

    def test_another_part(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        frame = pl.DataFrame({"user": np.arange(1000), "item": 1})
        frame.write_parquet(tmp_path / "part-0.parquet")
        change_while_reading(monkeypatch, "parquet", lambda: frame.write_parquet(tmp_path / "part-1.parquet"))
        with pytest.raises(InputError, match=CHANGED):
            read_ratings(tmp_path)
        monkeypatch.undo()
        assert read_ratings(tmp_path).n_ratings == 1000

    def test_other_files_may_change(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write(tmp_path, MANY)
        change_while_reading(monkeypatch, "text", (tmp_path / "other.csv").touch)
        assert read("r.csv", tmp_path).n_ratings == 1000
        assert path.exists()
