"""Totals against an independent model: what every run could have published, added up by hand."""

import random
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpals.ledger.entries import Entry
from dpals.ledger.ledger import Ledger
from dpals.ledger.totals import Total, budget_of, delta_of, total_of
from dpals.release import accounting
from dpals.release.accounting import Budget, PrivacyBudgetExceeded

DELTA = 1e-6


class Model:
    """A ledger in a few lines: costs in a dictionary, nothing else."""

    def __init__(self):
        self.runs, self.loose, self.searches, self.budget = {}, 0, [], None

    def total(self):
        cost = self.loose
        for run in self.runs.values():
            whole = run["open"] or (run["adaptive"] and run["spent"] > 0)
            cost += max(run["reserved"], run["spent"]) if whole else run["spent"]
        return cost, list(self.searches)

    def fits(self, cost, searches):
        """In 40 digits: (epsilon of the Gaussian part at what is left of delta) + epsilons <= epsilon."""
        if self.budget is None:
            return True
        epsilon, delta = map(Fraction, self.budget)
        left = epsilon - sum(Fraction(e) for e, _ in searches), delta - sum(Fraction(d) for _, d in searches)
        if min(left) < 0:
            return False
        if cost == 0:
            return True
        with mpmath.workdps(40):
            level, small = (mpmath.mpf(x.numerator) / x.denominator for x in left)
            mu = mpmath.sqrt(mpmath.mpf(cost) / 2**64)
            spent = mpmath.ncdf(mu / 2 - level / mu) - mpmath.exp(level) * mpmath.ncdf(-mu / 2 - level / mu)
            return spent <= small


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "adaptive", "spend", "loose", "end", "search", "declare"]),
        st.integers(0, 3),
        st.integers(1, 20),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(steps=STEPS)
def test_a_ledger_is_what_its_entries_allow(steps):
    """Any order of events: the same totals as the model, and refused exactly where the model refuses."""
    ledger, model = Ledger(), Model()
    for kind, which, size in steps:
        run, cost, before = str(which), size * 10**16, model.total()
        act(ledger, model, kind, run, size, cost)
        assert (ledger.spent("films"), list(ledger.total("films").searches)) == model.total()
        if model.total() != before and kind not in ("declare", "end"):
            assert model.fits(*model.total()), "more than the budget"
        assert ledger.spent("films") >= model.loose + sum(run["spent"] for run in model.runs.values())


def act(ledger, model, kind, run, size, cost):
    fresh = {"reserved": 0, "spent": 0, "open": False, "adaptive": False}
    before, runs, loose = model.total(), {name: dict(one) for name, one in model.runs.items()}, model.loose
    searches = list(model.searches)
    if kind == "declare":
        model.budget = size / 10, DELTA
        ledger.declare("films", *model.budget)
        return
    if kind == "end":
        if run in model.runs:
            model.runs[run]["open"] = False
        ledger.end(run)
        return
    if kind == "loose":
        model.loose += cost
        call = lambda: ledger.spend("films", "loose", cost)  # noqa: E731
    elif kind == "spend":
        model.runs.setdefault(run, fresh)["spent"] += cost
        call = lambda: ledger.spend("films", "in a run", cost, run=run)  # noqa: E731
    elif kind == "search":
        model.searches.append((size / 20, size * 1e-8))
        call = lambda: ledger.enter_search("films", "search", *model.searches[-1])  # noqa: E731
    else:
        budget = Budget(size / 10, DELTA)
        one = model.runs.setdefault(run, fresh)
        if not (one["open"] and one["reserved"] >= budget.cost):
            one["adaptive"] |= kind == "adaptive"
        one["open"], one["reserved"] = True, max(one["reserved"], budget.cost)
        call = lambda: ledger.reserve("films", "training", budget, run, adaptive=kind == "adaptive")  # noqa: E731
    grows = model.total() != before
    if grows and not model.fits(*model.total()):
        with pytest.raises(PrivacyBudgetExceeded):
            call()
        model.runs, model.loose, model.searches = runs, loose, searches
    else:
        call()


@settings(max_examples=40, deadline=None)
@given(
    mu=st.floats(1e-3, 3.0),
    searches=st.lists(st.tuples(st.floats(1e-3, 3.0), st.floats(1e-9, 3e-6)), max_size=3),
    delta=st.floats(1e-8, 1e-5),
)
def test_epsilon_of_everything_is_that_of_basic_composition_and_never_below_it(mu, searches, delta):
    total = Total(accounting.cost_of(mu), tuple(searches))
    epsilon, whole = total.at(delta)
    deltas = sum(Fraction(d) for _, d in searches)
    own = Fraction(whole) - deltas
    assert own > 0
    with mpmath.workdps(40):
        root = mpmath.sqrt(mpmath.mpf(total.cost) / 2**64)
        left = mpmath.mpf(epsilon) - mpmath.fsum(mpmath.mpf(e) for e, _ in searches)
        spent = mpmath.ncdf(root / 2 - left / root) - mpmath.exp(left) * mpmath.ncdf(-root / 2 - left / root)
        assert spent <= mpmath.mpf(own.numerator) / own.denominator
        less = left * (1 - mpmath.mpf("1e-8")) - mpmath.mpf("1e-15") * epsilon
        spent = mpmath.ncdf(root / 2 - less / root) - mpmath.exp(less) * mpmath.ncdf(-root / 2 - less / root)
        assert left < 1e-6 or spent > mpmath.mpf(own.numerator) / own.denominator * (1 - mpmath.mpf("1e-9"))
    assert whole == delta or deltas >= Fraction(delta) * (1 - Fraction(1, 10**6))


def test_what_a_budget_allows_is_shown_as_that_budget():
    for epsilon in (0.01, 0.3, 1.0, 1.5, 4.0, 17.25):
        total = Total(Budget(epsilon, DELTA).cost)
        assert total.at(DELTA) == (epsilon, DELTA)
        assert total.text(DELTA).startswith(f"epsilon {epsilon:g} at delta 1e-06 (mu ")


def test_the_delta_that_is_shown():
    entries = [Entry("spend", "films", "counts", 5)]
    assert delta_of(entries, "films") == 1e-6
    entries.append(Entry("reservation", "films", "training", 5, run="run", epsilon=1.0, delta=1e-7))
    assert delta_of(entries, "films") == 1e-7
    entries.append(Entry("budget", "films", "", 5, epsilon=1.0, delta=1e-8))
    entries.append(Entry("reservation", "films", "training", 5, run="other", epsilon=1.0, delta=1e-7))
    assert delta_of(entries, "films") == 1e-8
    assert delta_of(entries, "books") == 1e-6
    assert budget_of(entries, "films") is entries[2]
    assert budget_of(entries, "books") is None


def test_totals_are_by_data_set():
    rng = random.Random(3)
    entries = [Entry("spend", rng.choice("ab"), "counts", rng.randrange(100), run=rng.choice("xy")) for _ in range(50)]
    for dataset in "ab":
        assert total_of(entries, dataset).cost == sum(entry.cost for entry in entries if entry.dataset == dataset)
