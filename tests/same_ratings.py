"""Comparison of two `Ratings`, array by array."""

import numpy as np

from dpals import Ratings


def assert_same_arrays(a: Ratings, b: Ratings) -> None:
    for field in ("indptr", "indices", "values", "timestamps", "users", "items"):
        left, right = getattr(a, field), getattr(b, field)
        if left is None or right is None:
            assert left is right
        else:
            assert left.dtype == right.dtype, field
            np.testing.assert_array_equal(left, right)
