"""Users in the order of their hashes, merged and split."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.tables import RANGE, columns, few_rows

from dpals import Ratings
from dpals.data.blocks.user_rows import UserRows, is_sorted, within
from dpals.kernels.hashing import block_hashes

SAME_HASH = ["-1", "18446744073709551615"]
"""Different ids whose hashes are equal."""


def known(rows, items):
    """Each user's id and rows, to the last bit."""
    starts = rows.indptr.tolist()
    entries = list(zip(items[rows.indices].tolist(), rows.values.tolist(), rows.timestamps.tolist(), strict=True))
    return [(user, entries[starts[at] : starts[at + 1]]) for at, user in enumerate(rows.users.tolist())]


def ratings_of(rows, catalogue):
    users, items, values, times = columns(rows)
    return Ratings.from_arrays(users, items, values, timestamps=times, rating_range=RANGE, catalogue=catalogue)


@given(few_rows(), st.integers(0, 2**32))
def test_parts_merge_to_the_whole_in_any_order(table, seed):
    catalogue = sorted({row[1] for row in table})
    whole = ratings_of(table, catalogue)
    owner = np.random.default_rng(seed).integers(0, 3, len(table))
    parts = [[row for row, part in zip(table, owner, strict=True) if part == number] for number in range(3)]
    pieces = [UserRows.of(ratings_of(part, catalogue)) for part in parts if part]
    pieces = [
        UserRows(p.hashes, p.users.astype(whole.users.dtype), p.indptr, p.indices, p.values, p.timestamps)
        for p in pieces
    ]
    expected = sorted(known(whole, whole.items), key=lambda one: (block_hashes(np.array([one[0]]))[0], one[0]))
    assert known(UserRows.merged(pieces), whole.items) == expected
    assert known(UserRows.merged(pieces[::-1]), whole.items) == expected


def test_ids_with_the_same_hash_are_told_apart():
    assert len(set(block_hashes(np.array(SAME_HASH)).tolist())) == 1
    parts = [
        UserRows.of(Ratings.from_arrays(users, ["a"] * len(users)))
        for users in (SAME_HASH, SAME_HASH[::-1], ["7", SAME_HASH[1]])
    ]
    merged = UserRows.merged(parts)
    assert sorted(merged.users.tolist()) == sorted([*SAME_HASH, "7"])
    assert [user for user in merged.users.tolist() if user in SAME_HASH] == SAME_HASH
    assert merged.n_ratings == 3
    assert is_sorted(merged.hashes, merged.users)
    assert not is_sorted(merged.hashes[::-1], merged.users[::-1])
    alone = UserRows.merged([UserRows.of(Ratings.from_arrays(SAME_HASH * 2, ["a", "a", "b", "b"]))])
    assert [block.n_users for _, block in alone.split("", 1)] == [2]
    assert not is_sorted(alone.hashes, alone.users[::-1])


@pytest.mark.parametrize("at_most", [1, 2, 5, 20, 1000])
def test_blocks_are_halves_of_halves_and_no_larger_than_need_be(at_most):
    rng = np.random.default_rng(0)
    rows = UserRows.of(Ratings.from_arrays(rng.integers(0, 60, 300), rng.integers(0, 30, 300)))
    blocks = rows.split("", at_most)
    assert np.concatenate([block.users for _, block in blocks]).tolist() == rows.users.tolist()
    assert np.concatenate([block.indices for _, block in blocks]).tolist() == rows.indices.tolist()
    for prefix, block in blocks:
        assert block.n_ratings <= at_most or block.n_users == 1
        assert block.indptr[0] == 0
        assert {f"{number:064b}"[: len(prefix)] for number in block.hashes.tolist()} == {prefix}
        start, stop = within(rows.hashes, prefix[:-1])
        if prefix:  # one bit less would have been too much
            assert rows.indptr[stop] - rows.indptr[start] > at_most
            assert stop - start > 1


def test_users_without_rows_stay():
    ratings = Ratings.from_arrays([1, 2], ["tea", "gin"], catalogue=["tea"], on_unknown_items="drop")
    rows = UserRows.of(ratings)
    assert sorted(rows.users.tolist()) == [1, 2]
    assert sorted(UserRows.merged([rows, rows]).users.tolist()) == [1, 2]


def test_prefixes_of_sorted_hashes():
    hashes = np.array([0, 2**62, 2**63, 2**64 - 1], np.uint64)
    assert [within(hashes, prefix) for prefix in ("", "0", "00", "01", "1", "1" * 64)] == [
        (0, 4),
        (0, 2),
        (0, 1),
        (1, 2),
        (2, 4),
        (3, 4),
    ]
