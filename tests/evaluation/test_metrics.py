"""Metrics against their definitions, user by user, with Python's sets."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import dpals
from dpals.evaluation.metrics import ndcg_at_k, recall_at_k, rmse

N_ITEMS = 12
items = st.integers(0, N_ITEMS - 1)


def recall_of(recommended, wanted, k):
    return len(set(recommended[:k]) & wanted) / min(k, len(wanted))


def ndcg_of(recommended, wanted, k):
    gain = sum(1 / math.log2(place + 2) for place, item in enumerate(recommended[:k]) if item in wanted)
    return gain / sum(1 / math.log2(place + 2) for place in range(min(k, len(wanted))))


@st.composite
def cases(draw):
    """Targets of some users, and as many recommendations each, the last of them possibly empty (-1)."""
    wanted = draw(st.lists(st.sets(items), min_size=1, max_size=6).filter(any))
    length = draw(st.integers(1, N_ITEMS))
    lists = [draw(st.lists(items, min_size=length, max_size=length, unique=True)) for _ in wanted]
    filled = [draw(st.integers(0, length)) for _ in wanted]
    lists = [row[:count] + [-1] * (length - count) for row, count in zip(lists, filled, strict=True)]
    return wanted, lists, draw(st.integers(1, length))


def targets_of(wanted, ids):
    matrix = dpals.Ratings.from_csr(_matrix(wanted), items=ids, implicit=True)
    assert matrix.n_users == len(wanted)
    return matrix


def _matrix(wanted):
    dense = np.zeros((len(wanted), N_ITEMS))
    for user, row in enumerate(wanted):
        dense[user, sorted(row)] = 1
    return csr_array(dense)


@pytest.mark.parametrize(("metric", "of_user"), [(recall_at_k, recall_of), (ndcg_at_k, ndcg_of)])
@given(case=cases())
def test_mean_of_the_definition_over_users_with_targets(metric, of_user, case):
    wanted, lists, k = case
    expected = np.mean(
        [of_user(row, row_wanted, k) for row, row_wanted in zip(lists, wanted, strict=True) if row_wanted]
    )

    numbers = [3 * item + 5 for item in range(N_ITEMS)][::-1]
    names = [f"фильм {item}" for item in range(N_ITEMS)]
    ids = targets_of(wanted, numbers)
    by_number = [[numbers[item] if item >= 0 else -7 for item in row] for row in lists]
    by_name = np.array([[names[item] if item >= 0 else "" for item in row] for row in lists])
    text = targets_of(wanted, names)

    assert metric(lists, ids, k, by_index=True) == pytest.approx(expected)
    assert metric(by_number, ids, k) == pytest.approx(expected)
    assert metric(by_name, text, k) == pytest.approx(expected)
    assert metric(by_name.astype(np.dtypes.StringDType()), text, k) == pytest.approx(expected)


def test_the_order_matters_to_ndcg_only():
    targets = targets_of([{0, 1}], range(N_ITEMS))
    early, late = [[0, 1, 2, 3]], [[2, 3, 0, 1]]
    assert recall_at_k(early, targets, 4) == recall_at_k(late, targets, 4) == 1
    assert ndcg_at_k(early, targets, 4) == 1 > ndcg_at_k(late, targets, 4)


def test_many_users_against_dense_arrays():
    rng = np.random.default_rng(1)
    wanted = rng.random((5_000, N_ITEMS)) < 0.3
    lists = np.argsort(rng.random((5_000, N_ITEMS)), axis=1)
    targets = targets_of([set(np.flatnonzero(row)) for row in wanted], range(N_ITEMS))
    hits = np.take_along_axis(wanted, lists, 1)[:, :4].sum(1)
    some = wanted.any(1)
    expected = (hits[some] / np.minimum(4, wanted.sum(1)[some])).mean()
    assert recall_at_k(lists, targets, 4) == pytest.approx(expected)
    assert recall_at_k(lists, targets, N_ITEMS) == 1


@pytest.mark.parametrize("metric", [recall_at_k, ndcg_at_k])
@pytest.mark.parametrize(
    ("recommended", "options", "message"),
    [
        ([[0, 1]], {"k": 3}, "at least k = 3 columns"),
        ([[0, 1]], {"k": 0}, "at least k = 0 columns"),
        ([[0, 1], [0, 1]], {"k": 2}, "each of the 1 users"),
        ([0, 1], {"k": 1}, "shape"),
        ([[0, 4, 0]], {"k": 3}, "more than once to the user 0"),
        ([["tea", "rum"]], {"k": 2}, "must be whole numbers here.*'tea'"),
        ([[0.0, 1.0]], {"k": 2}, "must be whole numbers here, not float64"),
        ([[0, N_ITEMS]], {"k": 2, "by_index": True}, f"between 0 and {N_ITEMS - 1}"),
        ([[0, -2]], {"k": 2, "by_index": True}, "-1 for none"),
        ([["tea", "rum"]], {"k": 2, "by_index": True}, "whole numbers"),
    ],
)
def test_what_does_not_fit_is_refused(metric, recommended, options, message):
    with pytest.raises(dpals.InputError, match=message):
        metric(recommended, targets_of([{1, 2}], range(N_ITEMS)), **options)


def test_numbers_for_text_items_are_refused():
    with pytest.raises(dpals.InputError, match="must be text here"):
        recall_at_k([[1, 2]], targets_of([{1}], [f"item {at}" for at in range(N_ITEMS)]), k=2)


@pytest.mark.parametrize("metric", [recall_at_k, ndcg_at_k])
def test_nothing_to_compare_is_refused(metric):
    with pytest.raises(ValueError, match="no user has a target"):
        metric([[0], [1]], targets_of([set(), set()], range(N_ITEMS)), k=1)


@given(st.lists(st.tuples(*[st.floats(-100, 100)] * 2), min_size=1))
def test_rmse_is_its_definition(pairs):
    expected = math.sqrt(math.fsum((a - b) ** 2 for a, b in pairs) / len(pairs))
    assert rmse(*zip(*pairs, strict=True)) == pytest.approx(expected)


@pytest.mark.parametrize("truth", [[[1.0], [2.0]], [1.0], 1.0])
def test_rmse_does_not_broadcast(truth):
    with pytest.raises(ValueError, match="in pairs"):
        rmse([1.0, 2.0], truth)


def test_rmse_of_nothing_is_refused():
    with pytest.raises(ValueError, match="nothing to compare"):
        rmse([], [])
