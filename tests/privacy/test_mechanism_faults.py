"""The mechanism under the worst callers: users far beyond the bound, in odd numbers, twice, out of turn."""

import math
from dataclasses import replace

import numpy as np
import pytest

import dpals
from dpals.audit.recorded_run import record_run
from dpals.audit.simulated_data import odd_users
from dpals.errors import InputError
from dpals.kernels.hashing import hashed_normal
from dpals.release.accounting import COST_BITS, Budget, PrivacyBudgetExceeded
from dpals.release.contribution import MAX_SENSITIVITY_BITS, Contribution, Grid, Pattern, Query, quantize_and_clip
from dpals.release.mechanism import Mechanism
from dpals.release.sums import EXACT_IN_FLOAT64, add_exactly, empty_sums

BUDGET = Budget(epsilon=1.0, delta=1e-5)
N_USERS = 40
MOST_ITEMS = 3
QUERIES = [
    Query("many numbers", 200, 1.0),
    Query("vectors", 200, 1.0, "vector", 3),
    Query("weighted vectors", 20, 1.0, "vector", 4, weights=(1, 2, 7, 2**20)),
    Query("matrices", 20, 1.0, "symmetric", 3),
]
METHODS = [
    (dpals.PooledDPALS(50.0, rank=2), False),
    (dpals.PooledDPALS(50.0, rank=2), True),
    (dpals.PooledDPALS(1.0, rank=35, steps=1), False),
    (dpals.DPALS(rank=3), False),
    (dpals.DPALS(rank=3), True),
    (dpals.AdaDPALS(rank=3), False),
    (dpals.DPFrankWolfe(steps=2), False),
    (dpals.DPSVD(), False),
    (dpals.DPSGD(rank=2, steps=2), False),
    (dpals.SGLD(rank=2, steps=2), False),
    (dpals.PrivateBiases(), False),
    (dpals.ItemMean(), False),
    (dpals.GlobalMean(), False),
    (dpals.Popularity(), True),
    (dpals.PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, tries=3), False),
]


def loud_users(query, grid):
    """Users at the bound, one step above it, far above it, of extreme numbers, and of none."""
    m, d = query.n_items, query.dimension
    user, item, axis = np.arange(N_USERS)[:, None], np.arange(m)[None, :], np.arange(d)[None, :]
    coefficients = query.coefficient_norm * hashed_normal(1, user, item)
    vectors = hashed_normal(2, user, axis) * grid.vector_step
    with np.errstate(over="ignore"):
        coefficients *= 10.0 ** np.linspace(-3, 12, N_USERS)[:, None]
        vectors *= 2.0 ** np.linspace(0, 60, N_USERS)[::-1, None]
    coefficients[0], coefficients[1], coefficients[2] = 0.0, 1e300, -1e300
    # Just above the bound by one step, where rounding to a float would hide it, or by the weight of a coordinate.
    coefficients[3:8], vectors[3:8] = 0.0, 0.0
    coefficients[3:8, 0] = (grid.sensitivity + 0.5) * grid.coefficient_step
    coefficients[4, -1] = coefficients[6, -1] = 1.5 * grid.coefficient_step
    vectors[3:7, 0] = 1.5 * grid.vector_step
    vectors[5:8, -1] += 1.5 * grid.vector_step
    pattern = Pattern(np.arange(0, m * N_USERS + 1, m), np.tile(np.arange(m), N_USERS), m)
    return Contribution(pattern, coefficients.reshape(-1), None if query.form == "scalar" else vectors)


def only(contribution, user):
    m = contribution.pattern.n_items
    row = slice(user * m, (user + 1) * m)
    vectors = None if contribution.vectors is None else contribution.vectors[user : user + 1]
    return Contribution(
        Pattern(np.array([0, m]), contribution.pattern.items[row], m), contribution.coefficients[row], vectors
    )


def exact_sums(contribution, query, grid):
    sums = empty_sums(query)
    add_exactly(sums, quantize_and_clip(contribution, query, grid), query)
    return sums.astype(object)


def check_bound(query, grid, bound):
    """No user moves the release beyond the bound, some come close, and together they add up exactly."""
    users = loud_users(query, grid)
    alone = [exact_sums(only(users, user), query, grid) for user in range(N_USERS)]
    assert np.array_equal(exact_sums(users, query, grid), sum(alone))
    weights = query.coordinate_weights.astype(object)
    moved = [(sums**2 * weights).sum() for sums in alone]
    assert max(moved) <= bound**2
    assert max(moved) > 0.9 * bound**2, "or a bound that is a little too large would not be noticed"


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.purpose)
def test_loud_users_are_scaled_to_the_bound_of_any_query(query):
    check_bound(query, Grid.of(query, MAX_SENSITIVITY_BITS), 2**MAX_SENSITIVITY_BITS)


