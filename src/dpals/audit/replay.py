"""Level 1: the method on neighbouring data sets, with recorded releases, in exact integers."""

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from dpals.audit import neighbours
from dpals.audit.accounting_checks import accounting_errors, composition_errors, untrue_conversions
from dpals.audit.simulated_data import Rows, four_users, smallest_catalogue, odd_users
from dpals.audit.drills import beyond_bounds, breaches
from dpals.audit.ledger_drills import ledger_breaches
from dpals.audit.neighbours import differences, share_of_bound
from dpals.audit.recorded_run import RecordedRelease, RecordedRun, TrainingFailed, checked_subject, record_run
from dpals.audit.report import Check, Level
from dpals.audit.resume_drills import resume_breaches, checkpoint_leaks
from dpals.audit.search_replay import search_leaks, seed_with_several_tries
from dpals.audit.serving import serving_differences
from dpals.audit.way_in import Findings, neighbours_read, neighbours_trained
from dpals.methods.base.estimator import PrivateEstimator
from dpals.methods.private_search import PrivateSearch

_SEED = 1
_MUCH = 50.0
_LOUDER = 10.0
_CROWDS = (  # people, items, the share of them that the most active people have, and threads
    (30_001, 60, 0.1, 1),  # so many people that there are several blocks, and settings for large data matter
    (61, 500, 1.0, 2),  # so many items that settings for large catalogues matter
)
_DELTAS = (0.29, 0.03)  # between one, or a tenth, over four people and over three
_SHOWN = 3
_READ_FOR_EACH = 50  # pairs of files to read for each of the people
_QUESTIONS = {
    neighbours.BOUND: "no user moves a release by more than its bound",
    neighbours.RECORD: "number, shape, bound, noise and cost of releases do not depend on who is there",
    neighbours.CONTRIBUTIONS: "what a user contributes depends on nobody else, to the last bit",
    neighbours.MODEL: "the published model depends on the data through releases only",
    neighbours.LOG: "what is logged or printed depends on the data through releases only",
}


def audit_replay(estimator: PrivateEstimator, implicit: bool = False, people: int = 40) -> Level:
    """Compare runs on neighbouring data sets that are given the same releases, and the books with both.

    Formal guarantee: none; it can show a broken promise, on the data that it tries, and not prove one that holds. What
    is compared is compared in integers and to the last bit, so there are no false alarms.

    Parameters
    ----------
    estimator
        A private method with its settings. It is not changed: copies of it are trained.
    implicit
        Whether to give it implicit feedback instead of ratings.
    people
        How many people there are. Each is removed in turn.

    Examples
    --------
    >>> import dpals
    >>> audit_replay(dpals.GlobalMean(epsilon=1.0), people=5).verdict
    'passed'
    """
    estimator = checked_subject(estimator)
    n_items = smallest_catalogue(estimator, lambda size: four_users(size, implicit).ratings())
    rows, few = odd_users(people, n_items, implicit), four_users(n_items, implicit)
    runs = _with_everyone(estimator, rows)
    checks, facts = _neighbour_checks(estimator, runs, rows, few)
    checks += [
        _crowd_check(runs.richer, n_items, implicit),
        *_book_checks(estimator, runs, rows),
        *_drill_checks(runs),
        _check("what a user is served depends on nobody else", serving_differences(runs.loud.model, rows), "alone and together"),
        *_way_in_checks(runs, n_items, implicit, people),
    ]
    if isinstance(estimator, PrivateSearch):
        leaks = search_leaks(estimator, rows, runs.rich.estimator.insecure_seed)
        checks.append(_check("a search gives away nothing but its best try", leaks, "with and without other tries"))
    else:
        checks += [
            _check("runs on the same data add up", composition_errors(estimator, few.ratings()), "three runs in one ledger"),
            _check("a checkpoint has nothing but releases", checkpoint_leaks(estimator, few), "with and without a user"),
        ]
    return Level(1, "replay", tuple(checks), facts)


