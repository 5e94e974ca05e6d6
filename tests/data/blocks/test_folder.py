"""Blocks that are what the manifest says are opened; everything else is refused."""

import json
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest

import dpals
from dpals import InputError, Ratings, open_blocks, write_blocks
from dpals.data.blocks.array_file import MappedFile, content_of
from dpals.data.blocks.manifest import Manifest, read_manifest
from dpals.data.blocks.merge import write_block
from dpals.data.blocks.user_rows import UserRows
from dpals.kernels.hashing import block_hashes


@pytest.fixture
def ratings():
    return dpals.simulate.movielens_like(60, 100, 30, seed=0)


@pytest.fixture
def folder(ratings, tmp_path):
    write_blocks(ratings, tmp_path / "blocks", ratings_per_block=200)
    return tmp_path / "blocks"


def rewrite(folder, entries):
    """Another manifest for the same folder, itself undamaged."""
    before = read_manifest(folder)
    Manifest(before.facts, before.items, before.report, tuple(entries)).write(folder)


def test_it_says_what_it_holds(folder, ratings):
    blocks = open_blocks(folder)
    sizes = repr(ratings).removeprefix("Ratings(").removesuffix(")")
    assert repr(blocks) == f"Blocks({sizes}, in {len(blocks.blocks)} blocks)"
    assert len(blocks.blocks) > 4
    assert sum(part.n_users for part in blocks) == blocks.n_users == 60
    assert not blocks.anonymous


def test_blocks_can_be_sent(folder):
    for block in open_blocks(folder).blocks:
        sent = pickle.dumps(block)
        assert len(sent) < 2000
        assert pickle.loads(sent).open().users.tolist() == block.open().users.tolist()


def test_arrays_are_views_of_the_file(folder):
    for part in open_blocks(folder):
        for array in (part.indptr, part.indices, part.values):
            assert not array.flags.owndata
            assert not array.flags.writeable
        assert part.items is open_blocks(folder).items


def test_names_are_the_digests_of_the_files(folder):
    for block in open_blocks(folder).blocks:
        assert MappedFile(block.path).digest() == block.name


def test_a_file_is_read_whole_once_for_each_state(folder, monkeypatch):
    block = open_blocks(folder).blocks[0]
    read = []
    real = MappedFile.digest
    monkeypatch.setattr(MappedFile, "digest", lambda self: read.append(self.path) or real(self))
    block.open()
    block.open()
    assert read == [block.path]
    os.utime(block.path)
    block.open()
    assert read == [block.path] * 2


