"""Means over a normal distribution, as sums over a few nodes.

Examples
--------
>>> mean = np.cos(NODES) @ NODE_SHARES
>>> bool(abs(mean - np.exp(-0.5)) < 1e-5)
True
"""

import numpy as np

NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
NODE_SHARES = _WEIGHTS / _WEIGHTS.sum()