@dataclass(frozen=True, eq=False)
class _Runs:
    """Trainings on everyone: as it is; of the method with much more budget; and with louder releases as well."""

    usual: RecordedRun
    richer: PrivateEstimator
    rich: RecordedRun
    loud: RecordedRun


def _with_everyone(estimator: PrivateEstimator, rows: Rows) -> _Runs:
    ratings, richer = rows.ratings(), _with_more_budget(estimator)
    seed, usual_seed = _SEED, None
    if isinstance(estimator, PrivateSearch):  # without a seed, neighbours would make other tries
        seed = usual_seed = seed_with_several_tries(estimator, ratings)
    rich = record_run(richer, ratings, insecure_seed=seed)
    loud = record_run(richer, ratings, _louder(rich.releases), insecure_seed=seed)
    return _Runs(record_run(estimator, ratings, insecure_seed=usual_seed), richer, rich, loud)


def _neighbour_checks(
    estimator: PrivateEstimator, runs: _Runs, rows: Rows, few: Rows
) -> tuple[list[Check], dict[str, float]]:
    """What differs when someone is removed, and the largest share of a bound that anyone used."""
    found: dict[str, list[str]] = {kind: [] for kind in _QUESTIONS}
    pairs = (estimator, runs.usual), (runs.richer, runs.loud)
    largest = max(_compare_neighbours(*pair, rows, found) for pair in pairs)
    epsilon, delta = _asked(estimator)
    deltas = (delta,) if epsilon is None else _DELTAS  # where the noise is given, large ones leave no epsilon
    for other in deltas:
        method = copy.deepcopy(estimator).set_params(delta=other)
        _compare_neighbours(method, record_run(method, few.ratings(), insecure_seed=_SEED), few, found)
    number = len(pairs) * len(np.unique(rows.users)) + len(deltas) * len(np.unique(few.users))
    scope = f"{number} neighbours, release by release"
    checks = [_check(question, found[kind], scope) for kind, question in _QUESTIONS.items()]
    facts = {"releases": len(runs.usual.releases), "neighbours": number, "largest_share_of_bound": largest}
    return checks, facts


def _crowd_check(richer: PrivateEstimator, n_items: int, implicit: bool) -> Check:
    problems: list[str] = []
    for people, items, busiest, threads in _CROWDS:
        crowd = odd_users(people, max(items, n_items), implicit, seed=5, busiest=busiest)
        problems += _of_parts(richer, crowd, threads)
    scope = " and ".join(f"{people:,} people with {items:,} items" for people, items, _, _ in _CROWDS)
    return _check("crowds add what their parts add", problems, scope)


def _way_in_checks(runs: _Runs, n_items: int, implicit: bool, people: int) -> list[Check]:
    """Rows on their way in, and what is released of them."""
    seed, pairs = runs.rich.estimator.insecure_seed, people
    if isinstance(runs.richer, PrivateSearch):  # which trains many times
        pairs = people // 3
    read = neighbours_read(_READ_FOR_EACH * people)
    trained = neighbours_trained(runs.richer, implicit, n_items, pairs, seed)
    return [
        _way_in_check("nobody's rows decide how another's are read: neighbouring files, frames and matrices", read),
        _way_in_check("releases from neighbouring files move by at most their bound", trained),
    ]


def _way_in_check(question: str, findings: Findings) -> Check:
    return _check(question, findings.problems, findings.scope)


def _book_checks(estimator: PrivateEstimator, runs: _Runs, rows: Rows) -> list[Check]:
    """Releases, ledger and statement."""
    problems = accounting_errors(record_run(estimator, rows.ratings()), *_asked(estimator))
    return [
        _check("releases, ledger and statement agree", problems, f"epsilon {_asked(estimator)[0]}"),
        _check("costs that depend on releases are promised as a whole", _of_adaptive(runs), "other releases"),
        _check("epsilon, delta and mu are converted safely", untrue_conversions(), "60 digits"),
    ]


