import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpals.release.contribution import Contribution, Grid, Pattern, Query, quantize_and_clip

finite = st.floats(-1e6, 1e6)


def squared_norm(coefficients, vector, query):
    """|x|^2 * sum c^2 of one user in Python's unbounded integers."""
    vector = [int(x) for x in vector]
    if query.form == "symmetric":
        norm = sum(x * x for x in vector) ** 2
    else:
        norm = sum(w * x * x for w, x in zip(query.coordinate_weights.tolist(), vector, strict=True))
    return norm * sum(int(c) ** 2 for c in coefficients)


def one_user(coefficients, vector=None, **query):
    """The contribution of a single user who touches the first items of a catalogue of ten."""
    coefficients = np.asarray(coefficients, float)
    pattern = Pattern([0, len(coefficients)], np.arange(len(coefficients)), 10)
    if vector is not None:
        vector = np.asarray([vector], float)
        query.setdefault("form", "vector")
        query["dimension"] = vector.shape[1]
    described = Query("test", 10, **query)
    grid = Grid.of(described, 30)
    result = quantize_and_clip(Contribution(pattern, coefficients, vector), described, grid)
    return result, described, grid


def test_values_within_the_sensitivity_lie_just_below_the_real_ones():
    coefficients, vector = [0.6, -0.3, 0.001], [1.5, -0.7]
    result, _, grid = one_user(coefficients, vector, sensitivity=2.0)
    for real, integer in zip(coefficients, result.coefficients, strict=True):
        assert abs(integer * grid.coefficient_step) <= abs(real) < (abs(integer) + 1) * grid.coefficient_step
        assert np.sign(integer) == np.sign(real)
    np.testing.assert_allclose(result.vectors[0] * grid.vector_step, vector, atol=grid.vector_step)


@pytest.mark.parametrize("form", ["scalar", "vector", "symmetric"])
@pytest.mark.parametrize("bits", [0, 1, 7, 29, 30])
def test_the_grid_makes_the_sensitivity_a_power_of_two(form, bits):
    query = Query("test", 3, sensitivity=1.7, form=form, dimension=1 if form == "scalar" else 4, coefficient_norm=0.3)
    grid = Grid.of(query, bits)
    power = 2 if form == "symmetric" else 1
    assert grid.sensitivity == 2**bits
    assert grid.step == pytest.approx(grid.coefficient_step * grid.vector_step**power, rel=1e-12)
    assert grid.sensitivity * grid.step == pytest.approx(query.sensitivity, rel=1e-12)


@given(
    coefficients=st.lists(finite, max_size=10),
    vector=st.lists(finite, min_size=1, max_size=4),
    form=st.sampled_from(["vector", "symmetric"]),
    sensitivity=st.one_of(st.just(0.0), st.floats(1e-6, 1e6)),
    norm=st.floats(1e-3, 1e3),
    weights=st.lists(st.integers(1, 2**30), min_size=4, max_size=4),
    bits=st.integers(0, 30),
)
def test_every_user_is_within_the_sensitivity_in_integers(coefficients, vector, form, sensitivity, norm, weights, bits):
    query = Query(
        "test",
        10,
        sensitivity=sensitivity,
        form=form,
        dimension=len(vector),
        coefficient_norm=norm,
        weights=tuple(weights[: len(vector)]) if form == "vector" else None,
    )
    pattern = Pattern([0, len(coefficients)], np.arange(len(coefficients)), 10)
    grid = Grid.of(query, bits)
    result = quantize_and_clip(Contribution(pattern, np.array(coefficients), np.array([vector])), query, grid)
    assert squared_norm(result.coefficients, result.vectors[0], query) <= grid.sensitivity**2


@pytest.mark.parametrize("form", ["vector", "symmetric"])
@pytest.mark.parametrize("size", [1.1, 2.0])
def test_a_user_above_the_sensitivity_keeps_direction_and_loses_little_more_than_must_be(form, size):
    result, query, grid = one_user([0.6, -0.8], np.array([0.6, 0.8]) * size, form=form, sensitivity=1.0)
    used = math.sqrt(squared_norm(result.coefficients, result.vectors[0], query))
    assert 0.98 * grid.sensitivity < used <= grid.sensitivity
    assert result.coefficients[1] / result.coefficients[0] == pytest.approx(-4 / 3, rel=0.02)


def test_a_user_within_the_sensitivity_is_left_alone():
    result, _, grid = one_user([0.5, 0.5], sensitivity=1.0)
    assert result.coefficients.tolist() == [int(0.5 / grid.coefficient_step)] * 2


def test_scalars_reach_the_sensitivity_exactly():
    result, query, grid = one_user([1.0], sensitivity=1.0)
    assert squared_norm(result.coefficients, result.vectors[0], query) == grid.sensitivity**2


def test_one_unit_above_the_sensitivity_is_too_much():
    """2^60 + 1 is 2^60 in floats: only integers see the difference."""
    pattern = Pattern([0, 2], [0, 1], 2)
    query = Query("test", 2, sensitivity=2.0**30)
    grid = Grid.of(query, 30)
    result = quantize_and_clip(Contribution(pattern, np.array([2.0**30, 1.0])), query, grid)
    assert grid.coefficient_step == 1.0
    assert squared_norm(result.coefficients, [1], query) <= grid.sensitivity**2


