"""Level 1: the method on neighbouring data sets, with recorded releases, in exact integers."""

import copy
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from dpals.audit import neighbours
from dpals.audit.books import disagreements, forgotten, untrue_conversions
from dpals.audit.data import Rows, few_people, fitting, odd_people
from dpals.audit.drills import beyond_bounds, breaches
from dpals.audit.ledger_drills import ledger_breaches
from dpals.audit.neighbours import differences, used
from dpals.audit.recording import Passage, Run, TrainingFailed, checked_subject, recorded
from dpals.audit.report import Check, Level
from dpals.audit.resume_drills import resume_breaches, written_about
from dpals.audit.search_replay import search_leaks, telling_seed
from dpals.audit.serving import mixed_up
from dpals.methods.estimator import PrivateEstimator
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
_QUESTIONS = {
    neighbours.BOUND: "no user moves a release by more than its bound",
    neighbours.RECORD: "number, shape, bound, noise and cost of releases do not depend on who is there",
    neighbours.OFFERS: "what a user offers depends on nobody else, to the last bit",
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
    n_items = fitting(estimator, lambda size: few_people(size, implicit).ratings())
    rows = odd_people(people, n_items, implicit)
    crowds = {
        threads: odd_people(users, max(items, n_items), implicit, seed=5, busiest=busiest)
        for users, items, busiest, threads in _CROWDS
    }
    checks, facts = _checks(estimator, rows, few_people(n_items, implicit), crowds)
    return Level(1, "replay", tuple(checks), facts)


def _checks(
    estimator: PrivateEstimator, rows: Rows, few: Rows, crowds: dict[int, Rows]
) -> tuple[list[Check], dict[str, float]]:
    """All checks, and the largest share of a bound that anyone used."""
    richer = _with_more_budget(estimator)
    private = usual = recorded(estimator, rows.ratings())
    seed = _SEED
    if isinstance(estimator, PrivateSearch):  # without a seed, neighbours would make other tries
        seed = telling_seed(estimator, rows.ratings())
        usual = recorded(estimator, rows.ratings(), insecure_seed=seed)
    rich = recorded(richer, rows.ratings(), insecure_seed=seed)
    loud = recorded(richer, rows.ratings(), _louder(rich.passages), insecure_seed=seed)
    found: dict[str, list[str]] = {kind: [] for kind in _QUESTIONS}
    largest = max(_compare_neighbours(*pair, rows, found) for pair in ((estimator, usual), (richer, loud)))
    epsilon, asked_delta = (estimator.get_params()[name] for name in ("epsilon", "delta"))
    deltas = (asked_delta,) if epsilon is None else _DELTAS  # where the noise is given, large ones leave no epsilon
    for delta in deltas:
        method = copy.deepcopy(estimator).set_params(delta=delta)
        _compare_neighbours(method, recorded(method, few.ratings(), insecure_seed=_SEED), few, found)
    n_neighbours = 2 * len(np.unique(rows.users)) + len(deltas) * len(np.unique(few.users))
    scope = f"{n_neighbours} neighbours, release by release"
    checks = [_check(question, found[kind], scope) for kind, question in _QUESTIONS.items()]
    checks += [
        _check(
            "crowds add what their parts add",
            chain.from_iterable(_of_parts(richer, crowd, threads) for threads, crowd in crowds.items()),
            " and ".join(f"{crowd.users.max() + 1:,} users of {crowd.n_items:,} items" for crowd in crowds.values()),
        ),
        _check(
            "releases, ledger and statement agree", disagreements(private, epsilon, asked_delta), f"epsilon {epsilon}"
        ),
        _check("costs that depend on releases are promised as a whole", _of_adaptive(rich, loud), "other releases"),
        _check("epsilon, delta and mu are converted safely", untrue_conversions(), "60 digits"),
        _check(
            "the door scales everyone to the bound",
            beyond_bounds([*private.passages, *loud.passages]),
            "every kind of release",
        ),
        _check("the door refuses what it must", breaches(), "double users, items, rows and spends"),
        _check("the ledger forgets nothing", ledger_breaches(), "small budgets, two at once, changed files"),
        _check("what is kept to resume is what is published", resume_breaches(), "crashes, lost and copied numbers"),
        _check("what a user is served depends on nobody else", mixed_up(loud.model, rows), "alone and with everybody"),
    ]
    if isinstance(estimator, PrivateSearch):
        problems = search_leaks(estimator, rows, seed)
        checks.append(_check("a search gives away nothing but its best try", problems, "with and without other tries"))
    else:
        checks += [
            _check("runs on the same data add up", forgotten(estimator, few.ratings()), "three runs in one ledger"),
            _check("a checkpoint has nothing but releases", written_about(estimator, few), "with and without a user"),
        ]
    return checks, {"releases": len(private.passages), "neighbours": n_neighbours, "largest_share_of_bound": largest}


def _with_more_budget(estimator: PrivateEstimator) -> PrivateEstimator:
    """The same method with so much budget that there is something to learn even from a few people."""
    if estimator.get_params().get("epsilon") is None:
        return estimator
    return copy.deepcopy(estimator).set_params(epsilon=_MUCH)


def _louder(passages: list[Passage]) -> list[Passage]:
    """Larger numbers, as if there were far more to learn: with noise, any numbers may be published.

    So code is used that a few people would never reach.
    """
    return [replace(passage, published=_LOUDER * passage.published) for passage in passages]


def _compare_neighbours(estimator: PrivateEstimator, whole: Run, rows: Rows, found: dict[str, list[str]]) -> float:
    """Write down what differs when a user is removed, each in turn. Returns the largest share of a bound in use."""
    largest, seed = 0.0, whole.estimator.insecure_seed
    for user in np.unique(rows.users):
        without = recorded(estimator, rows.ratings(rows.users != user), whole.passages, insecure_seed=seed)
        for difference in differences(whole, without):
            found[difference.kind].append(f"without user {user}: {difference.where}")
        largest = max([largest, *(used(*pair) for pair in zip(whole.passages, without.passages, strict=False))])
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
    """Where what a crowd adds is not what one of them and the others add, or they offer something else.

    A single row is what products of matrices treat in the most different way.
    """
    whole = recorded(estimator, crowd.ratings(with_names=True), None, threads, insecure_seed=_SEED)
    is_first = crowd.users == crowd.users.min()
    one, others = (
        recorded(estimator, crowd.ratings(part, with_names=True), whole.passages, threads, insecure_seed=_SEED)
        for part in (is_first, ~is_first)
    )
    for part in (one, others):
        for difference in differences(whole, part, removed=len(np.unique(crowd.users))):
            yield f"{difference.kind}: {difference.where}"
    for of_all, of_one, of_others in zip(whole.passages, one.passages, others.passages, strict=False):
        if not np.array_equal(of_all.sums, of_one.sums + of_others.sums):
            yield f"{of_all.query.purpose}: the sums of the parts are not the sums of all"


def _of_adaptive(*runs: Run) -> Iterator[str]:
    """Costs that are chosen after seeing releases tell something themselves: only their total may be promised."""
    if len({tuple(passage.cost for passage in run.passages) for run in runs}) == 1:
        return
    for run in runs:
        statement = run.model.privacy
        if statement is None or (statement.mu is not None and statement.mu < run.doors[0].budget.mu):
            yield f"costs differ between runs, and the statement of one says mu {statement and statement.mu} only"
