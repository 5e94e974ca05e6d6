from dataclasses import replace

import numpy as np
import pytest

from dpals.release import sums as module
from dpals.release.contribution import Contribution, Grid, Pattern, Query, quantize_and_clip
from dpals.release.sums import MAX_USERS, add_exactly, empty_sums

N_USERS, N_ITEMS, RANK = 1_000, 37, 5
FORMS = ["scalar", "vector", "symmetric"]


def query_of(form):
    return Query("test", N_ITEMS, sensitivity=1.0, form=form, dimension=1 if form == "scalar" else RANK)


@pytest.fixture(scope="module")
def block():
    """A block of users of uneven length; item 0 is touched by everyone."""
    rng = np.random.default_rng(7)
    rows = [np.unique(np.r_[0, rng.choice(N_ITEMS, size=rng.integers(0, 30), replace=False)]) for _ in range(N_USERS)]
    pattern = Pattern(np.r_[0, np.cumsum([len(r) for r in rows])], np.concatenate(rows), N_ITEMS)
    return Contribution(pattern, rng.standard_normal(len(pattern.items)) / 4, rng.standard_normal((N_USERS, RANK)) / 2)


def contributed(block, form):
    return replace(block, vectors=None) if form == "scalar" else block


def part(block, users, first_user=0):
    """The contributions of some of the users, in the order given."""
    rows = [np.arange(block.pattern.indptr[i], block.pattern.indptr[i + 1]) for i in users]
    entries = np.concatenate([np.empty(0, np.int64), *rows])
    pattern = Pattern(
        np.r_[0, np.cumsum([len(r) for r in rows], dtype=np.int64)],
        block.pattern.items[entries],
        N_ITEMS,
        first_user,
    )
    vectors = None if block.vectors is None else block.vectors[users]
    return Contribution(pattern, block.coefficients[entries], vectors)


def exact(contributions, form, threads=None):
    query = query_of(form)
    result = empty_sums(query)
    for contribution in contributions:
        add_exactly(result, quantize_and_clip(contribution, query, Grid.of(query, 30)), query, threads)
    return result


@pytest.mark.parametrize("form", FORMS)
def test_sums_are_those_of_unbounded_integers(block, form):
    query = query_of(form)
    contribution = quantize_and_clip(contributed(block, form), query, Grid.of(query, 30))
    expected = np.zeros(empty_sums(query).shape, dtype=object)
    triangle = np.triu_indices(query.dimension)
    for i in range(N_USERS):
        x = contribution.vectors[i].astype(object)
        published = np.outer(x, x)[triangle] if form == "symmetric" else x
        for e in range(block.pattern.indptr[i], block.pattern.indptr[i + 1]):
            expected[block.pattern.items[e]] += int(contribution.coefficients[e]) * published
    assert np.array_equal(exact([contributed(block, form)], form), expected)


@pytest.mark.parametrize("form", FORMS)
def test_same_bits_for_any_threads_order_and_blocks(block, form):
    contribution = contributed(block, form)
    reference = exact([contribution], form, threads=1)
    assert np.array_equal(reference, exact([contribution], form, threads=2))
    shuffled = np.random.default_rng(1).permutation(N_USERS)
    assert np.array_equal(reference, exact([part(contribution, shuffled)], form))
    for blocks in range(1, 18):
        parts = [part(contribution, users) for users in np.array_split(shuffled, blocks)]
        assert np.array_equal(reference, exact(parts, form))


@pytest.mark.parametrize("form", ["scalar", "vector"])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_same_bits_where_threads_share_a_large_table(block, form, threads, monkeypatch):
    reference = exact([contributed(block, form)], form, threads)
    monkeypatch.setattr(module, "_SMALL_TABLE", 0)
    assert np.array_equal(reference, exact([contributed(block, form)], form, threads))


@pytest.mark.parametrize("form", FORMS)
def test_sums_stay_exact_where_everyone_reaches_the_sensitivity(form):
    """The largest numbers that can occur: odd integers near 2^30, all of one sign, on one item."""
    n_users = 70_000
    query = replace(query_of(form), n_items=1)
    pattern = Pattern.one_item(n_users)
    vectors = None if form == "scalar" else np.tile(np.linspace(0.9, 0.1, RANK) / 1.5, (n_users, 1))
    contribution = quantize_and_clip(
        Contribution(pattern, np.full(n_users, 0.99999), vectors), query, Grid.of(query, 30)
    )
    result = empty_sums(query)
    add_exactly(result, contribution, query)
    x = contribution.vectors[0].astype(object)
    one = np.outer(x, x)[np.triu_indices(query.dimension)] if form == "symmetric" else x
    assert result[0].tolist() == (int(contribution.coefficients[0]) * one * n_users).tolist()


@pytest.mark.parametrize("form", FORMS)
def test_no_users_and_users_without_items_add_nothing(form):
    query = query_of(form)
    for n_users in (0, 3):
        pattern = Pattern(np.zeros(n_users + 1), [], N_ITEMS)
        vectors = None if form == "scalar" else np.ones((n_users, RANK))
        assert not exact([Contribution(pattern, np.empty(0), vectors)], form).any()
    assert empty_sums(query).shape == (N_ITEMS, {"scalar": 1, "vector": 5, "symmetric": 15}[form])


def test_the_float_budget_is_checked_up_front():
    assert module.EXACT_IN_FLOAT64 * 2**30 < 2**53
    assert MAX_USERS * 2**30 <= 2**63
    query = query_of("scalar")
    far = Pattern([0, 1], [0], N_ITEMS, first_user=MAX_USERS)
    with pytest.raises(ValueError, match="at most"):
        add_exactly(
            empty_sums(query), quantize_and_clip(Contribution(far, np.ones(1)), query, Grid.of(query, 30)), query
        )
