"""Starting points for the item factors that are learned from the data, and paid for through the mechanism."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import Population
from dpals.methods.shared.covariance import LARGEST_COVARIANCE, release_covariance
from dpals.private.covariance import Products, RowsOf, SampledRows, product_contribution, sampled_rows
from dpals.public.initial_factors import random_factors
from dpals.public.spectra import eigenpairs, orthonormal_basis
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]


def noisy_power_iteration(
    ratings: Population,
    mechanism: Mechanism,
    cost: int,
    sampled: SampledRows,
    *,
    rank: int,
    steps: int,
    incoherence: float = 2.0,
    if_coherent: Literal["clip", "abort"] = "clip",
) -> Doubles:
    """The main directions of A^T A by noisy power iteration: Algorithm 3 of the paper, in blocks for rank r.

    Each step publishes A^T A X + noise and orthonormalises it. User i contributes the vector a_i^T X with the
    coefficients a_ij, at most s of them and none above Gamma_M. The norm of a_i is at most sqrt(s) Gamma_M; that of
    a_i^T X is at most sqrt(s) Gamma_M nu sqrt(r / m) while no row of X is longer than nu sqrt(r / m), and is clipped
    to it. So the bound is s Gamma_M^2 nu sqrt(r / m), and T steps cost T times its square over the variance.

    Parameters
    ----------
    sampled
        Which of a user's ratings are in a_i: at most s of them, clipped to Gamma_M. Its seed chooses the first X, too.
    incoherence
        nu, the longest row of X that is expected, in units of the mean.
    if_coherent
        What to do where X has longer rows: go on, with users clipped, or raise, as the paper does.

    Returns
    -------
    array of shape (number of chosen items, rank) with orthonormal columns
    """
    n_items, longest_row = int(sampled.chosen.sum()), np.sqrt(sampled.at_most) * sampled.entry_clip
    longest_product = longest_row * incoherence * np.sqrt(rank / n_items)
    rows = RowsOf(sampled_rows, sampled, longest_row)
    factors = orthonormal_basis(random_factors(n_items, rank, sampled.seed))
    for step in range(1, steps + 1):
        coherence = np.sqrt((factors**2).sum(axis=1).max() * n_items / rank)
        if if_coherent == "abort" and coherence > incoherence:
            raise RuntimeError(f"the iteration lost its incoherence in step {step}: {coherence:.1f} > {incoherence}")
        query = Query(
            f"power iteration, step {step}", n_items, longest_row * longest_product, "vector", rank, longest_row
        )
        products = Products(rows, factors, longest_product)
        released = mechanism.release_together(ratings, product_contribution, products, [(query, cost // steps)])
        factors = orthonormal_basis(released[0])
    return factors


def private_pca(ratings: Population, mechanism: Mechanism, cost: int, sampled: SampledRows, *, rank: int) -> Doubles:
    """The top eigenvectors of A^T A + symmetric noise: Analyze Gauss (Dwork et al. 2014). For small catalogues.

    User i adds a_i a_i^T, of norm at most s Gamma_M^2.

    Returns
    -------
    array of shape (number of chosen items, rank) with orthonormal columns
    """
    n_items = int(sampled.chosen.sum())
    if n_items > LARGEST_COVARIANCE:
        raise ValueError(f"private PCA publishes a matrix of items by items: {n_items} items are too many")
    rows = RowsOf(sampled_rows, sampled, np.sqrt(sampled.at_most) * sampled.entry_clip)
    covariance = release_covariance(mechanism, "covariance of items", ratings, rows, n_items, cost)
    return eigenpairs(covariance).vectors[:, : -rank - 1 : -1]
