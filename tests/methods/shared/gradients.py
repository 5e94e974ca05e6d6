"""Gradients of DPSGD and SGLD, written out user by user."""

import numpy as np

import dpals

N_ITEMS, RANK, CLIP = 12, 2, 3.5


def few_ratings():
    rng = np.random.default_rng(3)
    users, items = np.nonzero(rng.random((60, N_ITEMS)) < 0.5)
    return dpals.Ratings.from_arrays(
        users, items, rng.choice([1.0, 2.0, 4.0, 5.0], len(users)), rating_range=(1, 5), catalogue=range(N_ITEMS)
    )


def gradient(ratings, items, mean, user_ridge, bias_ridge):
    """Sum over the users of their clipped gradients, and how many of them were clipped."""
    total, clipped = np.zeros((N_ITEMS, RANK + 1)), 0
    for i in range(ratings.n_users):
        rated = slice(ratings.indptr[i], ratings.indptr[i + 1])
        own = ratings.indices[rated]
        features = np.column_stack([items[own, :RANK], np.ones(len(own))])
        target = ratings.values[rated] - mean - items[own, RANK]
        system = features.T @ features + np.diag([user_ridge] * RANK + [bias_ridge])
        solved = np.linalg.solve(system, features.T @ target)
        mine = np.outer(target - features @ solved, np.append(solved[:RANK], 1.0))
        clipped += np.linalg.norm(mine) > CLIP
        total[own] += mine * min(1.0, CLIP / np.linalg.norm(mine))
    return total, clipped
