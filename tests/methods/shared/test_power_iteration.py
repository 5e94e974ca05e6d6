import numpy as np
import pytest
from scipy.linalg import subspace_angles

import dpals
from dpals.methods.shared.power_iteration import noisy_power_iteration, private_pca
from dpals.private.covariance import SampledRows
from dpals.release.accounting import Budget
from dpals.release.mechanism import Mechanism

RANK, PER_USER, CLIP = 5, 200, 4.0
SHARED = {"rank": RANK, "ratings_per_user": PER_USER, "mean": 0.0, "entry_clip": CLIP}


@pytest.fixture(scope="module")
def task():
    return dpals.simulate.paper_synthetic(5_000, 200, rank=RANK)


def mechanism_of(epsilon, seed=1):
    return Mechanism(Budget(epsilon, 1e-5), insecure_seed=seed)


def widest_angle(factors, task):
    """In degrees, between the space that was found and the true one."""
    return np.degrees(subspace_angles(factors, task.item_factors).max())


def exact_directions(task):
    """The top right singular vectors of the clipped matrix, as the eigenvectors of A^T A."""
    dense = np.clip(task.train.to_csr().toarray(), -CLIP, CLIP).astype(np.float64)
    return np.linalg.eigh(dense.T @ dense).eigenvectors[:, -RANK:]


def start(name, ratings, mechanism, cost, **changes):
    arguments = {**SHARED, **changes}
    every_item = np.ones(ratings.n_items, bool)
    rows = SampledRows(
        every_item, *(arguments.pop(name) for name in ("ratings_per_user", "mean", "entry_clip")), seed=0
    )
    if name == "power":
        return noisy_power_iteration(ratings, mechanism, cost, rows, **{"steps": 4, **arguments})
    return private_pca(ratings, mechanism, cost, rows, **arguments)


def crowded(n_items=100):
    """All that happens is on item 0: the first direction of the data is that item alone."""
    users = np.repeat(np.arange(300), 2)
    items = np.column_stack([np.zeros(300, int), np.arange(300) % (n_items - 1) + 1]).ravel()
    values = np.tile([5.0, 0.01], 300)
    return dpals.Ratings.from_arrays(users, items, values, rating_range=(-5, 5), catalogue=range(n_items))


@pytest.mark.parametrize("name", ["power", "pca"])
def test_a_large_budget_finds_the_space_of_the_items(name, task):
    mechanism = mechanism_of(1e6)
    factors = start(name, task.train, mechanism, mechanism.budget.cost)
    np.testing.assert_allclose(factors.T @ factors, np.eye(RANK), atol=1e-10)
    assert widest_angle(factors, task) < 12
    assert widest_angle(np.random.default_rng(0).normal(size=(200, RANK)), task) > 80, "what knowing nothing gives"


@pytest.mark.parametrize("name", ["power", "pca"])
def test_a_small_budget_finds_nothing_so_the_noise_is_there(name, task):
    mechanism = mechanism_of(0.01)
    assert widest_angle(start(name, task.train, mechanism, mechanism.budget.cost), task) > 60


def test_without_noise_private_pca_is_the_singular_vectors(task):
    """Up to the grid of the mechanism, which is coarser than the noise at budgets like this one."""
    mechanism = mechanism_of(1e8)
    factors = start("pca", task.train, mechanism, mechanism.budget.cost)
    assert np.degrees(subspace_angles(factors, exact_directions(task)).max()) < 1


def test_without_noise_the_power_iteration_converges_to_the_singular_vectors(task):
    """With products too short to be clipped, step by step."""

    def angle(steps):
        mechanism = mechanism_of(1e8)
        factors = start("power", task.train, mechanism, mechanism.budget.cost, incoherence=1e3, steps=steps)
        return np.degrees(subspace_angles(factors, exact_directions(task)).max())

    assert angle(1) > 10 * angle(3)
    assert angle(6) < 1


