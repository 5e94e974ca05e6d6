import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpals.private.clipping import clip_entries, clip_rows

shapes = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6)
matrices = hnp.arrays(np.float64, shapes, elements=st.floats(-1e6, 1e6, allow_subnormal=False))
bounds = st.floats(1e-3, 1e4)


@given(matrices, bounds)
def test_no_row_is_longer_than_the_bound_and_short_rows_keep_their_bits(rows, largest):
    clipped = clip_rows(rows, largest)
    norms = np.linalg.norm(rows, axis=1)
    assert (np.linalg.norm(clipped, axis=1) <= largest * (1 + 1e-12)).all()
    short = norms < largest * (1 - 1e-12)
    assert np.array_equal(clipped[short], rows[short])


@given(matrices, bounds)
def test_long_rows_get_the_norm_of_the_bound_and_keep_their_direction(rows, largest):
    long = np.linalg.norm(rows, axis=1) > largest * (1 + 1e-9)
    clipped, before = clip_rows(rows, largest)[long], rows[long]
    np.testing.assert_allclose(np.linalg.norm(clipped, axis=1), largest, rtol=1e-12)
    along = (clipped * before).sum(axis=1)
    np.testing.assert_allclose(along, largest * np.linalg.norm(before, axis=1), rtol=1e-10)


def test_zero_stays_zero():
    assert np.array_equal(clip_rows(np.zeros((3, 4)), 0.5), np.zeros((3, 4)))


def test_an_example_by_hand():
    rows = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, -10.0]])
    np.testing.assert_allclose(clip_rows(rows, 1.0), [[0.6, 0.8], [0.3, 0.4], [0.0, -1.0]], rtol=1e-15)


@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (0, 0)])
def test_nothing_to_clip(shape):
    assert clip_rows(np.zeros(shape, np.float32), 1.0).shape == shape


def test_single_precision_comes_out_in_double():
    rows = np.array([[0.1, 0.2]], np.float32)
    clipped = clip_rows(rows, 1.0)
    assert clipped.dtype == np.float64
    assert np.array_equal(clipped, rows)


@given(hnp.arrays(np.float32, st.integers(0, 20), elements=st.floats(-100, 100, width=32)), bounds)
def test_entries_are_cut_to_the_bound_and_others_are_left_alone(values, largest):
    clipped = clip_entries(values, largest)
    for before, after in zip(values.tolist(), clipped.tolist(), strict=True):
        if abs(before) <= largest:
            assert after == before
        else:
            assert after == (largest if before > 0 else -largest)
