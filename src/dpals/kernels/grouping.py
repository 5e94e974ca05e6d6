"""Sort ratings by user and item, and keep one row per pair."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_BLOCK = 1 << 20


def order_by_user_and_item(
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    timestamps: NDArray[np.int64] | None,
    values: NDArray[np.float32] | None,
    *,
    n_users: int,
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Sort rows by user, then item, and keep one row of each (user, item).

    Formal guarantee (docs/privacy.md, step 10): what stays of a user depends on the set of that user's rows alone, not
    on their order and not on anybody else's rows. Rows of one (user, item) that are equal in timestamp and value are
    the same row.

    A counting sort by user, then a sort of each user's rows. It needs memory for one row number per row.

    Parameters
    ----------
    users, items
        Index of the user and of the item of each row.
    timestamps, values
        The row with the latest timestamp stays; among equally late rows, the one with the highest value. None if the
        rows have none.
    n_users
        Number of users: every index of a user is below it.

    Returns
    -------
    indptr : array of shape (n_users + 1,)
        User u has the rows ``order[indptr[u]:indptr[u + 1]]``.
    order : array
        Row numbers, without those of duplicates.

    Examples
    --------
    >>> users, items = np.array([1, 0, 1, 1], np.int32), np.array([5, 5, 2, 5], np.int32)
    >>> indptr, order = order_by_user_and_item(users, items, None, np.array([1, 1, 1, 9], np.float32), n_users=2)
    >>> indptr.tolist(), order.tolist()
    ([0, 1, 3], [1, 2, 3])
    """
    row_type = np.int32 if len(users) <= np.iinfo(np.int32).max else np.int64
    order = np.empty(len(users), row_type)
    stamps = np.empty(0, np.int64) if timestamps is None else timestamps
    ratings = np.empty(0, np.float32) if values is None else values
    indptr = _sort(users, items, stamps, ratings, n_users, order)
    return indptr, order[: indptr[-1]]


def take(values: NDArray[Any], rows: NDArray[np.signedinteger]) -> NDArray[Any]:
    """Return ``values[rows]``, computed in blocks because NumPy copies `rows` to 64 bits.

    Examples
    --------
    >>> take(np.array([5, 6, 7]), np.array([2, 0], np.int32))
    array([7, 5])
    """
    taken = np.empty(len(rows), values.dtype)
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        taken[block] = values[rows[block]]
    return taken


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _replaces(row, other, stamps, values):  # type: ignore[no-untyped-def]
    """Whether a row replaces another one of the same user and item: the later one wins, then the higher one."""
    if len(stamps) > 0 and stamps[row] != stamps[other]:
        return stamps[row] > stamps[other]
    return len(values) > 0 and values[row] > values[other]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _sort(users, items, stamps, values, n_users, order):  # type: ignore[no-untyped-def]
    next_place = np.zeros(n_users + 1, np.int64)
    for row in range(len(users)):
        next_place[users[row] + 1] += 1
    for user in range(n_users):
        next_place[user + 1] += next_place[user]
    indptr = next_place.copy()
    for row in range(len(users)):
        user = users[row]
        order[next_place[user]] = row
        next_place[user] += 1

    kept = 0
    begin = 0
    for user in range(n_users):
        end = indptr[user + 1]
        rows = order[begin:end].copy()
        keys = np.empty(len(rows), np.int64)  # the item above, the order of reading below
        for at in range(len(rows)):
            keys[at] = (np.int64(items[rows[at]]) << 32) | at
        keys.sort()
        first_kept = kept
        for key in keys:
            row = rows[key & 0xFFFFFFFF]
            if kept > first_kept and items[order[kept - 1]] == key >> 32:
                if _replaces(row, order[kept - 1], stamps, values):
                    order[kept - 1] = row
            else:
                order[kept] = row
                kept += 1
        begin = end
        indptr[user + 1] = kept
    return indptr
