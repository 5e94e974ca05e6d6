"""The nearest of several centres for each of many points."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpals.kernels.small_matrices import padded
from dpals.kernels.threads import in_threads

Floats = NDArray[np.float32]


def nearest(points: Floats, centres: Floats, threads: int | None = None) -> NDArray[np.int64]:
    """For each point the index of its nearest centre, the first of equally near ones.

    The same for any number of threads and any type of processor.
    """
    n_centres, n_coordinates = centres.shape
    lines = np.zeros((n_coordinates, padded(n_centres, np.float32)), np.float32)
    lines[:, :n_centres] = centres.T
    squares = np.full(lines.shape[1], np.inf, np.float32)
    squares[:n_centres] = np.sum(centres.astype(np.float64) ** 2, axis=1) / 2
    found = np.empty(len(points), np.int64)

    def work(start: int, stop: int) -> None:
        _nearest(points, lines, squares, start, stop, found)

    in_threads(work, np.arange(len(points) + 1) * n_coordinates, threads)
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def _nearest(points, lines, squares, start, stop, found):  # type: ignore[no-untyped-def]
    distances = np.empty_like(squares)  # half the squared distances, less the same number for all centres
    for i in range(start, stop):
        distances[:] = squares
        for k in range(len(lines)):
            for j in range(len(squares)):
                distances[j] -= points[i, k] * lines[k, j]
        found[i] = np.argmin(distances)
