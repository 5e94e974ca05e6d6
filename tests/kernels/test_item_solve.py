"""The item solver against numpy's eigendecomposition."""

import numpy as np
import pytest

from dpals.kernels.item_solve import solve_psd

RANKS = [1, 2, 5, 8, 13, 32, 64]


def packed(matrices: np.ndarray) -> np.ndarray:
    rows, columns = np.triu_indices(matrices.shape[1])
    return np.ascontiguousarray(matrices[:, rows, columns])


def twin(matrices, moments, ridges, base=0.0, project=True):
    """The same with numpy: project, add, solve."""
    values, vectors = np.linalg.eigh(matrices)
    if project:
        matrices = (vectors * np.maximum(values, 0)[:, None, :]) @ vectors.transpose(0, 2, 1)
    systems = matrices + base + ridges[:, None, None] * np.eye(matrices.shape[1])
    return np.linalg.solve(systems, moments[..., None])[..., 0]


def problem(rank: int, n_items: int = 40, seed: int = 0):
    """Symmetric matrices: noisy, positive, of low rank, negative and zero ones."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n_items, rank, rank))
    matrices = noise + noise.transpose(0, 2, 1)
    matrices[1::4] = noise[1::4] @ noise[1::4].transpose(0, 2, 1)
    thin = noise[2::4, :, : -(-rank // 3)]
    matrices[2::4] = thin @ thin.transpose(0, 2, 1)
    matrices[3] = -matrices[1]
    matrices[7] = 0
    root = rng.normal(size=(rank, rank)) / rank
    return matrices, rng.normal(size=(n_items, rank)), rng.uniform(0.5, 2, n_items), root @ root.T


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("project", [True, False])
@pytest.mark.parametrize("with_base", [True, False])
def test_solutions_are_those_of_numpy(rank: int, project: bool, with_base: bool) -> None:
    matrices, moments, ridges, base = problem(rank)
    solved = solve_psd(packed(matrices), moments, ridges, base if with_base else None, project=project)
    expected = twin(matrices, moments, ridges, base if with_base else 0.0, project)
    np.testing.assert_allclose(solved, expected, rtol=1e-7, atol=1e-7)


def test_positive_matrices_are_left_alone() -> None:
    matrices, moments, ridges, base = problem(16)
    positive = matrices @ matrices
    for shared in (None, base):
        both = (solve_psd(packed(positive), moments, ridges, shared, project=project) for project in (True, False))
        np.testing.assert_allclose(*both, rtol=1e-8)


def test_zero_and_negative_matrices_leave_the_ridge() -> None:
    moments, ridges = np.array([[1.0, 2.0], [3.0, -4.0]]), np.array([0.5, 4.0])
    for gram in ([0.0, 0.0, 0.0], [-3.0, 1.0, -7.0]):
        np.testing.assert_allclose(solve_psd(np.tile(gram, (2, 1)), moments, ridges), moments / ridges[:, None])


def test_rank_one_by_hand() -> None:
    solved = solve_psd(np.array([[3.0], [-3.0]]), np.array([[8.0], [8.0]]), np.array([1.0, 1.0]))
    assert solved.tolist() == [[2.0], [8.0]]
    assert solve_psd(np.array([[-3.0]]), np.array([[8.0]]), np.ones(1), project=False).tolist() == [[-4.0]]


@pytest.mark.parametrize("scale", [1e-150, 1e-12, 1e12, 1e150])
def test_badly_scaled_matrices(scale: float) -> None:
    """All sizes of numbers at once: eigenvalues from 1 to 10^12 times the scale, the ridge in the middle."""
    rng = np.random.default_rng(3)
    vectors = np.linalg.qr(rng.normal(size=(9, 9)))[0]
    values = np.r_[-(10.0 ** np.arange(0, 12, 4)), 10.0 ** np.arange(0, 12, 2)]
    matrix = (vectors * values) @ vectors.T * scale
    moment, ridge = vectors.sum(axis=1), np.array([1e5 * scale])
    expected = vectors @ (1 / (np.maximum(values, 0) * scale + ridge))
    solved = solve_psd(packed(matrix[None]), moment[None], ridge)
    np.testing.assert_allclose(
        solved[0] * scale, expected * scale, rtol=1e-6, atol=1e-6 * np.abs(expected * scale).max()
    )


def test_a_ridge_lost_in_rounding_still_gives_a_solution() -> None:
    """Cholesky breaks down here; the answer is bounded by |b| / ridge as it should be."""
    rng = np.random.default_rng(4)
    thin = rng.normal(size=(20, 12, 2)) * 1e8
    moments = rng.normal(size=(20, 12))
    base = np.outer(thin[0, :, 0], thin[0, :, 0])
    solved = solve_psd(packed(thin @ thin.transpose(0, 2, 1)), moments, np.full(20, 1e-9), base)
    assert np.isfinite(solved).all()
    assert (np.linalg.norm(solved, axis=1) <= 1.001e9 * np.linalg.norm(moments, axis=1)).all()


def test_same_bits_for_any_threads() -> None:
    matrices, moments, ridges, base = problem(20, n_items=300)
    for shared in (None, base):
        one = solve_psd(packed(matrices), moments, ridges, shared, threads=1)
        assert np.array_equal(one, solve_psd(packed(matrices), moments, ridges, shared, threads=3))
        assert np.array_equal(one[50:60], solve_psd(packed(matrices[50:60]), moments[50:60], ridges[50:60], shared))


def test_inputs_are_left_alone() -> None:
    given = packed(problem(6)[0]), *problem(6)[1:]
    before = [array.copy() for array in given]
    solve_psd(*given)
    solve_psd(*given, project=False)
    assert all(np.array_equal(old, new) for old, new in zip(before, given, strict=True))


def test_no_items_and_rank_zero() -> None:
    assert solve_psd(np.empty((0, 6)), np.empty((0, 3)), np.empty(0)).shape == (0, 3)
    assert solve_psd(np.empty((2, 0)), np.empty((2, 0)), np.ones(2)).shape == (2, 0)


def test_wrong_input_is_named() -> None:
    with pytest.raises(ValueError, match="upper triangles of order 3"):
        solve_psd(np.zeros((2, 9)), np.zeros((2, 3)), np.ones(2))
    with pytest.raises(ValueError, match="finite"):
        solve_psd(np.array([[np.nan]]), np.ones((1, 1)), np.ones(1))
