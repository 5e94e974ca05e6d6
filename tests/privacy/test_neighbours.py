"""Remove any user from any data set, however odd, and no release moves by more than its bound."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpals.release.accounting import Budget, cost
from dpals.release.contribution import Contribution, Pattern, Query
from dpals.release.mechanism import Mechanism

N_ITEMS = 5
FORMS = ["scalar", "vector", "symmetric"]

numbers = st.one_of(
    st.floats(-2, 2),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1e308, -1e308, 5e-324, 1.0]),
)


class RecordingMechanism(Mechanism):
    """Keeps the exact sums of each release, as they are before the noise."""

    def exact_sums(self, work, population):
        (self.sums,) = super().exact_sums(work, population)
        return [self.sums.copy()]


@st.composite
def data_sets(draw):
    """Rows of (items, coefficients, vector) of a few users, and a query over them."""
    form = draw(st.sampled_from(FORMS))
    dimension = 1 if form == "scalar" else draw(st.integers(1, 3))
    n_items = draw(st.sampled_from([1, N_ITEMS]))
    rows = draw(
        st.lists(
            st.tuples(
                st.dictionaries(st.integers(0, n_items - 1), numbers),
                st.lists(numbers, min_size=dimension, max_size=dimension),
            ),
            min_size=1,
            max_size=6,
        )
    )
    weights = draw(st.none() | st.lists(st.integers(1, 9), min_size=dimension, max_size=dimension))
    query = Query(
        "test",
        n_items,
        sensitivity=draw(st.sampled_from([0.0, 1e-9, 0.3, 1.0, 17.0, 1e9])),
        form=form,
        dimension=dimension,
        coefficient_norm=draw(st.sampled_from([1e-3, 1.0, 40.0])),
        weights=tuple(weights) if weights and form == "vector" else None,
    )
    return rows, query


def contribution_of(rows, query):
    indptr = np.cumsum([0, *(len(entries) for entries, _ in rows)])
    items = [j for entries, _ in rows for j in sorted(entries)]
    coefficients = [entries[j] for entries, _ in rows for j in sorted(entries)]
    vectors = np.array([vector for _, vector in rows]).reshape(len(rows), query.dimension)
    return Contribution(
        Pattern(indptr, items, query.n_items),
        np.array(coefficients, float),
        None if query.form == "scalar" else vectors,
    )


def released(rows, query, share):
    mechanism = RecordingMechanism(Budget(epsilon=8.0, delta=1e-5))
    mechanism.release(query, contribution_of(rows, query), cost=mechanism.budget.split(share, 1 - share)[0])
    return mechanism.sums.astype(object), mechanism.releases[-1]


@settings(max_examples=400)
@given(data=data_sets(), share=st.sampled_from([1e-9, 1e-6, 0.01, 1.0]), position=st.integers(0, 5))
def test_removing_a_user_moves_a_release_by_at_most_its_bound(data, share, position):
    rows, query = data
    position %= len(rows)
    with_user, release = released(rows, query, share)
    without_user, same_release = released(rows[:position] + rows[position + 1 :], query, share)
    moved = ((with_user - without_user) ** 2 * query.coordinate_weights.astype(object)).sum()
    assert moved <= release.sensitivity**2
    assert release == same_release, "noise, grid or cost depend on the data"


@pytest.mark.parametrize("form", FORMS)
def test_a_loud_user_reaches_the_bound(form):
    """The bound is not only kept: it is used, so no accuracy is given away."""
    query = Query("test", N_ITEMS, sensitivity=1.0, form=form, dimension=1 if form == "scalar" else 3)
    loud = ({j: 1.0 + j / 9 for j in range(N_ITEMS)}, [0.9] * query.dimension)
    sums, release = released([loud], query, 1.0)
    moved = (sums**2 * query.coordinate_weights.astype(object)).sum()
    assert 0.98 * release.sensitivity**2 < moved <= release.sensitivity**2


@pytest.mark.parametrize("form", FORMS)
def test_the_noise_is_as_large_as_the_cost_says(form):
    query = Query("test", N_ITEMS, sensitivity=1.0, form=form, dimension=1 if form == "scalar" else 3)
    _, release = released([({0: 1.0}, [1.0] * query.dimension)], query, 0.5)
    assert release.cost == cost(release.sensitivity, release.variance)
    assert release.variance * release.cost >= release.sensitivity**2 * 2**64
