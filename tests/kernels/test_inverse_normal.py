import math

import mpmath
import numpy as np

from dpals.kernels.inverse_normal import INVERSE_NORMAL_ERROR, upper_quantile


def exact_quantile(p):
    """The z with P(Z > z) = p, in 50 digits."""
    with mpmath.workdps(50):
        return mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * p)


def test_the_stated_error_holds_with_room():
    rng = np.random.default_rng(0)
    near = np.linspace(-1e-9, 1e-9, 25)
    points = np.concatenate(
        [
            rng.uniform(0, 0.5, 400),
            10 ** rng.uniform(-19.2, -0.4, 400),
            0.5 - 10 ** rng.uniform(-16, -1, 100),
            0.075 + near,  # where the formulas change
            math.exp(-25) * (1 + near),
            [2.0**-64, 0.5],
        ]
    )
    for p in points:
        z = exact_quantile(mpmath.mpf(p))
        assert abs(upper_quantile(p) - z) <= INVERSE_NORMAL_ERROR / 8 * max(1, z)
