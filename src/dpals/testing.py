"""For tests of private methods that people write themselves, on top of the mechanism."""

from collections.abc import Iterable

from dpals.methods.base.estimator import PrivateEstimator


def assert_private(
    estimator: PrivateEstimator,
    *,
    implicit: bool | None = None,
    levels: Iterable[int] = (1, 2, 3),
    quick: bool = True,
) -> None:
    """Audit a method; AssertionError with the report unless it keeps its promise in all that is tried.

    Parameters
    ----------
    estimator
        A subclass of `PrivateEstimator` with its settings. It must take ``insecure_seed`` and release through the
        mechanism that ``_fit`` is given. Copies of it are trained on simulated data.
    implicit
        Whether to give it implicit feedback. By default ratings, where it takes them.
    levels
        Of the audit: 1 replay, 2 noise, 3 canary, 4 one run.
    quick
        Try less of everything. For a method that trains fast, the default takes some ten seconds.

    Examples
    --------
    >>> import dpals
    >>> assert_private(dpals.GlobalMean(epsilon=1.0), levels=[1])
    """
    from dpals.audit.run import run_audit

    report = run_audit(estimator, implicit=implicit, levels=levels, quick=quick)
    if report.verdict != "passed":
        raise AssertionError(str(report))
