import numpy as np
from scipy.stats import kstest

from dpals.public.initial_factors import random_factors


def test_the_entries_are_standard_normal():
    factors = random_factors(2_000, 10)
    assert factors.shape == (2_000, 10)
    assert kstest(factors.ravel(), "norm").pvalue > 1e-3


def test_columns_are_independent_so_that_the_gram_matrix_is_near_the_identity():
    factors = random_factors(10_000, 8, seed=5)
    np.testing.assert_allclose(factors.T @ factors / 10_000, np.eye(8), atol=5 / np.sqrt(10_000) * np.sqrt(2))


def test_the_seed_decides():
    first, again, other = (random_factors(20, 3, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.isclose(first, other).any()


def test_neither_more_items_nor_a_larger_rank_change_what_was_there():
    """The start of an item is its own: it does not depend on how many others are trained on."""
    assert np.array_equal(random_factors(50, 6)[:20, :3], random_factors(20, 3))