@pytest.mark.parametrize(
    ("method", "implicit"), METHODS, ids=[f"{type(method).__name__}, {implicit}" for method, implicit in METHODS]
)
def test_loud_users_are_scaled_to_the_bound_of_every_release_of_a_method(method, implicit):
    run = record_run(method, odd_users(12, 40, implicit).ratings(), insecure_seed=1)
    kinds = {
        (release.query.form, release.query.dimension, release.query.weights, release.record.sensitivity): release
        for release in run.releases
    }
    assert kinds
    for release in kinds.values():
        query = replace(release.query, n_items=min(release.query.n_items, MOST_ITEMS))
        record = release.record
        assert record.variance * release.cost >= record.sensitivity**2 << COST_BITS, "the noise that the cost asks for"
        grid = Grid.of(query, round(math.log2(query.sensitivity / record.step)) if query.sensitivity else 0)
        assert grid.sensitivity == record.sensitivity, "the recorded bound is the enforced one"
        check_bound(query, grid, record.sensitivity)


def counts(n_users=2, first_user=0):
    return Contribution(Pattern.one_item(n_users, first_user), np.ones(n_users))


def release(mechanism, *contributions, cost=BUDGET.cost):
    return mechanism.release(Query("number of users", 1, 1.0), contributions, cost)


def test_a_user_may_not_name_an_item_twice():
    with pytest.raises(ValueError, match="item"):
        Pattern(np.array([0, 2]), np.array([1, 1]), 3)


@pytest.mark.parametrize(
    "blocks", [(counts(2), counts(2, first_user=1)), (counts(2), counts(2, first_user=2), counts(1))]
)
def test_a_user_may_not_be_in_two_blocks_of_one_release(blocks):
    with pytest.raises(ValueError, match="twice"):
        release(Mechanism(BUDGET), *blocks)


def test_what_is_no_number_is_refused():
    with pytest.raises(ValueError, match=r"."):
        release(Mechanism(BUDGET), Contribution(Pattern.one_item(1), np.array([np.nan])))


def test_a_mechanism_does_not_spend_more_than_its_budget():
    mechanism = Mechanism(BUDGET)
    release(mechanism, counts(), cost=3 * BUDGET.cost // 5)
    with pytest.raises(PrivacyBudgetExceeded):
        release(mechanism, counts(), cost=3 * BUDGET.cost // 5)


def test_a_release_inside_another_does_not_spend_the_budget_twice():
    mechanism = Mechanism(BUDGET)

    def contributions():
        release(mechanism, counts())
        yield counts()

    with pytest.raises(PrivacyBudgetExceeded):
        mechanism.release(Query("outer", 1, 1.0), contributions(), BUDGET.cost)


def test_sums_of_floats_are_exact_for_as_many_users_as_are_added_at_once():
    assert EXACT_IN_FLOAT64 << MAX_SENSITIVITY_BITS <= 2**53


ROWS = {"users": [1, 1, 1, 2], "items": [5, 5, 6, 5], "values": [1, 5, 3, 2], "rating_range": (1, 5)}


def test_the_rating_range_is_never_taken_from_the_data():
    with pytest.raises(InputError):
        dpals.Ratings.from_arrays([1], [1], [3.0])


def test_a_row_that_occurs_twice_counts_once():
    assert dpals.Ratings.from_arrays(**ROWS).n_ratings == 3


def test_ids_that_differ_in_high_bits_are_different_users():
    assert dpals.Ratings.from_arrays([7, 7 + 2**32, -7], [1, 1, 1]).n_users == 3


def test_a_user_may_not_have_two_rows():
    rows = dpals.Ratings.from_arrays(**ROWS)
    with pytest.raises(InputError):
        replace(rows, users=rows.users[[0, 0]])


@pytest.mark.parametrize("ids", ["users", "items"])
def test_ids_are_not_in_the_order_in_which_they_came(ids):
    columns = ["cy", "ann", "bob", "ann"], ["tea", "rum", "ale", "ale"]
    one, other = (dpals.Ratings.from_arrays(*(column[::step] for column in columns)) for step in (1, -1))
    assert getattr(one, ids).tolist() == getattr(other, ids).tolist()


def test_a_catalogue_that_is_taken_from_the_data_is_declared_public():
    assert any("taken from the data" in fact for fact in dpals.Ratings.from_arrays(**ROWS).public_facts())