def test_a_flipped_byte_is_noticed_wherever_it_is(folder):
    block = open_blocks(folder).blocks[0]
    content = block.path.read_bytes()
    for at in (0, 9, len(content) // 2, len(content) - 1):
        damaged = bytearray(content)
        damaged[at] ^= 1
        block.path.write_bytes(damaged)
        with pytest.raises(InputError, match="is damaged, or is another file than was written"):
            block.open()
    block.path.write_bytes(content)
    block.open()


def test_damage_after_the_first_opening_is_noticed(folder):
    block = open_blocks(folder).blocks[0]
    block.open()
    content = bytearray(block.path.read_bytes())
    content[-1] ^= 1
    block.path.write_bytes(content)
    with pytest.raises(InputError, match="is damaged"):
        block.open()


def test_blocks_that_were_swapped_are_noticed(folder):
    first, second = (block.path for block in open_blocks(folder).blocks[:2])
    contents = first.read_bytes(), second.read_bytes()
    first.write_bytes(contents[1])
    second.write_bytes(contents[0])
    for block in open_blocks(folder).blocks[:2]:
        with pytest.raises(InputError, match="another file than was written"):
            block.open()


def test_a_missing_block_is_noticed(folder):
    blocks = open_blocks(folder)
    blocks.blocks[1].path.unlink()
    with pytest.raises(InputError, match=r"is missing\. Write the blocks again"):
        open_blocks(folder)
    with pytest.raises(InputError, match=r"is missing\. Write the blocks again"):
        blocks.blocks[1].open()


def test_users_in_the_wrong_block_are_noticed(folder):
    first, second, *others = read_manifest(folder).blocks
    wrong = [type(first)(**{**vars(one), "prefix": other.prefix}) for one, other in ((first, second), (second, first))]
    rewrite(folder, [wrong[1], wrong[0], *others])
    for block in open_blocks(folder).blocks[:2]:
        with pytest.raises(InputError, match="has users who belong to another block"):
            block.open()


def test_users_out_of_order_are_noticed(folder):
    first, *others = read_manifest(folder).blocks
    arrays = MappedFile(folder / first.file).arrays
    hashes = block_hashes(arrays["users"])
    order = np.arange(first.n_users)[::-1]
    columns = (arrays["indptr"], arrays["indices"], arrays["values"], None)
    forged = UserRows(hashes[order], arrays["users"][order], *columns)
    rewrite(folder, [write_block(folder, first.prefix, forged), *others])
    with pytest.raises(InputError, match="has users who belong to another block"):
        open_blocks(folder).blocks[0].open()


@pytest.mark.parametrize("count", ["n_users", "n_ratings"])
def test_another_size_is_noticed(folder, count):
    first, *others = read_manifest(folder).blocks
    rewrite(folder, [type(first)(**{**vars(first), count: getattr(first, count) + 1}), *others])
    with pytest.raises(InputError, match="has another size than the manifest says"):
        open_blocks(folder).blocks[0].open()


def test_blocks_that_overlap_are_refused(folder):
    first, *others = read_manifest(folder).blocks
    for entries in ([first, first, *others], [*others, first], [type(first)(**{**vars(first), "prefix": ""}), *others]):
        rewrite(folder, entries)
        with pytest.raises(InputError, match="blocks overlap"):
            open_blocks(folder)


def test_another_catalogue_is_refused(folder):
    file = next(folder.glob("items-*.safetensors"))
    file.write_bytes(b"".join(content_of({"items": np.arange(100) + 7})))
    with pytest.raises(InputError, match="is not the catalogue that the blocks were written with"):
        open_blocks(folder)
    file.unlink()
    with pytest.raises(InputError, match=r"items-\w+\.safetensors is missing"):
        open_blocks(folder)


def test_other_files_are_ignored(folder):
    before = open_blocks(folder).blocks
    (folder / f"block-{'0' * 16}.safetensors").write_bytes(b"foreign")
    (folder / "notes.json").write_text(json.dumps({"format": 9}))
    assert open_blocks(folder).blocks == before


def test_a_folder_that_was_moved_opens(folder, tmp_path, monkeypatch):
    folder.rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path)
    blocks = open_blocks("moved")
    monkeypatch.chdir("/")
    assert sum(part.n_users for part in blocks) == 60


@pytest.mark.parametrize("users", [["b", "é", "\U0001f600" * 40], [3, -1, 2**40], [2**64 - 1, 5, 2**63]])
def test_ids_of_every_type_come_back(tmp_path, users):
    numbers = np.uint64 if users[0] == 2**64 - 1 else np.int64
    ids = np.array(users, np.dtypes.StringDType() if isinstance(users[0], str) else numbers)
    blocks = write_blocks(Ratings.from_arrays(ids, [1, 2, 3]), tmp_path / "blocks", ratings_per_block=1)
    assert sorted(user for part in blocks for user in part.users.tolist()) == sorted(users)
    assert {part.users.dtype for part in blocks} == {ids.dtype}


def test_folders_cannot_be_joined_so_that_users_count_twice(tmp_path):
    january, february = (
        dpals.write_blocks(dpals.Ratings.from_arrays([1, 2], [item, item], catalogue=[5, 6]), tmp_path / str(item))
        for item in (5, 6)
    )
    with pytest.raises(dpals.InputError, match="users could count twice"):
        replace(january, blocks=january.blocks + february.blocks)


def test_a_block_is_checked_again_for_other_facts(tmp_path):
    """A range that was edited later must not pass because the file was seen before."""
    blocks = dpals.write_blocks(dpals.Ratings.from_arrays([1], [5], [4.0], rating_range=(1, 5)), tmp_path / "blocks")
    (block,) = blocks.blocks
    block.open()
    with pytest.raises(dpals.InputError, match="rating range"):
        replace(block, facts=replace(block.facts, rating_range=(1.0, 3.0))).open()
