"""Are the releases, the ledger and the statement one and the same story, and is its end true?"""

import copy
import math
import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mpmath

from dpals.audit.recorded_run import RecordedRun, failures_as_findings
from dpals.data.ratings import Ratings
from dpals.ledger.ledger import Ledger
from dpals.methods.base.estimator import PrivateEstimator
from dpals.release import accounting, selection
from dpals.release.mechanism import Release
from dpals.statement.record import Statement

_UNIT = Fraction(1, 2**accounting.COST_BITS)
_DIGITS = 60


def accounting_errors(run: RecordedRun, epsilon: float | None, delta: float) -> Iterator[str]:
    """Where the releases that were made are not those that were paid for and stated, or the end is not true.

    Parameters
    ----------
    epsilon, delta
        What the method was told to keep to; an epsilon of None where it was given its noise.
    """
    statement = run.model.privacy
    if statement is None:
        yield "there is no statement"
        return
    if not statement.is_private:
        yield "the statement says that the run was not private"
    if statement.selection is not None:
        yield from _search_errors(run, statement)
    else:
        yield from _ledger_errors(run, statement)
    if epsilon is not None and statement.epsilon > epsilon:
        yield f"the statement says epsilon {statement.epsilon}, more than was asked for, {epsilon}"
    if statement.delta > delta:
        yield f"the statement says delta {statement.delta}, more than was asked for, {delta}"
    yield from _rounding_errors(statement)


def _rounding_errors(statement: Statement) -> Iterator[str]:
    """Numbers that were rounded down for people to read."""
    text = str(statement)
    for name in ("epsilon", "delta", "mu"):
        value = getattr(statement, name)
        printed = re.search(rf"\b{name} = ([\d.e+-]*\d)", text)
        if value is not None and (printed is None or float(printed[1]) < value):
            yield f"the statement prints {name} as {printed and printed[1]}, and it is {value}"


def exact_cost(releases: Iterable[Release]) -> Fraction:
    """Squared mu of releases together, from their bounds and the variances of their noise."""
    return sum((Fraction(release.bound**2, release.variance) for release in releases), Fraction(0))


def _ledger_errors(run: RecordedRun, statement: Statement) -> Iterator[str]:
    ledger = run.ledger or Ledger()
    spends = [entry for entry in ledger.entries() if entry.kind == "spend"]
    made = [release.query.purpose for release in run.releases]
    paid = [entry.purpose for entry in spends]
    stated = [release.purpose for release in statement.releases]
    if made != paid:
        yield f"{len(made)} releases were made and {len(paid)} were paid for: {_first_other(made, paid)}"
    if made != stated:
        yield f"{len(made)} releases were made and {len(stated)} are in the statement: {_first_other(made, stated)}"
    true = exact_cost(release.record for release in run.releases)
    if sum(entry.cost for entry in spends) * _UNIT < true or ledger.spent(statement.dataset) * _UNIT < true:
        yield "the ledger adds up to less than bound^2 / variance of all releases"
    if statement.mu is None or Fraction(statement.mu) ** 2 < true:
        yield f"the statement says mu {statement.mu}, the releases add up to {math.sqrt(true)}"
    elif exact_delta(statement.mu, statement.epsilon) > statement.delta:
        yield f"mu {statement.mu} is not epsilon {statement.epsilon} at delta {statement.delta}"


def _search_errors(run: RecordedRun, statement: Statement) -> Iterator[str]:
    """For a search: each try keeps to the mu that the statement gives for one. A try ends with its score."""
    assert statement.selection is not None
    entered = [] if run.ledger is None else list(run.ledger.total(statement.dataset).searches)
    if entered != [(statement.epsilon, statement.delta)]:
        yield f"the statement says epsilon {statement.epsilon} at delta {statement.delta}, the ledger has {entered}"
    spent = Fraction(0)
    for release in run.releases:
        spent += exact_cost([release.record])
        if release.query.purpose.startswith("score"):
            if spent > Fraction(statement.selection.mu) ** 2:
                yield f"a try costs mu {math.sqrt(spent)}, the statement says {statement.selection.mu}"
            spent = Fraction(0)
    if spent:
        yield "releases were made outside any try"
    chosen = statement.selection
    due = selection.epsilon(chosen.mu, statement.delta, selection.tries_of(chosen.distribution, chosen.tries))
    if statement.epsilon < due * (1 - 1e-9):  # mu and epsilon of a search are both rounded to the safe side
        yield f"tries of mu {chosen.mu} make epsilon {due}, and the statement says {statement.epsilon}"


