"""The inverse of the normal distribution in floating point, with a bound on its error."""

import numba
import numpy as np

INVERSE_NORMAL_ERROR = 2.0**-47
"""Bound on |computed - true| / max(1, true) of `upper_quantile` for a given float p.

All terms of its polynomials are positive, so at most 40 roundings of 2^-53 add up, which is below 2^-47; the
approximation itself adds 1e-16. The tests measure 2^-50.
"""

# Wichura (1988), algorithm AS 241, PPND16: numerators and denominators, highest power first.
# fmt: off
_MIDDLE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.387132872796366608e0),
    (5.226495278852854561e3, 2.8729085735721942674e4, 3.930789580009271061e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.871870074920579083e2, 4.2313330701600911252e1, 1.0),
)
_TAIL = (
    (7.7454501427834140764e-4, 2.27238449892691845833e-2, 2.4178072517745061177e-1, 1.27045825245236838258e0,
     3.64784832476320460504e0, 5.7694972214606914055e0, 4.6303378461565452959e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 1.51986665636164571966e-2, 1.4810397642748007459e-1,
     6.8976733498510000455e-1, 1.6763848301838038494e0, 2.05319162663775882187e0, 1.0),
)
_FAR_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.2426609473880784386e-3, 2.6532189526576123093e-2,
     2.9656057182850489123e-1, 1.7848265399172913358e0, 5.4637849111641143699e0, 6.6579046435011037772e0),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
     1.48753612908506148525e-2, 1.3692988092273580531e-1, 5.9983220655588793769e-1, 1.0),
)
# fmt: on


@numba.njit(cache=True, nogil=True)
def _ratio(polynomials, x):  # type: ignore[no-untyped-def]
    top, bottom = polynomials[0][0], polynomials[1][0]
    for k in range(1, 8):
        top = top * x + polynomials[0][k]
        bottom = bottom * x + polynomials[1][k]
    return top / bottom


@numba.njit(cache=True, nogil=True)
def upper_quantile(p):  # type: ignore[no-untyped-def]
    """The z >= 0 with P(Z > z) = p, for 0 < p <= 1/2."""
    q = 0.5 - p
    if q <= 0.425:
        return q * _ratio(_MIDDLE, 0.180625 - q * q)
    r = np.sqrt(-np.log(p))
    if r <= 5.0:
        return _ratio(_TAIL, r - 1.6)
    return _ratio(_FAR_TAIL, r - 5.0)
