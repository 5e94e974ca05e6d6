"""What an audit found: checks, levels, and the whole report as text, data or a page."""

import html
import json
import textwrap
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from dpals.audit.plots import Curve, svg_of
from dpals.ledger.amounts import spent
from dpals.statement.page import page

Verdict = Literal["passed", "failed", "inconclusive"]

LEVELS = {1: "replay", 2: "noise", 3: "canary", 4: "one run"}

_WIDTH, _MARGIN = 110, 14
_INDENT = " " * (_MARGIN + 2)


@dataclass(frozen=True)
class Check:
    """One question and its answer.

    ``inconclusive`` is an answer too: what was tried could not have shown a broken promise. It never counts as passed.
    """

    question: str
    verdict: Verdict
    detail: str


@dataclass(frozen=True)
class Level:
    """What one level found. `facts` are numbers for tables, such as a lower bound and what was claimed.

    All checks of a level must pass. Where `one_is_enough`, they are ways to the same end: one that passes outweighs
    others that could not have found anything.
    """

    number: int
    name: str
    checks: tuple[Check, ...]
    facts: dict[str, float] = field(default_factory=dict)
    curves: tuple[Curve, ...] = ()
    one_is_enough: bool = False

    @property
    def verdict(self) -> Verdict:
        verdicts = {check.verdict for check in self.checks}
        if self.one_is_enough and "passed" in verdicts:
            verdicts -= {"inconclusive"}
        return worst(verdicts)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """failed if any is, else inconclusive if any is.

    Examples
    --------
    >>> worst(["passed", "inconclusive", "failed"])
    'failed'
    """
    given = set(verdicts)
    return "failed" if "failed" in given else "inconclusive" if "inconclusive" in given or not given else "passed"


@dataclass(frozen=True)
class Report:
    """What an audit of a method found.

    Attributes
    ----------
    method
        The method with its settings, as one would write it in Python.
    data
        What it was audited on: simulated ratings or simulated implicit feedback.
    epsilon, delta, mu
        What it claims. mu is None for a search.
    levels
        What each level found.
    """

    method: str
    data: str
    epsilon: float
    delta: float
    mu: float | None
    levels: tuple[Level, ...]

    @property
    def verdict(self) -> Verdict:
        return worst(level.verdict for level in self.levels)

    @property
    def conclusion(self) -> str:
        """The verdict in a sentence."""
        failed, silent = (
            ", ".join(str(level.number) for level in self.levels if level.verdict == verdict)
            for verdict in ("failed", "inconclusive")
        )
        if failed:
            return f"THE PROMISE IS BROKEN: see level {failed}."
        if silent:
            return f"Nothing was found, but level {silent} could not have found anything: that is no proof."
        return "The promise held in everything that was tried."

    @property
    def claim(self) -> str:
        """What the method promises."""
        return spent(self.epsilon, self.delta, self.mu)

    def __str__(self) -> str:
        lines = [f"Audit of {self.method}", f"on {self.data}. Claimed: {self.claim}."]
        for level in self.levels:
            lines += ["", f"Level {level.number}, {level.name}: {level.verdict}"]
            for check in level.checks:
                lines.append(f"  {check.verdict:{_MARGIN}}{check.question}")
                lines += textwrap.wrap(check.detail, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)
        return "\n".join([*lines, "", self.conclusion])

    def to_json(self) -> str:
        """The report as data."""
        levels = [{**asdict(level), "verdict": level.verdict} for level in self.levels]
        content: dict[str, Any] = {**asdict(self), "levels": levels, "verdict": self.verdict}
        return json.dumps(content, indent=2)

    def to_html(self) -> str:
        """The report as a page of its own, with plots."""

        parts = [
            f"<p>{html.escape(self.method)}, on {html.escape(self.data)}. Claimed: {html.escape(self.claim)}.</p>",
            f"<p class={self.verdict}>{html.escape(self.conclusion)}</p>",
        ]
        for level in self.levels:
            parts.append(f"<h2>Level {level.number}, {html.escape(level.name)}: {level.verdict}</h2><table>")
            parts += [
                f"<tr><td class={check.verdict}>{check.verdict}</td><td>{html.escape(check.question)}</td>"
                f"<td>{html.escape(check.detail)}</td></tr>"
                for check in level.checks
            ]
            parts.append("</table>")
            if level.curves:
                parts.append(f"<p>What an attacker gains:</p>{svg_of(level.curves)}")
        return page("Audit of the privacy promise", "\n".join(parts))
