"""Train a method with a recording mechanism: it notes every release and can replay those of another run."""

import copy
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpals.audit.published_values import published_values
from dpals.data.ratings import Ratings
from dpals.engines.local import LocalEngine
from dpals.errors import InputError
from dpals.ledger.ledger import Ledger
from dpals.methods.base.estimator import PrivateEstimator
from dpals.methods.base.options import Options
from dpals.methods.private_search import PrivateSearch
from dpals.model.factor_model import FactorModel
from dpals.release.accounting import Release
from dpals.release.contribution import Contribution, Query
from dpals.release.mechanism import Mechanism
from dpals.release.passes import BlockFunction, Pass, Population, Table


class TrainingFailed(Exception):  # noqa: N818, it is a finding of the audit
    """Training on the data of the audit ended with an error, for instance because the mechanism refused a release."""


@dataclass(frozen=True, eq=False)
class RecordedRelease:
    """One release: the query, what users contributed, the exact sums, the mechanism's record, what was published."""

    query: Query
    cost: int
    contributions: tuple[Contribution, ...]
    sums: NDArray[np.int64]
    record: Release
    published: NDArray[np.float64]

    @property
    def noise(self) -> NDArray[np.int64]:
        """What was added to the sums, in steps of the grid."""
        return np.rint(self.published / self.record.step).astype(np.int64) - self.sums


@dataclass(eq=False)
class RecordedRun:
    """One training with everything that can be seen of it."""

    releases: list[RecordedRelease] = field(default_factory=list)
    mechanisms: list[Mechanism] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    steps: list[FactorModel] = field(default_factory=list)
    ledger: Ledger | None = None
    estimator: Any = None

    @property
    def model(self) -> FactorModel:
        model: FactorModel = self.estimator.model_
        return model

    @cached_property
    def published(self) -> dict[str, Any]:
        """All published values by name, to be compared with those of another run."""
        return published_values(self.estimator, self.steps)


def checked_subject(estimator: Any) -> PrivateEstimator:
    """The estimator, if it is a private method that can be audited; InputError with the reason where it is not."""
    name = type(estimator).__name__
    if isinstance(estimator, FactorModel):
        raise InputError("an audit takes the method that trains models, with its settings, and not a model")
    if not isinstance(estimator, PrivateEstimator):
        raise InputError(f"{name} is not private: it promises nothing that could be audited")
    if "insecure_seed" not in estimator.get_params():
        raise InputError(
            f"{name} cannot be audited: it takes no insecure_seed, so two runs of it cannot be given the same noise"
        )
    if estimator.insecure_seed is not None:
        raise InputError(f"{name} with an insecure_seed is not private, and says so: audit it without the seed")
    return estimator


def record_run(
    estimator: PrivateEstimator,
    ratings: Ratings,
    replayed: Sequence[RecordedRelease] | None = None,
    threads: int = 1,
    **changes: Any,
) -> RecordedRun:
    """Train a copy of the estimator and record all of it.

    Parameters
    ----------
    replayed
        The releases of another run: each release publishes what that run published. Both runs then see the same
        releases, and whatever still differs between them depends on the data in another way.
    threads
        How many to use.
    changes
        Arguments of the estimator to replace, such as ``insecure_seed``.
    """
    run = RecordedRun(ledger=Ledger())
    subject = copy.deepcopy(estimator).set_params(**changes)
    subject.mechanism_class = _recording_class(subject.mechanism_class, run, replayed)
    run.estimator = subject
    arguments: dict[str, Any] = {"ledger": run.ledger}
    if not isinstance(subject, PrivateSearch):  # which keeps its steps secret
        arguments["callbacks"] = [lambda step: run.steps.append(step.model)]
    with failures_as_findings(), _captured_output(run.log):
        subject.fit(ratings, options=Options(threads=threads), **arguments)
    if not (run.mechanisms or isinstance(subject, PrivateSearch)):  # a search may make no try at all
        raise InputError(
            f"{type(subject).__name__} cannot be audited: it makes a mechanism of its own, and not with "
            "self.mechanism_class"
        )
    return run


@contextmanager
def failures_as_findings() -> Iterator[None]:
    """Turn an error in training into `TrainingFailed`, a finding, unless it is an error of the caller."""
    try:
        yield
    except InputError:
        raise
    except Exception as problem:
        raise TrainingFailed(f"training ended with {type(problem).__name__}: {problem}") from problem


def _recording_class(
    mechanism_class: type[Mechanism], run: RecordedRun, replayed: Sequence[RecordedRelease] | None
) -> type[Mechanism]:
    """A subclass of the method's mechanism that adds each release to `run`."""

    class RecordingMechanism(mechanism_class):  # type: ignore[valid-type, misc]
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            self.engine = LocalEngine(blocks_at_once=1)  # contributions are recorded in the order of users
            run.mechanisms.append(self)

        def exact_sums(self, work: Pass, population: Population) -> list[Table]:
            sums: list[Table] = super().exact_sums(work, population)
            self.last_sums = [table.copy() for table in sums]
            return sums

        def release_together(
            self, population: Population, function: BlockFunction, public: Any, queries: Sequence[tuple[Query, int]]
        ) -> list[NDArray[np.float64]]:
            contributed: list[list[Contribution]] = [[] for _ in queries]

            def watched(block: Any, public: Any) -> tuple[list[Contribution], ...]:
                result = function(block, public)
                parts = result if isinstance(result, tuple) else (result,)
                lists = tuple([part] if isinstance(part, Contribution) else list(part) for part in parts)
                for kept, part in zip(contributed, lists, strict=True):
                    kept.extend(part)
                return lists

            published = super().release_together(population, watched, public, queries)
            records = self.releases[-len(queries) :]
            for k, ((query, cost), sums, record) in enumerate(zip(queries, self.last_sums, records, strict=True)):
                number = len(run.releases)
                shape = published[k].shape
                if replayed is not None and number < len(replayed) and replayed[number].published.shape == shape:
                    published[k] = replayed[number].published.copy()
                run.releases.append(
                    RecordedRelease(query, cost, tuple(contributed[k]), sums, record, published[k].copy())
                )
            return published  # type: ignore[no-any-return]

    return RecordingMechanism


@contextmanager
def _captured_output(lines: list[str]) -> Iterator[None]:
    """Collect what is logged, warned of and printed."""

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    handler, printed = Collector(), io.StringIO()
    root, package = logging.getLogger(), logging.getLogger("dpals")
    levels = root.level, package.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    package.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as warned, redirect_stdout(printed), redirect_stderr(printed):
            warnings.simplefilter("always")
            yield
    finally:
        root.removeHandler(handler)
        root.setLevel(levels[0])
        package.setLevel(levels[1])
        lines += [str(warning.message) for warning in warned] + printed.getvalue().splitlines()
