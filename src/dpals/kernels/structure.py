"""Whether arrays form a sparse matrix, in one pass: it is checked each time that a block of users is opened."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_FINE, _POINTERS, _OUTSIDE, _ORDER, _VALUES = range(5)
_PROBLEMS = {_POINTERS: "pointers", _OUTSIDE: "outside", _ORDER: "order", _VALUES: "values"}


def problem_of(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    n_columns: int,
    values: NDArray[np.float32] | None = None,
    limits: tuple[float, float] = (0.0, 0.0),
) -> str | None:
    """What is wrong with a sparse matrix; None if nothing is.

    ==============  ===========================================================================
    "pointers"      `indptr` does not rise from 0 to the number of entries
    "outside"       an index is below 0 or not below `n_columns`
    "order"         the indices of a row do not strictly increase
    "values"        a value is below or above the limits in single precision, or not a number
    ==============  ===========================================================================

    Examples
    --------
    >>> problem_of(np.array([0, 2]), np.array([4, 4], np.int32), 5)
    'order'
    """
    low, high = np.float32(limits[0]), np.float32(limits[1])
    given = np.empty(0, np.float32) if values is None else values
    return _PROBLEMS.get(_problem(indptr, indices, n_columns, given, low, high))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _problem(indptr: Any, indices: Any, n_columns: Any, values: Any, low: Any, high: Any) -> Any:
    if len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != len(indices):
        return _POINTERS
    for row in range(len(indptr) - 1):
        if indptr[row + 1] < indptr[row]:
            return _POINTERS
    for row in range(len(indptr) - 1):
        before = np.int32(-1)
        for entry in range(indptr[row], indptr[row + 1]):
            index = indices[entry]
            if index < 0 or index >= n_columns:
                return _OUTSIDE
            if index <= before:
                return _ORDER
            before = index
    for entry in range(len(values)):
        if not (values[entry] >= low and values[entry] <= high):
            return _VALUES
    return _FINE
