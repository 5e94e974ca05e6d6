"""The half step against numpy's solver, and the promise that a row's solution depends on that row alone."""

import numpy as np
import pytest

from dpals.kernels import least_squares
from dpals.kernels.least_squares import solve_rows


class Problem:
    """A sparse matrix with rows of many lengths, empty ones among them, and features for its columns."""

    def __init__(self, rank: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        n_columns = 2_000
        lengths = np.r_[0, 1, 2, 7, 8, 9, rng.integers(0, 60, 30), 4_096 // rank + 1, 1_500, 0]
        self.rows = [np.sort(rng.choice(n_columns, min(length, n_columns), replace=False)) for length in lengths]
        self.targets = [rng.normal(size=len(row)).astype(np.float32) for row in self.rows]
        self.features = rng.normal(size=(n_columns, rank)).astype(np.float32) / np.float32(np.sqrt(rank))
        root = rng.normal(size=(rank, rank)) / rank
        self.base = (root @ root.T).astype(np.float32)
        self.ridges = rng.uniform(0.5, 2, len(self.rows)).astype(np.float32)

    def solved(self, rows=None, **options):
        """Solutions by the kernel, of some of the rows."""
        chosen = range(len(self.rows)) if rows is None else rows
        lengths = [len(self.rows[i]) for i in chosen]
        empty = np.empty(0, np.int32)
        return solve_rows(
            np.r_[0, np.cumsum(lengths)].astype(np.int64),
            np.concatenate([empty, *(self.rows[i] for i in chosen)]).astype(np.int32),
            np.concatenate([empty, *(self.targets[i] for i in chosen)]).astype(np.float32),
            self.features,
            self.ridges[list(chosen)],
            self.base,
            **options,
        )

    def expected(self, ridged: int) -> np.ndarray:
        """The numpy twin, in float64."""
        rank = self.features.shape[1]
        result = np.zeros((len(self.rows), rank))
        for i, (row, target) in enumerate(zip(self.rows, self.targets, strict=True)):
            if len(row):
                known = self.features[row].astype(np.float64)
                ridge = self.ridges[i] * np.diag(np.arange(rank) < ridged)
                result[i] = np.linalg.solve(known.T @ known + self.base + ridge, known.T @ target)
        return result


@pytest.mark.parametrize("rank", [1, 2, 7, 8, 9, 16, 23, 32, 40, 64, 100, 128])
def test_solutions_are_those_of_numpy(rank: int) -> None:
    problem = Problem(rank)
    np.testing.assert_allclose(problem.solved(), problem.expected(rank), rtol=2e-4, atol=2e-4)


def test_unridged_coordinates_have_their_ridge_in_the_base() -> None:
    problem = Problem(9)
    problem.base += np.diag(np.r_[np.zeros(7), 0.7, 0.9]).astype(np.float32)
    np.testing.assert_allclose(problem.solved(ridged=7), problem.expected(7), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("rank", [1, 7, 16, 33, 128])
def test_a_row_depends_on_itself_alone_to_the_last_bit(rank: int) -> None:
    problem = Problem(rank)
    together = problem.solved(threads=1)
    rng = np.random.default_rng(1)
    for threads in (1, 2, 5):
        assert np.array_equal(together, problem.solved(threads=threads))
        some = rng.permutation(len(problem.rows))[: len(problem.rows) // 2]
        assert np.array_equal(together[some], problem.solved(some, threads=threads))
    for i in range(len(problem.rows)):
        assert np.array_equal(together[[i]], problem.solved([i]))


def test_a_row_does_not_see_numbers_left_over_from_the_row_before() -> None:
    """Neighbours full of infinities and NaN change nothing."""
    problem = Problem(12)
    clean = problem.solved(threads=1)
    for i in range(0, len(problem.rows), 2):
        problem.targets[i][:] = np.nan if i % 4 else np.inf
    assert np.array_equal(clean[1::2], problem.solved(threads=1)[1::2])


def test_systems_that_are_not_positive_give_zero() -> None:
    problem = Problem(5)
    problem.base = np.full((5, 5), -1e6, np.float32)
    assert not problem.solved().any()


def test_no_rows_and_no_features() -> None:
    assert Problem(4).solved([]).shape == (0, 4)
    problem = Problem(4)
    problem.features, problem.base = problem.features[:, :0], problem.base[:0, :0]
    assert problem.solved().shape == (len(problem.rows), 0)


def test_gathered_rows_fill_several_blocks() -> None:
    """The lengths above are of use only while a block is shorter than the longest row."""
    assert least_squares._GATHERED_FLOATS // 8 < 1_500


@pytest.mark.parametrize(("rank", "ridged"), [(1, 1), (7, 7), (9, 8), (16, 16), (41, 40)])
def test_inverses_are_those_of_numpy(rank: int, ridged: int) -> None:
    problem = Problem(rank)
    if ridged < rank:
        problem.base[-1, -1] += 0.7
    inverses = np.full((len(problem.rows), ridged * (ridged + 1) // 2), -1, np.float32)
    problem.solved(ridged=ridged, inverses=inverses)
    for i, row in enumerate(problem.rows):
        known = problem.features[row].astype(np.float64)
        ridge = problem.ridges[i] * np.diag(np.arange(rank) < ridged)
        inverse = np.linalg.inv(known.T @ known + problem.base + ridge)[
            np.triu_indices(ridged)[0], np.triu_indices(ridged)[1]
        ]
        np.testing.assert_allclose(inverses[i], inverse if len(row) else -1, rtol=2e-3, atol=2e-4)
