"""SGLD against gradient steps written out user by user."""

import numpy as np
import pytest
from tests.methods.shared.gradients import CLIP, N_ITEMS, RANK, few_ratings, gradient

import dpals
from dpals.public.initial_factors import random_factors


def test_sgld_moves_as_far_as_its_noise_allows():
    """What the mechanism adds to a step has the variance that Langevin dynamics asks for."""
    ratings = few_ratings()
    settings = {"rank": RANK, "steps": 1, "gradient_clip": CLIP, "noise_scale": 0.5, "taste_scale": 0.4}
    settings |= {"start_scale": 0.1, "seed": 4}
    start = np.column_stack([0.1 * random_factors(N_ITEMS, RANK, 4), np.zeros(N_ITEMS)])
    moved, lengths = [], []
    for seed in range(400):
        method = dpals.SGLD(3.0, **settings, temperature=0.1, mean_share=0.4, insecure_seed=seed).fit(ratings)
        variance = (0.5 * 2) ** 2
        down, _ = gradient(ratings, start, method.model_.global_mean, variance, 5.0)
        length = 4 * 0.1 * (variance / method.privacy.releases[-1].sigma) ** 2
        expected = start + length / 2 * (down / variance - start / 0.4**2)
        lengths.append(length)
        moved.append(np.column_stack([method.item_factors_, method.model_.item_biases]) - expected)
    assert np.abs(np.mean(moved)) < 4 * np.std(moved) / np.sqrt(np.size(moved))
    assert np.var(moved) == pytest.approx(0.1 * np.mean(lengths), rel=0.05)