def _first_other(ones: list[str], others: list[str]) -> str:
    """The first place in which two lists are not the same."""
    for one, other in zip(ones, others, strict=False):
        if one != other:
            return f"{one!r} against {other!r}"
    longer = max(ones, others, key=len)
    return f"{longer[min(len(ones), len(others))]!r} is in one of them only"


def untrue_conversions() -> Iterator[str]:
    """Values of `dpals.accounting` that promise more than is true, compared with 60 digits."""
    if accounting.compose([3.0, 4.0, 12.0]) < 13.0:
        yield "compose([3, 4, 12]) is below 13"
    for mu in (0.01, 0.2367, 0.5, 1.0, 3.0, 10.0):
        for epsilon in (0.1, 1.0, 5.0):
            if accounting.delta(mu, epsilon) < exact_delta(mu, epsilon):
                yield f"delta({mu}, {epsilon}) is below the true value"
        if accounting.attack_power(mu, 0.01) < _true_power(mu, 0.01):
            yield f"attack_power({mu}, 0.01) is below the true value"
        for delta in (1e-9, 1e-6, 1e-5, 1e-2):
            if exact_delta(mu, accounting.epsilon(mu, delta)) > delta:
                yield f"epsilon({mu}, {delta}) is below the true value"
    for epsilon in (0.1, 1.0, 5.0, 20.0):
        for delta in (1e-9, 1e-6, 1e-5):
            if exact_delta(accounting.mu(epsilon, delta), epsilon) > delta:
                yield f"mu({epsilon}, {delta}) is above the true value"


def _root(cost: Fraction) -> float:
    """The square root, within the last digits of floating point and not above it."""
    return math.sqrt(cost) * (1 - 1e-12)


def exact_delta(mu: float, epsilon: float) -> Any:
    """The delta of Gaussian differential privacy, in 60 digits (Dong, Roth & Su 2022, corollary 2.13)."""
    if mu == 0:
        return 0
    with mpmath.workdps(_DIGITS):
        mean, level = mpmath.mpf(mu), mpmath.mpf(epsilon)
        near, far = mean / 2 - level / mean, -mean / 2 - level / mean
        return mpmath.ncdf(near) - mpmath.exp(level) * mpmath.ncdf(far)


def _true_power(mu: float, false_alarms: float) -> float:
    """Members that an optimal attack recognises, but for the last digits of floating point."""
    with mpmath.workdps(_DIGITS):
        line = mpmath.findroot(lambda x: mpmath.ncdf(-x) - false_alarms, 2.3)
        return float(mpmath.ncdf(mu - line)) * (1 - 1e-12)


def composition_errors(estimator: PrivateEstimator, ratings: Ratings) -> Iterator[str]:
    """What several runs on one data set, in one ledger, do not add up to."""
    with TemporaryDirectory() as folder:
        yield from _forgotten(estimator, ratings, Ledger(Path(folder, "ledger.db")), "People of «an audit»")
    with failures_as_findings():
        alone = copy.deepcopy(estimator).fit(ratings).privacy
    if alone.dataset_mu is not None or "unknown" not in str(alone):
        yield "the statement of a run without a ledger says that it knows all others"


def _forgotten(estimator: PrivateEstimator, ratings: Ratings, ledger: Ledger, name: str) -> Iterator[str]:
    costs = Fraction(0)
    for seed in (None, None, 1):
        method = copy.deepcopy(estimator).set_params(insecure_seed=seed)
        with failures_as_findings():
            statement = method.fit(ratings, ledger=ledger, dataset=name).privacy
        costs += exact_cost(statement.releases)
        if statement.dataset != name or ledger.spent(name) * _UNIT < costs:
            yield f"what is spent on {name!r} is not recorded under that name"
        if statement.dataset_mu is None or Fraction(statement.dataset_mu) ** 2 < costs:
            yield "the statement says less than all runs on the data add up to"
        if statement.dataset_epsilon is None or exact_delta(_root(costs), statement.dataset_epsilon) > statement.delta:
            yield "the statement says a smaller epsilon than that of all runs on the data"
        if ledger.open_runs():
            yield "a run that has ended still holds what it reserved"
        if statement.dataset_seeded != (seed is not None and bool(statement.releases)):
            yield "the statement does not say whether runs on the data were seeded"
