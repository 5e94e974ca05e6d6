"""Blocks from runs do not depend on the ranges in which runs are merged."""

import numpy as np
import pytest

from dpals import Ratings
from dpals.data.blocks import merge as merged_blocks
from dpals.data.blocks.array_file import MappedFile
from dpals.data.blocks.merge import BlockMerger, write_block
from dpals.data.blocks.runs import sort_population
from dpals.data.blocks.user_rows import UserRows
from dpals.kernels.threads import limited_threads


def merge(tmp_path, name, ratings, at_most, copies=1):
    """The blocks of ratings that are in the runs several times."""
    folder, work = tmp_path / name, tmp_path / f"{name} work"
    folder.mkdir()
    work.mkdir()
    runs = sort_population(work, ratings, 25, lambda _: None)
    files = [work / f"run-{number:06}.safetensors" for number in range(runs.n_runs)]
    for copy in range(1, copies):
        for number, file in enumerate(files):
            (work / f"run-{copy * len(files) + number:06}.safetensors").write_bytes(file.read_bytes())
    repeated = type(runs)(work, copies * runs.n_runs, copies * runs.size, runs.facts, runs.report, runs.items)
    return BlockMerger(repeated, folder, at_most).write(lambda *_: None)


def some_ratings(seed=0):
    rng = np.random.default_rng(seed)
    users = (rng.random(400) ** 2 * 50).astype(int)
    return Ratings.from_arrays(users, rng.integers(0, 40, 400), rng.random(400), rating_range=(0, 1))


@pytest.mark.parametrize("at_most", [1, 10, 60, 1000])
def test_they_are_those_of_all_users_at_once(tmp_path, at_most):
    ratings = some_ratings()
    entries, duplicates = merge(tmp_path, "a", ratings, at_most)
    (tmp_path / "once").mkdir()
    blocks = UserRows.of(ratings).split("", at_most)
    assert entries == [write_block(tmp_path / "once", prefix, rows) for prefix, rows in blocks]
    assert duplicates == 0


@pytest.mark.parametrize("copies", [2, 8])
@pytest.mark.parametrize("at_most", [1, 10, 60, 1000])
def test_repeated_rows_make_ranges_smaller_than_blocks(tmp_path, at_most, copies):
    ratings = some_ratings()
    entries, _ = merge(tmp_path, "once", ratings, at_most)
    repeated, duplicates = merge(tmp_path, "several", ratings, at_most, copies)
    assert repeated == entries
    assert duplicates == (copies - 1) * ratings.n_ratings


def test_one_user_with_most_ratings(tmp_path):
    ratings = Ratings.from_arrays([7] * 200 + [1, 2, 3], [*range(200), 0, 0, 0])
    entries, _ = merge(tmp_path, "a", ratings, 3)
    (tmp_path / "once").mkdir()
    blocks = UserRows.of(ratings).split("", 3)
    assert entries == [write_block(tmp_path / "once", prefix, rows) for prefix, rows in blocks]
    alone, _ = merge(tmp_path, "b", Ratings.from_arrays([7] * 200, range(200)), 3)
    assert [entry.prefix for entry in alone] == [""]


def test_threads_change_nothing(tmp_path):
    found = []
    for threads in (1, 2, 5):
        with limited_threads(threads):
            found.append(merge(tmp_path, f"{threads}", some_ratings(), 10))
    assert found[0] == found[1] == found[2]


def test_the_number_of_ranges_is_limited(tmp_path, monkeypatch):
    expected = merge(tmp_path, "a", some_ratings(), 1)
    monkeypatch.setattr(merged_blocks, "_MOST_RANGES", 2)
    assert merge(tmp_path, "b", some_ratings(), 1) == expected


def test_a_block_is_a_file_without_hashes(tmp_path):
    entry = write_block(tmp_path, "", UserRows.of(some_ratings()))
    file = MappedFile(tmp_path / entry.file)
    assert set(file.arrays) == {"indptr", "indices", "values", "users"}
    assert file.digest() == entry.sha256
