"""Gauss-Hermite quadrature: means over a normal distribution as sums over seven nodes.

Nodes and weights are written out: computing them takes eigenvalues, whose last bits depend on the machine.

Examples
--------
>>> bool(abs((np.cos(NODES) * NODE_SHARES).sum() - np.exp(-0.5)) < 1e-5)
True
"""

import numpy as np

_OUTSIDE = np.array([3.7504397177257425, 2.366759410734541, 1.1544053947399682])
_SHARES = np.array([0.0005482688559722178, 0.030757123967586498, 0.24012317860501273])
NODES = np.concatenate([-_OUTSIDE, [0.0], _OUTSIDE[::-1]])
NODE_SHARES = np.concatenate([_SHARES, [0.45714285714285713], _SHARES[::-1]])
