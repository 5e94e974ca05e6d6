"""The most likely vector of a user who chose some items, against scipy's minimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize

from dpals.kernels.logistic import ColumnGroups, solve_logistic


def _problem(n_columns: int, rank: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    features = np.column_stack([rng.normal(0, 0.7, (n_columns, rank)), np.ones(n_columns)]).astype(np.float32)
    offsets = rng.normal(-3, 1.5, n_columns).astype(np.float32)
    base = np.eye(rank + 1, dtype=np.float32)
    base[-1, -1] = 0.01
    rows = [np.flatnonzero(rng.random(n_columns) < share) for share in (0.3, 0.05, 0.0, 0.1)]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return indptr, np.concatenate(rows).astype(np.int32), features, offsets, base


def _alone(features, offsets):
    """Each column as a group of its own."""
    return ColumnGroups(np.ones(len(offsets), np.float32), offsets, features, np.zeros_like(features))


def _most_likely(chosen, features, offsets, base):
    picks = np.zeros(len(features))
    picks[chosen] = 1

    def loss(x):
        h = offsets + features @ x
        return np.sum(np.logaddexp(0, h) - picks * h) + x @ base @ x / 2

    return minimize(loss, np.zeros(features.shape[1]), method="BFGS", options={"gtol": 1e-6}).x


@pytest.mark.parametrize(("n_columns", "rank"), [(40, 0), (300, 3), (700, 7), (513, 12)])
def test_finds_the_most_likely_vector(n_columns, rank):
    indptr, indices, features, offsets, base = _problem(n_columns, rank)
    found = solve_logistic(indptr, indices, features, _alone(features, offsets), base, ridged=rank)
    for i, row in enumerate(np.split(indices, indptr[1:-1])):
        expected = _most_likely(row, features, offsets, base) if len(row) else np.zeros(rank + 1)
        assert found[i] == pytest.approx(expected, abs=0.02)


def test_a_group_stands_for_columns_with_normal_features():
    """Thousands of columns of few odds, in groups whose features spread a lot, against the columns themselves."""
    rng, rank, size = np.random.default_rng(0), 3, 4000
    centres, spreads = rng.normal(0, 0.8, (5, rank)), rng.uniform(0.1, 0.4, (5, rank))
    features = np.repeat(centres, size, axis=0) + rng.normal(size=(5 * size, rank)) * np.repeat(spreads, size, axis=0)
    features = np.column_stack([features, np.ones(len(features))]).astype(np.float32)
    offsets = np.repeat(rng.normal(-9, 1, 5), size).astype(np.float32)
    rows = [np.sort(rng.choice(np.arange(k * size, (k + 1) * size), 20, replace=False)) for k in range(5)]
    indptr, indices = np.arange(0, 101, 20), np.concatenate(rows).astype(np.int32)
    base = np.diag([1.0, 1.0, 1.0, 0.01]).astype(np.float32)
    last = np.ones((5, 1)), np.zeros((5, 1))
    numbers = (np.column_stack(pair) for pair in zip((centres, spreads**2), last, strict=True))
    groups = ColumnGroups(
        *(part.astype(np.float32) for part in (np.full(5, size), offsets[::size], *numbers)),
    )
    inverses = np.zeros((2, 5, 6), np.float32)
    exact = solve_logistic(indptr, indices, features, _alone(features, offsets), base, ridged=3, inverses=inverses[0])
    found = solve_logistic(indptr, indices, features, groups, base, ridged=3, inverses=inverses[1])
    assert np.abs(exact[:, :3]).max() > 1
    np.testing.assert_allclose(found, exact, atol=0.04)
    np.testing.assert_allclose(inverses[1], inverses[0], atol=0.02)


def test_inverses_are_those_of_the_curvature():
    indptr, indices, features, offsets, base = _problem(300, 5)
    inverses = np.full((4, 15), np.nan, np.float32)
    found = solve_logistic(indptr, indices, features, _alone(features, offsets), base, ridged=5, inverses=inverses)
    chances = 1 / (1 + np.exp(-(offsets + features @ found[0])))
    curvature = (features * (chances * (1 - chances))[:, None]).T @ features + base
    assert inverses[0] == pytest.approx(np.linalg.inv(curvature)[:5, :5][np.triu_indices(5)], rel=0.03, abs=2e-3)
    assert np.isnan(inverses[2]).all()
    some, wanted = np.full((2, 15), np.nan, np.float32), np.array([True, False, False, True])
    solve_logistic(indptr, indices, features, _alone(features, offsets), base, ridged=5, inverses=some, inverted=wanted)
    assert np.array_equal(some, inverses[wanted])


def test_a_row_does_not_depend_on_others_or_on_threads():
    indptr, indices, features, offsets, base = _problem(600, 6)
    rest = (features, _alone(features, offsets), base)
    together = solve_logistic(indptr, indices, *rest, ridged=6, threads=2)
    for i in range(4):
        own = indices[indptr[i] : indptr[i + 1]]
        alone = solve_logistic(np.array([0, len(own)]), own, *rest, ridged=6, threads=1)
        assert np.array_equal(together[i], alone[0])


def test_stays_finite_where_a_row_has_everything_or_offsets_are_extreme():
    indptr, indices = np.array([0, 50, 51]), np.append(np.arange(50), 7).astype(np.int32)
    features = np.column_stack([np.linspace(-30, 30, 50), np.ones(50)]).astype(np.float32)
    for offset in (-80.0, 0.0, 80.0):
        offsets = np.full(50, offset, np.float32)
        base = np.diag([1.0, 0.01]).astype(np.float32)
        found = solve_logistic(indptr, indices, features, _alone(features, offsets), base, ridged=1)
        assert np.isfinite(found).all()


def test_a_row_without_a_solution_leaves_its_inverse_as_it_was():
    """Columns so nearly alike that the curvature is singular in single precision: nothing of other rows may show."""
    rng = np.random.default_rng(0)
    features = np.column_stack([30 + rng.normal(size=20_000) * 1e-3, np.ones(20_000)]).astype(np.float32)
    offsets, base = np.full(20_000, -3, np.float32), np.diag([1.0, 1e-3]).astype(np.float32)
    few, many = (np.sort(rng.choice(20_000, size, replace=False)).astype(np.int32) for size in (1, 10_000))

    def inverse_of_last(*rows):
        indptr = np.cumsum([0, *map(len, rows)]).astype(np.int64)
        inverses = np.zeros((len(rows), 1), np.float32)
        columns = np.concatenate(rows)
        groups = _alone(features, offsets)
        solve_logistic(indptr, columns, features, groups, base, ridged=1, inverses=inverses, threads=1)
        return inverses[-1]

    assert inverse_of_last(few, many) == inverse_of_last(many) == 0