@pytest.mark.parametrize("name", ["power", "pca"])
def test_every_release_is_paid_for_within_what_was_given(name, task):
    mechanism = mechanism_of(5.0)
    given, _ = mechanism.budget.split(1, 2)
    start(name, task.train, mechanism, given)
    purposes = {"power": [f"power iteration, step {t}" for t in (1, 2, 3, 4)], "pca": ["covariance of items"]}
    assert [release.purpose for release in mechanism.releases] == purposes[name]
    assert 0.999 * given < mechanism.spent <= given
    mechanism.close()
    assert mechanism.ledger.spent("ratings") == mechanism.spent


def test_the_noise_of_the_power_iteration_is_that_of_the_paper(task):
    """A user moves a step by at most s Gamma_M^2 nu / sqrt(m): sqrt(s) Gamma_M twice, times nu / sqrt(m)."""
    mechanism = mechanism_of(5.0)
    start("power", task.train, mechanism, mechanism.budget.cost, rank=1, steps=3, incoherence=4.0)
    bound = PER_USER * CLIP**2 * 4.0 / np.sqrt(200)
    squared_mu = sum((bound / release.sigma) ** 2 for release in mechanism.releases)
    assert len(mechanism.releases) == 3
    assert squared_mu == pytest.approx(mechanism.budget.mu**2, rel=1e-4)


def test_the_noise_of_private_pca_is_that_of_its_bound(task):
    mechanism = mechanism_of(5.0)
    start("pca", task.train, mechanism, mechanism.budget.cost)
    assert (PER_USER * CLIP**2 / mechanism.releases[0].sigma) ** 2 == pytest.approx(mechanism.budget.mu**2, rel=1e-4)


def test_private_pca_refuses_a_large_catalogue_and_spends_nothing():
    ratings = dpals.Ratings.from_arrays([1], [2], [3.0], rating_range=(-5, 5), catalogue=range(2_001))
    mechanism = mechanism_of(1.0)
    with pytest.raises(ValueError, match=r"2001 items are too many"):
        start("pca", ratings, mechanism, mechanism.budget.cost)
    assert mechanism.spent == 0


def test_lost_incoherence_aborts_where_the_paper_does():
    mechanism = mechanism_of(1e6)
    with pytest.raises(RuntimeError, match=r"lost its incoherence in step 2: 10\.0 > 4"):
        start("power", crowded(), mechanism, mechanism.budget.cost, rank=1, incoherence=4.0, if_coherent="abort")
    assert [release.purpose for release in mechanism.releases] == ["power iteration, step 1"]


def test_a_start_that_is_not_incoherent_aborts_before_anything_is_spent():
    mechanism = mechanism_of(1e6)
    with pytest.raises(RuntimeError, match="in step 1"):
        start("power", crowded(), mechanism, mechanism.budget.cost, rank=1, incoherence=0.9, if_coherent="abort")
    assert mechanism.spent == 0


def test_lost_incoherence_is_only_clipped_by_default():
    mechanism = mechanism_of(1e6)
    factors = start("power", crowded(), mechanism, mechanism.budget.cost, rank=1, incoherence=4.0)
    assert abs(factors[0, 0]) > 0.99


@pytest.mark.parametrize("name", ["power", "pca"])
def test_implicit_feedback_and_the_mean_to_subtract(name):
    """A constant is all mean: subtracted, nothing but noise is left; with the wrong mean the constant is found."""
    users, items = np.nonzero(np.ones((500, 20)))
    constant = np.full(20, 20**-0.5)
    explicit = dpals.Ratings.from_arrays(users, items, np.full(len(users), 3.0), rating_range=(1, 5))
    implicit = dpals.Ratings.from_arrays(users, items)

    def found(ratings, mean):
        mechanism = mechanism_of(100.0)
        small = {"rank": 1, "ratings_per_user": 20, "entry_clip": 1.0}
        return abs(constant @ start(name, ratings, mechanism, mechanism.budget.cost, **small, mean=mean)[:, 0])

    assert found(explicit, 2.0) > 0.99
    assert found(implicit, 0.0) > 0.99
    assert found(explicit, 3.0) < 0.8
