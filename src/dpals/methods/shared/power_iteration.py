"""Starting points for the item factors that are learned from the data, and paid for through the mechanism."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpals.data.ratings import Ratings
from dpals.kernels.rows import row_combinations
from dpals.methods.shared.covariance import LARGEST_COVARIANCE, release_covariance
from dpals.private.clipping import clip_rows
from dpals.private.means import clipped_entries, pattern_of
from dpals.private.sampling import uniform_sample
from dpals.public.initial_factors import random_factors
from dpals.public.spectra import eigenpairs, orthonormal_basis
from dpals.release.contribution import Contribution, Query
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]


def noisy_power_iteration(
    ratings: Ratings,
    mechanism: Mechanism,
    cost: int,
    *,
    rank: int,
    steps: int,
    ratings_per_user: int,
    mean: float,
    entry_clip: float,
    incoherence: float = 2.0,
    if_coherent: Literal["clip", "abort"] = "clip",
    seed: int = 0,
) -> Doubles:
    """The main directions of A^T A by noisy power iteration: Algorithm 3 of the paper, in blocks for rank r.

    Each step publishes A^T A X + noise and orthonormalises it. User i contributes the vector a_i^T X with the
    coefficients a_ij, at most s of them and none above Gamma_M. The norm of a_i is at most sqrt(s) Gamma_M; that of
    a_i^T X is at most sqrt(s) Gamma_M nu sqrt(r / m) while no row of X is longer than nu sqrt(r / m), and is clipped
    to it. So the bound is s Gamma_M^2 nu sqrt(r / m), and T steps cost T times its square over the variance.

    Parameters
    ----------
    incoherence
        nu, the longest row of X that is expected, in units of the mean.
    if_coherent
        What to do where X has longer rows: go on, with users clipped, or raise, as the paper does.

    Returns
    -------
    array of shape (n_items, rank) with orthonormal columns
    """
    sample = uniform_sample(ratings, ratings_per_user, seed)
    values = clipped_entries(sample, mean, entry_clip)
    longest_row = np.sqrt(ratings_per_user) * entry_clip
    longest_product = longest_row * incoherence * np.sqrt(rank / ratings.n_items)
    pattern = pattern_of(sample)
    factors = orthonormal_basis(random_factors(ratings.n_items, rank, seed))
    for step in range(1, steps + 1):
        coherence = np.sqrt((factors**2).sum(axis=1).max() * ratings.n_items / rank)
        if if_coherent == "abort" and coherence > incoherence:
            raise RuntimeError(f"the iteration lost its incoherence in step {step}: {coherence:.1f} > {incoherence}")
        products = clip_rows(row_combinations(sample.indptr, sample.indices, values, factors), longest_product)
        query = Query(
            f"power iteration, step {step}",
            ratings.n_items,
            longest_row * longest_product,
            "vector",
            rank,
            longest_row,
        )
        factors = orthonormal_basis(mechanism.release(query, Contribution(pattern, values, products), cost // steps))
    return factors


def private_pca(
    ratings: Ratings,
    mechanism: Mechanism,
    cost: int,
    *,
    rank: int,
    ratings_per_user: int,
    mean: float,
    entry_clip: float,
    seed: int = 0,
) -> Doubles:
    """The top eigenvectors of A^T A + symmetric noise: Analyze Gauss (Dwork et al. 2014). For small catalogues.

    User i adds a_i a_i^T, of norm at most s Gamma_M^2.

    Returns
    -------
    array of shape (n_items, rank) with orthonormal columns
    """
    if ratings.n_items > LARGEST_COVARIANCE:
        raise ValueError(f"private PCA publishes a matrix of items by items: {ratings.n_items} items are too many")
    sample = uniform_sample(ratings, ratings_per_user, seed)
    values, longest_row = clipped_entries(sample, mean, entry_clip), np.sqrt(ratings_per_user) * entry_clip
    covariance = release_covariance(mechanism, "covariance of items", sample, values, longest_row, cost)
    return eigenpairs(covariance).vectors[:, : -rank - 1 : -1]
