"""The sort against a dictionary that remembers the latest, then highest, row of each pair."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpals.kernels.grouping import order_by_user_and_item, take

rows = st.lists(st.tuples(*(st.integers(0, 5),) * 2, *(st.integers(-3, 3),) * 2), max_size=60)


@given(rows, st.booleans(), st.booleans())
def test_order_is_that_of_a_dictionary(
    table: list[tuple[int, int, int, int]], with_timestamps: bool, with_values: bool
) -> None:
    kept: dict[tuple[int, int], tuple[int, int]] = {}
    for user, item, stamp, value in table:
        key = stamp * with_timestamps, value * with_values
        kept[user, item] = max(key, kept.get((user, item), key))

    users, items = (np.array([entry[at] for entry in table], np.int32) for at in (0, 1))
    stamps = np.array([entry[2] for entry in table], np.int64) if with_timestamps else None
    values = np.array([entry[3] for entry in table], np.float32) if with_values else None
    indptr, order = order_by_user_and_item(users, items, stamps, values, n_users=6)

    found = {table[row][:2]: (table[row][2] * with_timestamps, table[row][3] * with_values) for row in order}
    assert list(found.items()) == sorted(kept.items())
    assert len(order) == len(found)
    per_user = [sum(user == pair[0] for pair in kept) for user in range(6)]
    assert np.diff(indptr).tolist() == per_user


def test_take_crosses_blocks() -> None:
    rows = np.random.default_rng(0).integers(0, 1000, 2**20 + 7).astype(np.int32)
    values = np.arange(1000.0)
    np.testing.assert_array_equal(take(values, rows), values[rows])
