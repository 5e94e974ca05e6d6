"""Elementary functions against mpmath."""

import mpmath
import numpy as np
import pytest

from dpals.kernels.elementary import exponentials, logarithms, logistic, powers

NUMBERS = np.random.default_rng(0).uniform(-60, 60, 500)


@pytest.mark.parametrize(
    ("ours", "theirs", "points"),
    [
        (exponentials, mpmath.exp, np.append(NUMBERS, [0.0, -700, 700])),
        (logarithms, mpmath.log, np.append(2**NUMBERS, [1.0, 0.5**0.5, 1e-300, 1e300])),
        (logistic, lambda x: 1 / (1 + mpmath.exp(-x)), NUMBERS),
        (lambda x: powers(x, 0.7), lambda x: x ** mpmath.mpf(0.7), np.arange(1, 500)),
        (lambda x: powers(x, -0.3), lambda x: x ** mpmath.mpf(-0.3), 2**NUMBERS),
    ],
)
def test_functions_are_those_of_mpmath(ours, theirs, points):
    expected = [float(theirs(mpmath.mpf(float(point)))) for point in points]
    np.testing.assert_allclose(ours(points), expected, rtol=1e-12, atol=1e-14)


def test_what_is_exact_stays_exact():
    assert powers(np.arange(1, 100), 0.0).tolist() == [1.0] * 99
    assert logistic(np.array([0.0, -1e9, 1e9])).round(12).tolist() == [0.5, 0, 1]
    assert exponentials(np.array([-np.inf, np.inf])).tolist() == exponentials(np.array([-700, 700])).tolist()
