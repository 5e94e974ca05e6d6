import numpy as np
import pytest
from scipy.sparse import random_array

from dpals.kernels.hits import count_hits
from dpals.kernels.top_k import top_k


@pytest.mark.parametrize("k", [1, 5, 50])
def test_counts_what_is_among_the_top_k(k):
    """Small whole numbers: products are exact and many are equal."""
    rng = np.random.default_rng(k)
    users, items = (rng.integers(-2, 3, size=(n, 4)).astype(np.float32) for n in (200, 50))
    entries = random_array((200, 50), density=0.3, rng=rng, format="csr")
    is_target = rng.random(entries.nnz) < 0.4
    sides = []
    for chosen in (is_target, ~is_target):
        indptr = np.concatenate([[0], np.cumsum(chosen)])[entries.indptr].astype(np.int64)
        sides.append((indptr, entries.indices[chosen].astype(np.int32)))
    targets, excluded = sides
    best, _ = top_k(users, items, k, excluded=excluded)
    wanted = [set(targets[1][start:stop]) for start, stop in zip(targets[0], targets[0][1:], strict=False)]
    expected = [len(own & set(row)) for own, row in zip(wanted, best, strict=True)]
    assert count_hits(users, items, k, targets, excluded).tolist() == expected
    assert sum(expected) > 0
