"""Sources and what may be declared about them."""

import os

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from dpals import InputError, Ratings, write_blocks
from dpals.data.bad_rows import BadRows
from dpals.data.blocks.source import BlockSource
from dpals.data.columns import ColumnOptions

FRAME = pl.DataFrame({"user": [1, 2], "item": [1, 1]})
RATINGS = Ratings.from_frame(FRAME)


def source(table, *, options=None, rating_range=None, catalogue=None, bad=None, ids="auto"):
    return BlockSource(table, options or ColumnOptions(), rating_range, catalogue, bad or BadRows("error"), ids)


def test_users_without_ids_are_refused(tmp_path):
    anonymous = Ratings.from_csr(csr_array([[1, 0], [1, 1]]), implicit=True)
    with pytest.raises(InputError, match=r"these users have no ids.*users=\.\.\."):
        write_blocks(anonymous, tmp_path / "blocks")
    assert not (tmp_path / "blocks").exists()
    named = Ratings.from_csr(csr_array([[1, 0], [1, 1]]), implicit=True, users=["a", "b"])
    assert write_blocks(named, tmp_path / "blocks").n_users == 2


@pytest.mark.parametrize("argument", [{"rating_range": (1, 5)}, {"catalogue": [1]}, {"user": "user"}])
def test_ratings_are_declared_already(tmp_path, argument):
    with pytest.raises(InputError, match="ratings and blocks have their columns, range and catalogue already"):
        write_blocks(RATINGS, tmp_path / "blocks", **argument)


@pytest.mark.parametrize("argument", [{"columns": ["user", "item"]}, {"separator": ","}])
def test_frames_have_their_columns(tmp_path, argument):
    with pytest.raises(InputError, match="columns and separator are for text files"):
        write_blocks(FRAME, tmp_path / "blocks", **argument)


def test_what_is_no_table_is_refused(tmp_path):
    with pytest.raises(InputError, match="expected a pandas or polars frame or an Arrow table, not int"):
        write_blocks(7, tmp_path / "blocks")
    with pytest.raises(InputError, match="No such file"):
        write_blocks(tmp_path / "nowhere.csv", tmp_path / "blocks")
    with pytest.raises(InputError, match='ids must be "auto"'):
        write_blocks(FRAME, tmp_path / "blocks", ids="numbers")
    (tmp_path / "empty.csv").write_text("user,item\n")
    with pytest.raises(InputError, match="columns but no row"):
        write_blocks(tmp_path / "empty.csv", tmp_path / "blocks")
    assert not (tmp_path / "blocks").exists()


def test_ids_of_a_frame_can_be_declared(tmp_path):
    blocks = write_blocks(FRAME, tmp_path / "blocks", ids="string")
    assert blocks.facts.user_ids == "text"


def test_tables_in_memory_have_no_identity():
    assert source(FRAME).identity(1, False) is None
    assert source(RATINGS).identity(1, False) is None


def test_files_and_facts_have_one(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("user,item\n1,1\n")
    first = source(file).identity(5, False)
    assert source(str(file)).identity(5, False) == first
    others = [
        source(file).identity(6, False),
        source(file).identity(5, True),
        source(file, ids="integer").identity(5, False),
        source(file, rating_range=(1, 5)).identity(5, False),
        source(file, catalogue=np.array([1])).identity(5, False),
        source(file, catalogue=np.array([2])).identity(5, False),
        source(file, bad=BadRows("drop")).identity(5, False),
        source(file, bad=BadRows("error", "drop")).identity(5, False),
        source(file, options=ColumnOptions(user="who")).identity(5, False),
    ]
    os.utime(file, ns=(1, 1))
    others.append(source(file).identity(5, False))
    assert first not in others
    assert len({repr(one) for one in others}) == len(others)
