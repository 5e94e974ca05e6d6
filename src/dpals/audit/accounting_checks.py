"""Whether releases, ledger and statement agree, and whether what the statement promises follows from them."""

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
from dpals.release.accounting import Release
from dpals.statement.record import Statement

_COST_UNIT = Fraction(1, 2**accounting.COST_BITS)
_DIGITS = 60


def accounting_errors(run: RecordedRun, epsilon: float | None, delta: float) -> Iterator[str]:
    """Where the releases that were made are not those that were paid for and stated, or the statement is not true.

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
    """Numbers that the text of the statement rounds down."""
    text = str(statement)
    for name in ("epsilon", "delta", "mu"):
        value = getattr(statement, name)
        printed = re.search(rf"\b{name} = ([\d.e+-]*\d)", text)
        if value is not None and (printed is None or float(printed[1]) < value):
            yield f"the statement prints {name} as {printed and printed[1]}, and it is {value}"


def exact_cost(releases: Iterable[Release]) -> Fraction:
    """Squared mu of releases together, from their bounds and the variances of their noise."""
    return sum((Fraction(release.sensitivity**2, release.variance) for release in releases), Fraction(0))


def _ledger_errors(run: RecordedRun, statement: Statement) -> Iterator[str]:
    ledger = run.ledger or Ledger()
    spends = [entry for entry in ledger.entries() if entry.kind == "spend"]
    made = [release.query.purpose for release in run.releases]
    paid = [entry.purpose for entry in spends]
    stated = [release.purpose for release in statement.releases]
    if made != paid:
        yield f"{len(made)} releases were made and {len(paid)} were paid for: {_first_difference(made, paid)}"
    if made != stated:
        difference = _first_difference(made, stated)
        yield f"{len(made)} releases were made and {len(stated)} are in the statement: {difference}"
    cost = exact_cost(release.record for release in run.releases)
    if sum(entry.cost for entry in spends) * _COST_UNIT < cost or ledger.spent(statement.dataset) * _COST_UNIT < cost:
        yield "the ledger adds up to less than bound^2 / variance of all releases"
    if statement.mu is None or Fraction(statement.mu) ** 2 < cost:
        yield f"the statement says mu {statement.mu}, the releases add up to {math.sqrt(cost)}"
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
    due = selection.epsilon(chosen.mu, statement.delta, selection.tries_distribution(chosen.distribution, chosen.tries))
    if statement.epsilon < due * (1 - 1e-9):  # mu and epsilon of a search are both rounded to the safe side
        yield f"tries of mu {chosen.mu} make epsilon {due}, and the statement says {statement.epsilon}"


def _first_difference(ones: list[str], others: list[str]) -> str:
    """The first place in which two lists are not the same."""
    for one, other in zip(ones, others, strict=False):
        if one != other:
            return f"{one!r} against {other!r}"
    longer = max(ones, others, key=len)
    return f"{longer[min(len(ones), len(others))]!r} is in one of them only"


def exact_delta(mu: float, epsilon: float) -> Any:
    """The delta of Gaussian differential privacy, in 60 digits (Dong, Roth & Su 2022, corollary 2.13)."""
    if mu == 0:
        return 0
    with mpmath.workdps(_DIGITS):
        mean, level = mpmath.mpf(mu), mpmath.mpf(epsilon)
        near, far = mean / 2 - level / mean, -mean / 2 - level / mean
        return mpmath.ncdf(near) - mpmath.exp(level) * mpmath.ncdf(far)


def adaptive_cost_errors(*runs: RecordedRun) -> Iterator[str]:
    """Costs that are chosen after seeing releases are information themselves: only their total may be promised.

    Parameters
    ----------
    runs
        Runs of one method that saw different releases.
    """
    costs = [[release.cost for release in run.releases] for run in runs]
    if all(each == costs[0] for each in costs):
        return
    for run in runs:
        statement, mechanism = run.model.privacy, run.mechanisms[0]
        if statement is None or (statement.mu is not None and statement.mu < mechanism.budget.mu):
            yield f"costs differ between runs, and the statement of one says mu {statement and statement.mu} only"
        elif statement.mu is not None and mechanism.ledger.spent(statement.dataset) < mechanism.budget.cost:
            yield "costs differ between runs, and the ledger has less than the whole budget of one"


def composition_errors(estimator: PrivateEstimator, ratings: Ratings) -> Iterator[str]:
    """Where several runs on one data set, in one ledger, are not added up as they should be."""
    with TemporaryDirectory() as folder:
        yield from _runs_in_one_ledger(estimator, ratings, Ledger(Path(folder, "ledger.db")), "Users of «an audit»")
    with failures_as_findings():
        alone = copy.deepcopy(estimator).fit(ratings).privacy
    if alone.dataset_mu is not None or "unknown" not in str(alone):
        yield "the statement of a run without a ledger says that it knows all others"


def _runs_in_one_ledger(estimator: PrivateEstimator, ratings: Ratings, ledger: Ledger, name: str) -> Iterator[str]:
    cost = Fraction(0)
    for seed in (None, None, 1):
        method = copy.deepcopy(estimator).set_params(insecure_seed=seed)
        with failures_as_findings():
            statement = method.fit(ratings, ledger=ledger, dataset=name).privacy
        cost += exact_cost(statement.releases)
        mu = math.sqrt(cost) * (1 - 1e-12)  # not above the true root
        if statement.dataset != name or ledger.spent(name) * _COST_UNIT < cost:
            yield f"what is spent on {name!r} is not recorded under that name"
        if statement.dataset_mu is None or Fraction(statement.dataset_mu) ** 2 < cost:
            yield "the statement says less than all runs on the data add up to"
        if statement.dataset_epsilon is None or exact_delta(mu, statement.dataset_epsilon) > statement.delta:
            yield "the statement says a smaller epsilon than that of all runs on the data"
        if ledger.open_runs():
            yield "a run that has ended still holds what it reserved"
        if statement.dataset_seeded != (seed is not None and bool(statement.releases)):
            yield "the statement does not say whether runs on the data were seeded"
