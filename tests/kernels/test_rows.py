import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpals.kernels.rows import row_sums


@given(st.lists(st.lists(st.floats(-1e6, 1e6), max_size=5), max_size=8))
def test_each_sum_depends_on_its_row_alone(rows):
    indptr = np.cumsum([0, *map(len, rows)])
    values = np.array([value for row in rows for value in row])
    alone = [row_sums(np.array([0, len(row)]), np.array(row, float))[0] for row in rows]
    assert row_sums(indptr, values).tolist() == alone
    np.testing.assert_allclose(alone, [sum(row) for row in rows], rtol=1e-12)
