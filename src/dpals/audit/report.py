"""What an audit found: checks, levels, and the whole report as text or data."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["passed", "failed", "inconclusive"]


@dataclass(frozen=True)
class Check:
    """One question and its answer.

    ``inconclusive`` is an answer too: what was tried could not have shown a broken promise. It never counts as passed.
    """

    question: str
    verdict: Verdict
    detail: str


@dataclass(frozen=True)
class Curve:
    """Share of members recognised against false alarms, for a plot.

    ``kind`` is ``limit`` for what the promise allows, ``attack`` for what an attack on the private release reached and
    ``reference`` for what the same attack reaches without privacy.
    """

    name: str
    kind: Literal["limit", "attack", "reference"]
    false_alarms: tuple[float, ...]
    recognised: tuple[float, ...]


@dataclass(frozen=True)
class Level:
    """What one level found. `facts` are numbers for tables, such as a lower bound and what was claimed."""

    number: int
    name: str
    checks: tuple[Check, ...]
    facts: dict[str, float] = field(default_factory=dict)
    curves: tuple[Curve, ...] = ()

    @property
    def verdict(self) -> Verdict:
        return worst(check.verdict for check in self.checks)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """failed if any is, else inconclusive if any is.

    Examples
    --------
    >>> worst(["passed", "inconclusive", "failed"])
    'failed'
    """
    given = set(verdicts)
    return "failed" if "failed" in given else "inconclusive" if "inconclusive" in given or not given else "passed"
