"""Nodes and shares against numpy's, and means over a normal distribution against closed forms."""

import math

import numpy as np
import pytest

from dpals.kernels.quadrature import NODE_SHARES, NODES


def test_nodes_are_those_of_gauss_and_hermite():
    nodes, weights = np.polynomial.hermite_e.hermegauss(7)
    np.testing.assert_allclose(NODES, nodes, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(NODE_SHARES, weights / weights.sum(), rtol=1e-13)


@pytest.mark.parametrize("power", range(14))
def test_moments_up_to_the_thirteenth_are_exact(power):
    """Seven nodes integrate polynomials of degree 13: E[t^2k] = (2k - 1)!!."""
    expected = 0 if power % 2 else math.prod(range(power - 1, 0, -2))
    assert np.sum(NODES**power * NODE_SHARES) == pytest.approx(expected, rel=1e-12, abs=1e-9)


def test_nodes_are_symmetric_to_the_last_bit():
    assert np.array_equal(NODES, -NODES[::-1])
    assert np.array_equal(NODE_SHARES, NODE_SHARES[::-1])
