"""Frank-Wolfe replayed by the users, against whole dense rows written out."""

import numpy as np
import pytest

import dpals
from dpals.private.frank_wolfe import FrankWolfeProblem, FrankWolfeSteps

N_ITEMS, STEPS = 9, 4
GAINS, KEEPS = np.array([0.4, 0.3, 0.2, 0.1]), np.array([1.0, 0.5, 0.75, 0.8])


@pytest.fixture
def ratings():
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((25, N_ITEMS)) < rng.random((25, 1)))
    return dpals.Ratings.from_arrays(
        users, items, rng.uniform(1, 5, len(users)), rating_range=(1, 5), catalogue=range(N_ITEMS)
    )


def problem(clip, bias_ridge, considered):
    rng = np.random.default_rng(1)
    directions = rng.normal(size=(N_ITEMS, STEPS)) * considered[:, None]
    features = directions if bias_ridge is None else np.column_stack([directions, np.ones(N_ITEMS)])
    offsets = rng.normal(3, 0.5, N_ITEMS).astype(np.float32)
    return FrankWolfeProblem(
        features.astype(np.float32), offsets, considered, FrankWolfeSteps(GAINS, KEEPS, clip), bias_ridge
    )


@pytest.mark.parametrize("clip", [0.7, 1e6])
@pytest.mark.parametrize("bias_ridge", [None, 2.0])
@pytest.mark.parametrize("all_items", [True, False])
def test_a_user_gets_what_frank_wolfe_gives_on_the_dense_row(ratings, clip, bias_ridge, all_items):
    considered = np.ones(N_ITEMS, bool) if all_items else np.arange(N_ITEMS) % 3 > 0
    asked = problem(clip, bias_ridge, considered)
    vectors, residuals = asked.solve_with_residuals(ratings)
    for i in range(ratings.n_users):
        rated = slice(ratings.indptr[i], ratings.indptr[i + 1])
        items = ratings.indices[rated]
        target, mask = np.zeros(N_ITEMS), np.zeros(N_ITEMS)
        target[items] = ratings.values[rated] - asked.offsets[items]
        bias = 0.0 if bias_ridge is None else target.sum() / (len(items) + bias_ridge)
        mask[items] = considered[items]
        row = np.zeros(N_ITEMS)
        for t in range(STEPS):
            left = mask * (target - bias - row)
            left *= min(1.0, clip / max(np.linalg.norm(left), 1e-12))
            direction = asked.features[:, t]
            row = KEEPS[t] * row + GAINS[t] * (left @ direction) * direction
        left = mask * (target - bias - row)
        left *= min(1.0, clip / max(np.linalg.norm(left), 1e-12))
        np.testing.assert_allclose(residuals[rated], left[items], atol=1e-10)
        np.testing.assert_allclose(asked.features[:, :STEPS] @ vectors[i, :STEPS], row, atol=1e-10)
        assert bias_ridge is None or vectors[i, STEPS] == pytest.approx(bias)
    np.testing.assert_allclose(asked.solve(ratings), vectors, atol=1e-6)


def test_a_user_gets_the_same_bits_whoever_else_is_there(ratings):
    asked = problem(0.7, 2.0, np.ones(N_ITEMS, bool))
    alone = ratings.keep(ratings.rows == 11)
    assert np.array_equal(asked.solve_with_residuals(alone)[0][11], asked.solve_with_residuals(ratings)[0][11])


def test_no_steps_leave_the_bias_alone(ratings):
    nothing = FrankWolfeSteps(np.zeros(0), np.zeros(0), 1.0)
    ones = np.ones((N_ITEMS, 1), np.float32)
    asked = FrankWolfeProblem(ones, np.zeros(N_ITEMS, np.float32), np.ones(N_ITEMS, bool), nothing, 0.0)
    means = [ratings.values[ratings.indptr[i] : ratings.indptr[i + 1]].mean() for i in range(ratings.n_users)]
    np.testing.assert_allclose(asked.solve(ratings)[:, 0], means, rtol=1e-6)


@pytest.mark.parametrize("wrong", [{"gains": [1.0]}, {"keeps": [np.nan, 1.0]}, {"clip": 0.0}])
def test_damaged_steps_are_refused(wrong):
    good = {"gains": [1.0, 0.5], "keeps": [1.0, 0.5], "clip": 2.0}
    assert FrankWolfeSteps.from_dict(good).to_dict() == good
    with pytest.raises(ValueError, match=r"gain|finite"):
        FrankWolfeSteps.from_dict({**good, **wrong})
