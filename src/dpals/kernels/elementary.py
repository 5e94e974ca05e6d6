"""Exponentials, logarithms and powers with the same bits on every processor.

NumPy and the C library choose among several implementations, depending on the processor, and these differ in their last
bits. The functions here use only sums, products and quotients, which IEEE 754 defines to the last bit. Their relative
error is about 1e-14.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

LOG_2 = 0.6931471805599453
_ROOT_HALF = 0.7071067811865476
_TERMS = 15  # of the series of e^x for |x| <= log(2) / 2, and of the logarithm's, which needs fewer
_LARGEST = 700.0


def exponentials(values: NDArray[Any]) -> Doubles:
    """e^x, x cut to plus and minus 700.

    Examples
    --------
    >>> exponentials(np.array([0.0, 1.0])).round(6).tolist()
    [1.0, 2.718282]
    """
    numbers = np.clip(np.asarray(values, np.float64), -_LARGEST, _LARGEST)
    doublings = np.rint(numbers / LOG_2)
    rest = numbers - doublings * LOG_2
    series = np.ones_like(rest)
    for k in range(_TERMS, 0, -1):
        series = 1 + series * rest / k
    return np.ldexp(series, doublings.astype(np.int32))


def logarithms(values: NDArray[Any]) -> Doubles:
    """log x, for positive x.

    Examples
    --------
    >>> logarithms(np.array([1.0, 1024.0]) / LOG_2).round(6).tolist()
    [0.366513, 7.297985]
    """
    parts, doublings = np.frexp(np.asarray(values, np.float64))
    small = parts < _ROOT_HALF
    parts, doublings = np.where(small, 2 * parts, parts), doublings - small
    ratios = (parts - 1) / (parts + 1)  # log x is 2 artanh of it, at most 0.18
    squares, series = ratios * ratios, np.zeros_like(ratios)
    for k in range(2 * _TERMS - 1, 0, -2):
        series = series * squares + 1 / k
    result: Doubles = doublings * LOG_2 + 2 * ratios * series
    return result


def powers(values: NDArray[Any], exponent: float) -> Doubles:
    """x^exponent, for positive x.

    Examples
    --------
    >>> powers(np.array([1, 4, 10]), 0.5).round(6).tolist()
    [1.0, 2.0, 3.162278]
    """
    return exponentials(exponent * logarithms(values))


def logistic(values: NDArray[Any]) -> Doubles:
    """1 / (1 + e^-x).

    Examples
    --------
    >>> logistic(np.array([0.0, 2.0])).round(6).tolist()
    [0.5, 0.880797]
    """
    return 1 / (1 + exponentials(-np.asarray(values, np.float64)))
