"""Files of arrays, read by the safetensors library and mapped by ours."""

import errno

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load

from dpals import InputError
from dpals.data.blocks.array_file import (
    MappedFile,
    content_of,
    digest_of,
    full_disk_explained,
    store_ids,
    stored_ids,
    write_content,
)

ARRAYS = {
    "indices": np.array([3, 1, 2], np.int32),
    "users": np.array([2**64 - 1], np.uint64),
    "text": np.array([1, 2, 3, 4, 5], np.uint8),
    "indptr": np.array([0, 3]),
    "values": np.array([0.5, 1, 1.5], np.float32),
    "none": np.empty(0, np.int64),
}


def test_the_safetensors_library_reads_the_same_arrays(tmp_path):
    content = content_of(ARRAYS, {"note": "a b"})
    write_content(tmp_path / "a", content)
    theirs, ours = load((tmp_path / "a").read_bytes()), MappedFile(tmp_path / "a")
    for name, array in ARRAYS.items():
        for found in (theirs[name], ours.arrays[name]):
            assert found.dtype == array.dtype
            np.testing.assert_array_equal(found, array)
    assert ours.about == {"note": "a b"}
    assert ours.digest() == digest_of(content)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_mapped_arrays_are_aligned_and_cannot_be_written(tmp_path):
    write_content(tmp_path / "a", content_of(ARRAYS))
    for array in MappedFile(tmp_path / "a").arrays.values():
        assert array.flags.aligned
        assert not array.flags.writeable


def test_the_order_of_arrays_changes_nothing():
    assert digest_of(content_of(ARRAYS)) == digest_of(content_of(dict(reversed(ARRAYS.items()))))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=8), st.data())
def test_text_ids_come_back_whole_or_in_part(texts, data):
    stored = store_ids("users", np.array(texts, np.dtypes.StringDType()))
    assert stored_ids(stored, "users").tolist() == texts
    start = data.draw(st.integers(0, len(texts)))
    stop = data.draw(st.integers(start, len(texts)))
    assert stored_ids(stored, "users", start, stop).tolist() == texts[start:stop]


def test_integer_ids_are_kept_as_they_are():
    ids = np.array([5, 2**64 - 1], np.uint64)
    assert stored_ids(store_ids("users", ids), "users", 1, 2).tolist() == [2**64 - 1]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere is missing"):
        MappedFile(tmp_path / "nowhere")


@pytest.mark.parametrize("damage", [b"", b"\xff" * 8, b"\x05" + b"\0" * 7 + b"{not}"])
def test_what_is_not_such_a_file_is_damaged(tmp_path, damage):
    (tmp_path / "a").write_bytes(damage)
    with pytest.raises(InputError, match="a is damaged"):
        MappedFile(tmp_path / "a").arrays  # noqa: B018


def test_a_file_that_was_cut_short_is_damaged(tmp_path):
    write_content(tmp_path / "a", content_of(ARRAYS))
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:-4])
    with pytest.raises(InputError, match="a is damaged"):
        MappedFile(tmp_path / "a").arrays  # noqa: B018


def test_a_full_disk_is_explained(tmp_path):
    with (
        pytest.raises(OSError, match="No space left on device") as raised,
        full_disk_explained(tmp_path),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(tmp_path))
    assert "Free some space and write the blocks again" in raised.value.__notes__[0]
    with pytest.raises(PermissionError), full_disk_explained(tmp_path):
        raise PermissionError(errno.EACCES, "no")
