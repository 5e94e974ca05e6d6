"""A whole audit: what the method claims, the levels that were asked for, one report."""

from collections.abc import Callable, Iterable
from typing import Any

from dpals.audit.canary import audit_canary
from dpals.audit.noise import audit_noise
from dpals.audit.one_run import audit_one_run
from dpals.audit.recorded_run import TrainingFailed, checked_subject, record_run
from dpals.audit.replay import audit_replay
from dpals.audit.report import LEVELS, Check, Level, Report
from dpals.audit.simulated_data import accepts_ratings, odd_users, smallest_catalogue
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.methods.base.estimator import PrivateEstimator
from dpals.release.accounting import PrivacyBudgetExceeded

_USERS = 3000
"""Enough for methods that choose their rank to choose one at epsilon 1."""


def run_audit(
    estimator: PrivateEstimator,
    *,
    levels: Iterable[int] = (1, 2, 3, 4),
    implicit: bool | None = None,
    runs: int | None = None,
    quick: bool = False,
    tell: Callable[[str], object] = lambda _: None,
) -> Report:
    """Audit a private method, on simulated data.

    ============================================  =========================================================
    a method that is not private                  InputError
    with insecure_seed                            InputError: it is not private
    no ``insecure_seed``, a mechanism of its own  InputError: it cannot be audited
    another level than 1 to 4                     InputError
    too few runs to show anything                 the verdict is ``inconclusive``, never ``passed``
    ============================================  =========================================================

    Parameters
    ----------
    estimator
        The method with its settings. Copies of it are trained; it stays as it is.
    levels
        Which ones: 1 replay, 2 noise, 3 canary, 4 one run.
    implicit
        Whether to audit with implicit feedback. By default ratings, where the method takes them.
    runs
        Pairs of releases in level 3: 100,000 by default, 5,000 if quick.
    quick
        Less of everything: under a minute.
    tell
        Called with what is being done now, in words.

    Examples
    --------
    >>> import dpals
    >>> report = run_audit(dpals.GlobalMean(epsilon=1.0), levels=[1], quick=True)
    >>> report.verdict, report.levels[0].name
    ('passed', 'replay')
    """
    estimator = checked_subject(estimator)
    wanted = _checked_levels(levels)
    if implicit is None:
        implicit = not accepts_ratings(estimator)
    ratings = _ratings_for(estimator, implicit)
    found = []
    for number in wanted:
        tell(f"Level {number}, {LEVELS[number]}")
        found.append(_level(number, estimator, ratings, implicit, runs, quick))
    epsilon, delta, mu = _claim(estimator, ratings)
    data = "simulated implicit feedback" if implicit else "simulated ratings"
    return Report(_described(estimator), data, epsilon, delta, mu, tuple(found))


def _checked_levels(levels: Iterable[int]) -> list[int]:
    wanted = sorted(set(levels))
    if unknown := [number for number in wanted if number not in LEVELS]:
        raise InputError(f"an audit has the levels 1 to {max(LEVELS)}, not {unknown[0]}")
    return wanted


def _ratings_for(estimator: PrivateEstimator, implicit: bool) -> Ratings:
    """Simulated data with as many items as the method needs."""
    n_items = smallest_catalogue(estimator, lambda size: odd_users(_USERS, size, implicit).ratings())
    return odd_users(_USERS, n_items, implicit).ratings()


def _level(
    number: int,
    estimator: PrivateEstimator,
    ratings: Ratings,
    implicit: bool,
    runs: int | None,
    quick: bool,
) -> Level:
    """One level with as much effort as was asked for."""
    try:
        if number == 1:
            return audit_replay(estimator, implicit, n_users=12 if quick else 40)
        if number == 2:
            return audit_noise(estimator, ratings, samples=20_000 if quick else 200_000)
        if number == 3:
            return audit_canary(estimator, ratings, runs=runs or (5_000 if quick else 100_000))
        return audit_one_run(estimator, implicit, canaries=500 if quick else 2_000)
    except (TrainingFailed, PrivacyBudgetExceeded) as problem:
        return Level(number, LEVELS[number], (Check("the method can be trained", "failed", str(problem)),))


def _claim(estimator: PrivateEstimator, ratings: Ratings) -> tuple[float, float, float | None]:
    """Epsilon, delta and mu of the method's own statement, or what it was asked for where it makes none."""
    try:
        statement = record_run(estimator, ratings).model.privacy
    except TrainingFailed:
        statement = None
    if statement is None:
        parameters = estimator.get_params()
        return parameters["epsilon"], parameters["delta"], None
    return statement.epsilon, statement.delta, statement.mu


def _described(estimator: Any) -> str:
    """The method as one would write it in Python, without arguments at their defaults."""
    try:
        usual = type(estimator)().get_params()
    except TypeError:  # some arguments must be given
        usual = {}
    shown = {
        name: _described(value) if hasattr(value, "get_params") else repr(value)
        for name, value in estimator.get_params().items()
        if name in ("epsilon", "delta") or repr(value) != repr(usual.get(name))
    }
    return f"{type(estimator).__name__}({', '.join(f'{name}={value}' for name, value in shown.items())})"
