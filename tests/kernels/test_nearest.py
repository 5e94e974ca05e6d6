"""The nearest centre of each point, against all distances."""

import numpy as np
import pytest

from dpals.kernels.nearest import nearest


@pytest.mark.parametrize(("n_points", "n_centres", "rank"), [(0, 3, 2), (5, 1, 3), (700, 37, 5), (90, 512, 33)])
def test_finds_the_nearest_centre(n_points, n_centres, rank):
    rng = np.random.default_rng(n_points)
    points, centres = (rng.normal(size=(n, rank)).astype(np.float32) for n in (n_points, n_centres))
    distances = np.linalg.norm(points[:, None].astype(float) - centres, axis=2)
    found = nearest(points, centres)
    assert np.allclose(distances[np.arange(n_points), found], distances.min(axis=1), atol=1e-4)
    assert np.array_equal(found, nearest(points, centres, threads=1))


def test_of_equally_near_centres_it_is_the_first():
    assert nearest(np.zeros((2, 1), np.float32), np.array([[2], [1], [-1], [1]], np.float32)).tolist() == [1, 1]
