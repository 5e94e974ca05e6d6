"""Files of every format against the arrays they were written from."""

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.tables import RANGE, Table, as_text, assert_same, from_table, tables, write, write_csv

from dpals import InputError, read_ratings
from dpals.data import id_encoder
from dpals.data import text_file as text_module


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
        patch.setattr(text_module, "CHUNK_BYTES", block)
        patch.setattr(id_encoder, "_CHUNK", 3)
        assert_same(read_ratings(path, rating_range=RANGE), from_table(as_text(table)))


def test_type_of_ids_can_be_chosen(tmp_path: Path) -> None:
    path = write(tmp_path, "user,item\n1,5\nb,5\n")
    assert read_ratings(path, ids="string").users.tolist() == ["1", "b"]
    with pytest.raises(InputError, match='ids must be "auto"'):
        read_ratings(path, ids="text")  # type: ignore[arg-type]


@pytest.mark.parametrize("statement", ["import dpals", "from dpals import Ratings, read_ratings"])
def test_import_is_light(statement: str) -> None:
    heavy = ("polars", "numba", "scipy")
    code = f"import sys; {statement}; print([name for name in {heavy} if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout == "[]\n"
