"""Level 1: the method on neighbouring data sets, with replayed releases, compared in exact integers."""

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from dpals.audit import neighbours
from dpals.audit.accounting_checks import accounting_errors, adaptive_cost_errors, composition_errors
from dpals.audit.checkpoint_contents import checkpoint_leaks
from dpals.audit.neighbours import differences, share_of_bound
from dpals.audit.recorded_run import RecordedRelease, RecordedRun, TrainingFailed, checked_subject, record_run
from dpals.audit.report import Check, Level
from dpals.audit.search_replay import search_leaks, seed_with_several_tries
from dpals.audit.serving import serving_differences
from dpals.audit.simulated_data import Rows, four_users, odd_users, smallest_catalogue
from dpals.methods.base.estimator import PrivateEstimator
from dpals.methods.private_search import PrivateSearch

_SEED = 1
_LARGE_EPSILON = 50.0
_AMPLIFICATION = 10.0
_LARGE_DATA = (  # users, items, the share of them that the most active users rate, and threads
    (30_001, 60, 0.1, 1),  # enough users for settings that depend on size
    (61, 500, 1.0, 2),  # enough items for settings that depend on the size of the catalogue
)
_DELTAS = (0.29, 0.03)  # between one over four and one over three users, and a tenth of that
_SHOWN = 3
_QUESTIONS = {
    neighbours.BOUND: "no user moves a release by more than its bound",
    neighbours.RECORD: "number, shape, bound, noise and cost of releases do not depend on who is there",
    neighbours.CONTRIBUTIONS: "what a user contributes depends on nobody else, to the last bit",
    neighbours.MODEL: "the published model depends on the data through releases only",
    neighbours.LOG: "what is logged or printed depends on the data through releases only",
}


