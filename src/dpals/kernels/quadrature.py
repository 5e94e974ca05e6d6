"""Means over a normal distribution, as sums over a few nodes."""

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


def normal_nodes(number: int) -> tuple[Doubles, Doubles]:
    """Nodes and their shares, by which the mean of a smooth function of a standard normal number is a sum.

    Examples
    --------
    >>> nodes, shares = normal_nodes(5)
    >>> float(np.cos(nodes) @ shares), float(np.exp(-0.5))
    (0.606..., 0.606...)
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(number)
    return nodes, weights / weights.sum()