def _drill_checks(runs: _Runs) -> list[Check]:
    """The mechanism, the ledger and checkpoints under the worst callers and luck."""
    releases = [*runs.usual.releases, *runs.loud.releases]
    return [
        _check("the mechanism scales everyone to the bound", beyond_bounds(releases), "every kind of release"),
        _check("the mechanism refuses what it must", breaches(), "double users, items, rows and spends"),
        _check("the ledger forgets nothing", ledger_breaches(), "small budgets, two at once, changed files"),
        _check("what is kept to resume is what is published", resume_breaches(), "crashes, lost and copied numbers"),
    ]


def _asked(estimator: PrivateEstimator) -> tuple[float | None, float]:
    """The epsilon and delta that the method was told to keep to."""
    parameters = estimator.get_params()
    return parameters["epsilon"], parameters["delta"]


def _with_more_budget(estimator: PrivateEstimator) -> PrivateEstimator:
    """The same method with so much budget that there is something to learn even from a few people."""
    if _asked(estimator)[0] is None:
        return estimator
    return copy.deepcopy(estimator).set_params(epsilon=_MUCH)


def _louder(releases: list[RecordedRelease]) -> list[RecordedRelease]:
    """Larger numbers, as if there were far more to learn: with noise, any numbers may be published.

    So code is used that a few people would never reach.
    """
    return [replace(release, published=_LOUDER * release.published) for release in releases]


def _compare_neighbours(estimator: PrivateEstimator, whole: RecordedRun, rows: Rows, found: dict[str, list[str]]) -> float:
    """Write down what differs when a user is removed, each in turn. Returns the largest share of a bound in use."""
    largest, seed = 0.0, whole.estimator.insecure_seed
    for user in np.unique(rows.users):
        without = record_run(estimator, rows.ratings(rows.users != user), whole.releases, insecure_seed=seed)
        for difference in differences(whole, without):
            found[difference.kind].append(f"without user {user}: {difference.where}")
        largest = max([largest, *(share_of_bound(*pair) for pair in zip(whole.releases, without.releases, strict=False))])
    return largest


def _check(question: str, problems: Iterable[str], scope: str) -> Check:
    try:
        found = list(problems)
    except TrainingFailed as problem:
        found = [str(problem)]
    if not found:
        return Check(question, "passed", scope)
    rest = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return Check(question, "failed", "; ".join(found[:_SHOWN]) + rest)


def _of_parts(estimator: PrivateEstimator, crowd: Rows, threads: int) -> Iterator[str]:
    """Where what a crowd adds is not what one of them and the others add, or they contribute something else.

    A single row is what products of matrices treat in the most different way.
    """
    whole = record_run(estimator, crowd.ratings(with_names=True), None, threads, insecure_seed=_SEED)
    is_first = crowd.users == crowd.users.min()
    one, others = (
        record_run(estimator, crowd.ratings(part, with_names=True), whole.releases, threads, insecure_seed=_SEED)
        for part in (is_first, ~is_first)
    )
    for part in (one, others):
        for difference in differences(whole, part, removed=len(np.unique(crowd.users))):
            yield f"{difference.kind}: {difference.where}"
    for of_all, of_one, of_others in zip(whole.releases, one.releases, others.releases, strict=False):
        if not np.array_equal(of_all.sums, of_one.sums + of_others.sums):
            yield f"{of_all.query.purpose}: the sums of the parts are not the sums of all"


def _of_adaptive(runs: _Runs) -> Iterator[str]:
    """Costs that are chosen after seeing releases tell something themselves: only their total may be promised."""
    rich, loud = ([release.cost for release in run.releases] for run in (runs.rich, runs.loud))
    if rich == loud:
        return
    for run in (runs.rich, runs.loud):
        statement = run.model.privacy
        if statement is None or (statement.mu is not None and statement.mu < run.mechanisms[0].budget.mu):
            yield f"costs differ between runs, and the statement of one says mu {statement and statement.mu} only"
        elif (
            statement.mu is not None
            and run.mechanisms[0].ledger.spent(statement.dataset) < run.mechanisms[0].budget.cost
        ):
            yield "costs differ between runs, and the ledger has less than the whole budget of one"