def test_squares_that_overflow_are_not_small():
    """Sixteen times (2^30)^2 is 2^64, which is 0 in 64 bits."""
    pattern = Pattern([0, 16], np.arange(16), 16)
    query = Query("test", 16, sensitivity=1.0)
    result = quantize_and_clip(Contribution(pattern, np.full(16, 1e30)), query, Grid.of(query, 30))
    assert 0 < squared_norm(result.coefficients, [1], query) <= 2**60


def test_users_are_treated_one_by_one():
    """What one user contributes does not change what is taken from another."""
    query = Query("test", 10, sensitivity=1.0, form="vector", dimension=2)
    grid = Grid.of(query, 30)
    pattern = Pattern([0, 2, 4], [0, 1, 0, 1], 10)
    quiet = quantize_and_clip(Contribution(pattern, np.full(4, 0.5), np.array([[0.5, 0.5], [0.1, 0.1]])), query, grid)
    loud = quantize_and_clip(
        Contribution(pattern, np.array([0.5, 0.5, 99.0, 99.0]), np.array([[0.5, 0.5], [77.0, 1]])), query, grid
    )
    assert quiet.coefficients[:2].tolist() == loud.coefficients[:2].tolist()
    assert quiet.vectors[0].tolist() == loud.vectors[0].tolist()


def test_zero_vectors_users_without_items_and_a_sensitivity_of_zero_contribute_nothing():
    zero_vector, query, _ = one_user([1e9, 1e9], [0.0, 0.0], sensitivity=1.0)
    assert squared_norm(zero_vector.coefficients, zero_vector.vectors[0], query) == 0
    no_items, _, _ = one_user([], [1.0], sensitivity=1.0)
    assert no_items.coefficients.size == 0
    nothing_allowed, query, grid = one_user([1.0, 2.0], [3.0], sensitivity=0.0)
    assert grid.sensitivity == 0
    assert squared_norm(nothing_allowed.coefficients, nothing_allowed.vectors[0], query) == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused(bad):
    with pytest.raises(ValueError, match="coefficients must be finite"):
        one_user([1.0, bad], sensitivity=1.0)
    with pytest.raises(ValueError, match="vectors must be finite"):
        one_user([1.0], [bad, 0.0], sensitivity=1.0)


@pytest.mark.parametrize(
    ("indptr", "items"),
    [
        ([0, 2], [3, 3]),
        ([0, 2], [4, 3]),
        ([0, 1], [10]),
        ([0, 1], [-1]),
        ([0, 3], [1, 2]),
        ([1, 2], [1, 2]),
        ([0, 2, 1, 3], [1, 2, 3]),
        ([], []),
    ],
)
def test_a_pattern_that_could_count_a_user_twice_is_refused(indptr, items):
    with pytest.raises(ValueError, match="must"):
        Pattern(indptr, items, 10)


def test_a_pattern_cannot_be_changed_after_it_was_checked():
    items = np.array([1, 2], np.int32)
    pattern = Pattern(np.array([0, 2]), items, 10)
    items[1] = 1
    assert pattern.items.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        pattern.items[0] = 2


def test_a_view_of_a_writable_array_is_copied():
    items = np.array([1, 2], np.int32)
    view = items[:]
    view.setflags(write=False)
    pattern = Pattern(np.array([0, 2]), view, 10)
    items[1] = 1
    assert pattern.items.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sensitivity": -1.0}, "sensitivity"),
        ({"sensitivity": math.nan}, "sensitivity"),
        ({"sensitivity": 1e-300}, "sensitivity"),
        ({"form": "symetric"}, "form must be one of"),
        ({"coefficient_norm": 0.0}, "coefficient_norm"),
        ({"n_items": 0}, "at least one"),
        ({"dimension": 0}, "at least one"),
        ({"form": "scalar", "dimension": 2}, "dimension 1"),
        ({"weights": (1,)}, "one for each"),
        ({"weights": (1, 0, 1)}, "positive integers"),
        ({"form": "symmetric", "weights": (1, 1, 1)}, "weights are for vectors"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Query(**{"purpose": "test", "n_items": 5, "sensitivity": 1.0, "form": "vector", "dimension": 3, **change})


def test_a_contribution_that_does_not_fit_the_query_is_refused():
    pattern = Pattern([0, 1], [0], 10)
    vectors = Query("test", 10, sensitivity=1.0, form="vector", dimension=2)
    scalars = Query("test", 10, sensitivity=1.0)
    wrong_shape = Contribution(pattern, np.ones(1), np.ones((1, 3)))
    for contribution, query in [
        (Contribution(pattern, np.ones(2)), scalars),
        (Contribution(pattern, np.ones(1), np.ones((1, 1))), scalars),
        (Contribution(pattern, np.ones(1)), vectors),
        (wrong_shape, vectors),
        (Contribution(Pattern([0, 1], [0], 11), np.ones(1)), scalars),
    ]:
        with pytest.raises(ValueError, match=r"coefficient|vectors|items"):
            quantize_and_clip(contribution, query, Grid.of(query, 30))
