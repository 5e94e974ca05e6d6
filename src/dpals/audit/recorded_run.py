"""A double of the mechanism that writes down what goes through it, and can be told what to publish."""

import copy
import io
import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.ledger.ledger import Ledger
from dpals.methods.base.estimator import PrivateEstimator
from dpals.methods.base.options import Options
from dpals.methods.private_search import PrivateSearch
from dpals.model.factor_model import FactorModel
from dpals.release.contribution import Contribution, Grid, Query
from dpals.release.mechanism import Mechanism, Release


class TrainingFailed(Exception):  # noqa: N818, it is what an audit found
    """The method could not be trained on the data of an audit, because its mechanism refused something for instance."""


@dataclass(frozen=True, eq=False)
class RecordedRelease:
    """One release: what was asked, what was contributed, the exact sums, the record and what was published."""

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
    threads
        How many to use.
    script
        The passages of another run: each release publishes what that run published. So both see the same releases,
        and everything that still differs between them depends on the data in another way.
    changes
        Arguments of the estimator that are to be others, such as ``insecure_seed``.
    """
    run = RecordedRun(ledger=Ledger())
    subject = copy.deepcopy(estimator).set_params(**changes)
    subject.mechanism_class = _double(subject.mechanism_class, run, replayed)
    run.estimator = subject
    told: dict[str, Any] = {"ledger": run.ledger}
    if not isinstance(subject, PrivateSearch):  # which keeps its steps secret
        told["callbacks"] = [lambda step: run.steps.append(step.model)]
    with failures_as_findings(), _overheard(run.log):
        subject.fit(ratings, options=Options(threads=threads), **told)
    if not (run.mechanisms or isinstance(subject, PrivateSearch)):  # a search may make no try at all
        raise InputError(
            f"{type(subject).__name__} cannot be audited: it makes a mechanism of its own, and not with "
            "self.mechanism_class"
        )
    return run


@contextmanager
def failures_as_findings() -> Iterator[None]:
    """Training that ends with an error is a finding, `TrainingFailed`, unless the error is about what was asked for."""
    try:
        yield
    except InputError:
        raise
    except Exception as problem:
        raise TrainingFailed(f"training ended with {type(problem).__name__}: {problem}") from problem


def _double(mechanism_class: type[Mechanism], run: RecordedRun, replayed: Sequence[RecordedRelease] | None) -> type[Mechanism]:
    """A mechanism of this class that tells `run` what goes through it."""

    class RecordingMechanism(mechanism_class):  # type: ignore[valid-type, misc]
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            run.mechanisms.append(self)

        def _exact_sums(self, query: Query, grid: Grid, contributions: Iterable[Contribution]) -> NDArray[np.int64]:
            sums: NDArray[np.int64] = super()._exact_sums(query, grid, contributions)
            self.last_sums = sums.copy()
            return sums

        def release(
            self, query: Query, contributions: Contribution | Iterable[Contribution], cost: int
        ) -> NDArray[np.float64]:
            blocks = (contributions,) if isinstance(contributions, Contribution) else tuple(contributions)
            published: NDArray[np.float64] = super().release(query, blocks, cost)
            number = len(run.releases)
            if replayed is not None and number < len(replayed) and replayed[number].published.shape == published.shape:
                published = replayed[number].published.copy()
            run.releases.append(RecordedRelease(query, cost, blocks, self.last_sums, self.releases[-1], published.copy()))
            return published

    return RecordingMechanism


@contextmanager
def _overheard(lines: list[str]) -> Iterator[None]:
    """Collect what is logged, warned of and printed."""

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    handler, printed = Collector(), io.StringIO()
    everyone, ours = logging.getLogger(), logging.getLogger("dpals")
    levels = everyone.level, ours.level
    everyone.addHandler(handler)
    everyone.setLevel(logging.INFO)
    ours.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as warned, redirect_stdout(printed), redirect_stderr(printed):
            warnings.simplefilter("always")
            yield
    finally:
        everyone.removeHandler(handler)
        everyone.setLevel(levels[0])
        ours.setLevel(levels[1])
        lines += [str(warning.message) for warning in warned] + printed.getvalue().splitlines()
