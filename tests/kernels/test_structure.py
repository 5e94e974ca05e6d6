"""The compiled pass against plain numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpals.kernels.structure import problem_of


def problems_by_numpy(indptr, indices, n_columns, values, limits):
    """Everything that is wrong, found array by array."""
    if indptr[0] != 0 or indptr[-1] != len(indices) or np.any(np.diff(indptr) < 0):
        return {"pointers"}
    found = set()
    if len(indices) and (indices.min() < 0 or indices.max() >= n_columns):
        found.add("outside")
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    if np.any((np.diff(indices) <= 0) & (np.diff(rows) == 0)):
        found.add("order")
    if values is not None and not np.all((values >= np.float32(limits[0])) & (values <= np.float32(limits[1]))):
        found.add("values")
    return found


@st.composite
def matrices(draw):
    rows = draw(st.lists(st.lists(st.integers(0, 5), unique=True, max_size=4).map(sorted), max_size=5))
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([index for row in rows for index in row], np.int32)
    values = np.array(draw(st.lists(st.just(2.0), min_size=len(indices), max_size=len(indices))), np.float32)
    target = draw(st.sampled_from(["nothing", "indptr", "indices", "values"]))
    if target != "nothing":
        array = {"indptr": indptr, "indices": indices, "values": values}[target]
        if len(array):
            wrong = [-1, 0, 1, 6, 7] if target != "values" else [0.4, 5.1, np.nan, np.inf]
            array[draw(st.integers(0, len(array) - 1))] = draw(st.sampled_from(wrong))
    return indptr, indices, draw(st.sampled_from([values, None]))


@given(matrices())
def test_it_finds_what_numpy_finds(matrix):
    indptr, indices, values = matrix
    expected = problems_by_numpy(indptr, indices, 6, values, (0.5, 5.0))
    found = problem_of(indptr, indices, 6, values, (0.5, 5.0))
    assert found in expected if expected else found is None


@pytest.mark.parametrize("limits", [(0.1, 0.7), (-3e38, 3e38)])
def test_limits_are_in_single_precision(limits):
    values = np.array(limits, np.float32)
    assert problem_of(np.array([0, 2]), np.array([0, 1], np.int32), 2, values, limits) is None


def test_read_only_arrays_are_fine():
    arrays = np.array([0, 1]), np.array([0], np.int32), np.array([1], np.float32)
    for array in arrays:
        array.setflags(write=False)
    assert problem_of(arrays[0], arrays[1], 1, arrays[2], (1, 1)) is None


def test_no_pointers_at_all_are_wrong():
    assert problem_of(np.empty(0, np.int64), np.empty(0, np.int32), 1) == "pointers"
