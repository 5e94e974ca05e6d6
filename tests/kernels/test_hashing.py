import numpy as np
import pytest
from scipy import stats

from dpals.kernels.hashing import block_hashes, hashed_normal, hashed_uniform, id_hashes


def test_uniform_and_normal_have_their_distributions():
    rows, columns = np.arange(400)[:, None], np.arange(300)[None, :]
    assert stats.kstest(hashed_uniform(3, rows, columns).ravel(), "uniform").pvalue > 1e-3
    normal = hashed_normal(3, rows, columns)
    assert stats.kstest(normal.ravel(), "norm").pvalue > 1e-3
    correlations = np.corrcoef(normal)[np.triu_indices(400, 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(300)


def test_every_word_and_the_seed_matter():
    one, two = np.array([1]), np.array([2])
    values = {hashed_uniform(seed, a, b)[0] for seed in (0, 1, -1) for a in (one, two) for b in (one, two)}
    assert len(values) == 12


def test_ids_hash_by_what_they_are():
    assert id_hashes(np.array([5, -1])).tolist() == [5, 2**64 - 1]
    text = np.array(["a", "b", "ä ö"], dtype=np.dtypes.StringDType())
    assert len(set(id_hashes(text).tolist())) == 3
    assert id_hashes(text)[0] == id_hashes(np.array(["a"]))[0]


def test_block_hashes_are_functions_of_the_id_alone():
    ids = np.arange(-500, 500)
    hashes = block_hashes(ids)
    assert len(set(hashes.tolist())) == len(ids)
    np.testing.assert_array_equal(block_hashes(ids[::-7]), hashes[::-7])
    np.testing.assert_array_equal(block_hashes(ids.astype("T")), hashes)
    assert (hashes >> np.uint64(63)).mean() == pytest.approx(0.5, abs=0.05)