def audit_replay(estimator: PrivateEstimator, implicit: bool = False, n_users: int = 40) -> Level:
    """Compare runs on neighbouring data sets that see the same releases, and the accounts of both.

    Formal guarantee: none. It can show a broken promise on the data that it tries; it cannot prove one that holds.
    Comparisons are in integers and to the last bit, so there are no false alarms.

    Parameters
    ----------
    estimator
        A private method with its settings. It is not changed: copies of it are trained.
    implicit
        Whether to give it implicit feedback instead of ratings.
    n_users
        How many users there are. Each is removed in turn.

    Examples
    --------
    >>> import dpals
    >>> audit_replay(dpals.GlobalMean(epsilon=1.0), n_users=5).verdict
    'passed'
    """
    estimator = checked_subject(estimator)
    n_items = smallest_catalogue(estimator, lambda size: four_users(size, implicit).ratings())
    rows, few = odd_users(n_users, n_items, implicit), four_users(n_items, implicit)
    runs = _runs_with_everyone(estimator, rows)
    checks, facts = _neighbour_checks(estimator, runs, rows, few)
    checks += [
        _large_data_check(runs.richer, n_items, implicit),
        *_accounting_checks(estimator, runs, rows),
        _check("what a user is served depends on nobody else", serving_differences(runs.loud.model, rows), "all users"),
    ]
    if isinstance(estimator, PrivateSearch):
        leaks = search_leaks(estimator, rows, runs.rich.estimator.insecure_seed)
        checks.append(_check("a search gives away nothing but its best try", leaks, "with and without other tries"))
    else:
        several, checkpoint = composition_errors(estimator, few.ratings()), checkpoint_leaks(estimator, few)
        checks += [
            _check("runs on the same data add up", several, "three runs in one ledger"),
            _check("a checkpoint has nothing but releases", checkpoint, "with and without a user"),
        ]
    return Level(1, "replay", tuple(checks), facts)


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs on everyone: of the method as it is; with far more budget; and, besides, with amplified releases."""

    usual: RecordedRun
    richer: PrivateEstimator
    rich: RecordedRun
    loud: RecordedRun


def _runs_with_everyone(estimator: PrivateEstimator, rows: Rows) -> _Runs:
    ratings, richer = rows.ratings(), _with_more_budget(estimator)
    seed, usual_seed = _SEED, None
    if isinstance(estimator, PrivateSearch):  # without a seed, neighbours would make other tries
        seed = usual_seed = seed_with_several_tries(estimator, ratings)
    rich = record_run(richer, ratings, insecure_seed=seed)
    loud = record_run(richer, ratings, _amplified(rich.releases), insecure_seed=seed)
    return _Runs(record_run(estimator, ratings, insecure_seed=usual_seed), richer, rich, loud)


def _with_more_budget(estimator: PrivateEstimator) -> PrivateEstimator:
    """The same method with so much budget that there is something to learn even from a few users."""
    if estimator.get_params()["epsilon"] is None:
        return estimator
    return copy.deepcopy(estimator).set_params(epsilon=_LARGE_EPSILON)


def _amplified(releases: list[RecordedRelease]) -> list[RecordedRelease]:
    """Larger published numbers, to reach code that a few users would not: with noise, any numbers are possible."""
    return [replace(release, published=_AMPLIFICATION * release.published) for release in releases]


def _neighbour_checks(
    estimator: PrivateEstimator, runs: _Runs, rows: Rows, few: Rows
) -> tuple[list[Check], dict[str, float]]:
    """What differs when someone is removed, and the largest share of a bound that anyone used."""
    found: dict[str, list[str]] = {kind: [] for kind in _QUESTIONS}
    pairs = (estimator, runs.usual), (runs.richer, runs.loud)
    largest = max(_compare_neighbours(*pair, rows, found) for pair in pairs)
    parameters = estimator.get_params()
    # Where the noise is given instead of epsilon, large deltas leave no epsilon.
    deltas = _DELTAS if parameters["epsilon"] is not None else (parameters["delta"],)
    for delta in deltas:
        method = copy.deepcopy(estimator).set_params(delta=delta)
        _compare_neighbours(method, record_run(method, few.ratings(), insecure_seed=_SEED), few, found)
    number = len(pairs) * len(np.unique(rows.users)) + len(deltas) * len(np.unique(few.users))
    scope = f"{number} neighbours, release by release"
    checks = [_check(question, found[kind], scope) for kind, question in _QUESTIONS.items()]
    facts = {"releases": len(runs.usual.releases), "neighbours": number, "largest_share_of_bound": largest}
    return checks, facts


def _compare_neighbours(
    estimator: PrivateEstimator, whole: RecordedRun, rows: Rows, found: dict[str, list[str]]
) -> float:
    """Add to `found` what differs when a user is removed, each in turn. Returns the largest share of a bound in use."""
    largest, seed = 0.0, whole.estimator.insecure_seed
    for user in np.unique(rows.users):
        without = record_run(estimator, rows.ratings(rows.users != user), whole.releases, insecure_seed=seed)
        for difference in differences(whole, without):
            found[difference.kind].append(f"without user {user}: {difference.where}")
        pairs = zip(whole.releases, without.releases, strict=False)
        largest = max([largest, *(share_of_bound(*pair) for pair in pairs)])
    return largest


def _large_data_check(richer: PrivateEstimator, n_items: int, implicit: bool) -> Check:
    """One user and all the others, of data large enough for code that small data never reaches."""
    problems: list[str] = []
    for n_users, items, busiest, threads in _LARGE_DATA:
        rows = odd_users(n_users, max(items, n_items), implicit, seed=5, busiest=busiest)
        problems += _differences_of_parts(richer, rows, threads)
    scope = " and ".join(f"{n_users:,} users with {items:,} items" for n_users, items, _, _ in _LARGE_DATA)
    return _check("large data sets add up to the sums of their parts", problems, scope)


def _differences_of_parts(estimator: PrivateEstimator, rows: Rows, threads: int) -> Iterator[str]:
    """Where the sums of all users are not those of the first and of the others, or these contribute something else.

    Matrix products treat a single row most differently from many.
    """
    whole = record_run(estimator, rows.ratings(with_names=True), None, threads, insecure_seed=_SEED)
    is_first = rows.users == rows.users.min()
    one, others = (
        record_run(estimator, rows.ratings(part, with_names=True), whole.releases, threads, insecure_seed=_SEED)
        for part in (is_first, ~is_first)
    )
    for part in (one, others):
        for difference in differences(whole, part, removed=len(np.unique(rows.users))):
            yield f"{difference.kind}: {difference.where}"
    for of_all, of_one, of_others in zip(whole.releases, one.releases, others.releases, strict=False):
        if not np.array_equal(of_all.sums, of_one.sums + of_others.sums):
            yield f"{of_all.query.purpose}: the sums of the parts are not the sums of all"


def _accounting_checks(estimator: PrivateEstimator, runs: _Runs, rows: Rows) -> list[Check]:
    """Releases, ledger and statement."""
    parameters = estimator.get_params()
    epsilon, delta = parameters["epsilon"], parameters["delta"]
    errors = accounting_errors(record_run(estimator, rows.ratings()), epsilon, delta)
    adaptive = adaptive_cost_errors(runs.rich, runs.loud)
    return [
        _check("releases, ledger and statement agree", errors, f"epsilon {epsilon}"),
        _check("costs that depend on releases are promised as a whole", adaptive, "other releases"),
    ]


def _check(question: str, problems: Iterable[str], scope: str) -> Check:
    """Passed if there are no problems; an error in training is one."""
    try:
        found = list(problems)
    except TrainingFailed as problem:
        found = [str(problem)]
    if not found:
        return Check(question, "passed", scope)
    rest = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return Check(question, "failed", "; ".join(found[:_SHOWN]) + rest)
