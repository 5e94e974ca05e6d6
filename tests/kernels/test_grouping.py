"""The sort against a dictionary that remembers the latest row of each pair."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpals.kernels.grouping import order_by_user_and_item, take

rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(-3, 3)), max_size=60)


@given(rows, st.booleans())
def test_order_is_that_of_a_dictionary(table: list[tuple[int, int, int]], with_timestamps: bool) -> None:
    latest: dict[tuple[int, int], int] = {}
    for row, (user, item, stamp) in enumerate(table):
        before = latest.get((user, item))
        if before is None or not with_timestamps or stamp >= table[before][2]:
            latest[user, item] = row
    expected = [latest[pair] for pair in sorted(latest)]

    users, items = (np.array([entry[at] for entry in table], np.int32) for at in (0, 1))
    stamps = np.array([entry[2] for entry in table], np.int64) if with_timestamps else None
    indptr, order = order_by_user_and_item(users, items, stamps, n_users=6)

    assert order.tolist() == expected
    per_user = [sum(user == pair[0] for pair in latest) for user in range(6)]
    assert np.diff(indptr).tolist() == per_user


def test_take_crosses_blocks() -> None:
    rows = np.random.default_rng(0).integers(0, 1000, 2**20 + 7).astype(np.int32)
    values = np.arange(1000.0)
    np.testing.assert_array_equal(take(values, rows), values[rows])
