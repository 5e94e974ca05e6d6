"""Users in the order of their hashes with their rows: how runs and blocks of users are stored, merged and split.

A block is all users whose hash begins with a *prefix*, bits that are written as text: "" for all users, "0" and "1" for
either half of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpals.data.blocks.array_file import store_ids
from dpals.data.ids import is_text
from dpals.data.rating_arrays import RatingArrays
from dpals.kernels.grouping import order_by_user_and_item, take
from dpals.kernels.hashing import block_hashes

HASH_BITS = 64


def within(hashes: NDArray[np.uint64], prefix: str) -> tuple[int, int]:
    """Where the hashes that begin with a prefix start and stop among sorted ones.

    Examples
    --------
    >>> within(np.array([1, 2**63, 2**64 - 1], np.uint64), "1")
    (1, 3)
    """
    low, high = (np.uint64(int(prefix.ljust(HASH_BITS, bit), 2)) for bit in "01")
    return int(np.searchsorted(hashes, low)), int(np.searchsorted(hashes, high, side="right"))


def fits(n_users: int, n_ratings: int, ratings_per_block: int) -> bool:
    """Whether so many users and ratings make one block. There are more users than ratings where some have none."""
    return n_users <= 1 or max(n_users, n_ratings) <= ratings_per_block


@dataclass(frozen=True, eq=False)
class UserRows:
    """Some users, sorted by hash and then by id, and the rows of each, sorted by item."""

    hashes: NDArray[np.uint64]
    users: NDArray[Any]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32] | None
    timestamps: NDArray[np.int64] | None

    @classmethod
    def of(cls, ratings: RatingArrays) -> Self:
        """The users of ratings.

        Examples
        --------
        >>> from dpals import Ratings
        >>> UserRows.of(Ratings.from_arrays([7, 8, 8, 9], [1, 1, 2, 2])).users.tolist()
        [7, 9, 8]
        """
        hashes = block_hashes(ratings.users)
        order, _ = _by_hash(hashes, ratings.users)
        lengths = np.diff(ratings.indptr)[order]
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.repeat(ratings.indptr[:-1][order] - indptr[:-1], lengths) + np.arange(indptr[-1])
        values, times = ratings.values, ratings.timestamps
        return cls(
            hashes[order],
            ratings.users[order],
            indptr,
            ratings.indices[entries],
            None if values is None else values[entries],
            None if times is None else times[entries],
        )

    @classmethod
    def merged(cls, parts: "Sequence[UserRows]") -> Self:
        """Users from several parts, each with the rows from all of them.

        Formal guarantee (docs/privacy.md, step 10): what becomes of a user's rows is a function of the set of these
        rows, as in `kernels.grouping.order_by_user_and_item`.
        """
        hashes, users = _joined([part.hashes for part in parts]), _joined([part.users for part in parts])
        order, is_new = _by_hash(hashes, users)
        number = np.empty(len(order), np.int32)
        number[order] = np.cumsum(is_new, dtype=np.int32) - np.int32(1)
        items = _joined([part.indices for part in parts])
        values = None if parts[0].values is None else _joined([part.values for part in parts])
        times = None if parts[0].timestamps is None else _joined([part.timestamps for part in parts])
        rows = np.repeat(number, _joined([np.diff(part.indptr) for part in parts]))
        first = order[is_new]
        indptr, kept = order_by_user_and_item(rows, items, times, values, n_users=len(first))
        return cls(
            hashes[first],
            users[first],
            indptr,
            take(items, kept),
            None if values is None else take(values, kept),
            None if times is None else take(times, kept),
        )

    @property
    def n_users(self) -> int:
        return len(self.hashes)

    @property
    def n_ratings(self) -> int:
        return len(self.indices)

    def part(self, start: int, stop: int) -> "UserRows":
        """The users from start to stop."""
        low, high = self.indptr[start], self.indptr[stop]
        return UserRows(
            self.hashes[start:stop],
            self.users[start:stop],
            self.indptr[start : stop + 1] - low,
            self.indices[low:high],
            None if self.values is None else self.values[low:high],
            None if self.timestamps is None else self.timestamps[low:high],
        )

    def split(self, prefix: str, ratings_per_block: int) -> "list[tuple[str, UserRows]]":
        """The blocks that users with a prefix form: halves of halves, until none is too large or all are of one user.

        Examples
        --------
        >>> from dpals import Ratings
        >>> rows = UserRows.of(Ratings.from_arrays([7, 8, 8, 9], [1, 1, 2, 2]))
        >>> [(prefix, block.users.tolist()) for prefix, block in rows.split("", ratings_per_block=2)]
        [('0', [7]), ('10', [9]), ('11', [8])]
        """
        if fits(self.n_users, self.n_ratings, ratings_per_block) or len(prefix) == HASH_BITS:
            return [(prefix, self)] if self.n_users else []
        halves = [prefix + bit for bit in "01"]
        parts = [(half, self.part(*within(self.hashes, half))) for half in halves]
        return [block for half, part in parts for block in part.split(half, ratings_per_block)]

    def stored(self) -> dict[str, NDArray[Any]]:
        """The arrays of a file, without the hashes."""
        arrays: dict[str, NDArray[Any]] = {"indptr": self.indptr, "indices": self.indices}
        if self.values is not None:
            arrays["values"] = self.values
        if self.timestamps is not None:
            arrays["timestamps"] = self.timestamps
        return {**arrays, **store_ids("users", self.users)}


def is_sorted(hashes: NDArray[np.uint64], users: NDArray[Any]) -> bool:
    """Whether users are sorted by hash and then by id, and none is there twice."""
    if np.any(hashes[1:] < hashes[:-1]):
        return False
    return all(users[at] < users[at + 1] for at in np.flatnonzero(hashes[1:] == hashes[:-1]).tolist())


def _by_hash(hashes: NDArray[np.uint64], users: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The order by hash and then by id; and in this order, where another user begins."""
    order = np.argsort(hashes, kind="stable")
    is_new = _differs(hashes[order])
    if is_text(users):
        other_id = _differs(users[order])
        if np.any(other_id & ~is_new):  # different texts with one hash, which almost never happens
            keys = list(zip(hashes.tolist(), users.tolist(), strict=True))
            order = np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)
            other_id = _differs(users[order])
        is_new = other_id
    return order, is_new


def _differs(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a value differs from the one before."""
    return np.concatenate([np.ones(min(1, len(values)), np.bool_), values[1:] != values[:-1]])


def _joined(arrays: Sequence[Any]) -> NDArray[Any]:
    return np.concatenate(arrays) if len(arrays) != 1 else np.asarray(arrays[0])
