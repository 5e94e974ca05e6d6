"""Where item factors start when nothing has been released yet."""

import numpy as np
from numpy.typing import NDArray

from dpals.kernels.hashing import hashed_normal


def random_factors(n_items: int, rank: int, seed: int = 0) -> NDArray[np.float64]:
    """Independent standard normal numbers, the same for the same seed."""
    return hashed_normal(seed, np.arange(n_items)[:, None], np.arange(rank)[None, :])
