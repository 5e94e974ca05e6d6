from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpals.ledger import amounts
from dpals.ledger.amounts import down, up
from dpals.release.accounting import mu

positive = st.floats(min_value=1e-300, max_value=1e300)


@given(value=positive, digits=st.integers(1, 15))
def test_what_is_shown_is_on_the_safe_side_and_close(value, digits):
    """The text is the number that people read, so it is compared as an exact decimal."""
    high, low = Fraction(up(value, digits)), Fraction(down(value, digits))
    shown = Fraction(repr(value))
    assert low <= shown <= high
    assert high - low <= shown / 10 ** (digits - 1)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.25, 1e-6, 1234.0])
def test_a_short_number_is_shown_as_it_is(value):
    assert float(up(value)) == float(down(value)) == value


def test_a_budget_is_rounded_down_and_a_spend_up():
    assert amounts.allowed(1.00009, 1e-6).startswith("epsilon 1 at delta 1e-06 (mu 0.23")
    assert amounts.spent(1.00009, 1e-6) == "epsilon 1.001 at delta 1e-06"
    words, _, shown = amounts.allowed(0.7, 3e-7).rpartition("mu ")
    assert words == "epsilon 0.7 at delta 3e-07 ("
    assert float(shown.rstrip(")")) <= mu(0.7, 3e-7)


def test_trainings_and_searches_are_named_apart():
    search = [(0.5, 1e-6)]
    assert amounts.total_spent(1.0, 1e-6, 0.2, []) == "epsilon 1 at delta 1e-06 (mu 0.2)"
    assert amounts.total_spent(1.5, 2e-6, 0.2, search).endswith(
        "(training runs: mu 0.2; a search: epsilon 0.5 at delta 1e-06)"
    )
    assert amounts.total_spent(0.5, 1e-6, 0.0, search).endswith("(a search: epsilon 0.5 at delta 1e-06)")
    assert amounts.total_spent(1.0, 1e-6, 0.2, [], partial=True).startswith("at least epsilon 1 ")
