"""The privacy statement: what was promised, to whom, at what cost, and what was not promised."""

import html
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from dpals.errors import InputError
from dpals.ledger.ledger import Ledger
from dpals.release.accounting import attack_power, general_attack_power, mu_of
from dpals.release.accounting import epsilon as smallest_epsilon
from dpals.release.mechanism import Mechanism, Release
from dpals.release.selection import DISTRIBUTIONS, Selection
from dpals.statement import rounding
from dpals.statement.rounding import up

UNIT = "One user with all their ratings: the promise holds for adding or removing any one of them."

WHAT_LEAVES = (
    "The releases listed below, and everything computed from them, may be published. What is "
    "computed for one user (their vector, predictions and recommendations) uses that user's own ratings "
    "without noise and belongs to that user only. This is joint differential privacy."
)

OTHER_CHOICES = "Choices of method or hyper-parameters that were made by looking at results on the same data."
CHOICES_BESIDE_SEARCH = OTHER_CHOICES.removesuffix(".") + ", in any other way than by this search."

NOT_COVERED = (
    "How long training took, how much memory it used, and error messages that it ended with.",
    OTHER_CHOICES,
    "Copies, back-ups and logs of the ratings outside this library.",
    "Other data sets about the same users, and other releases from the same data: those add up.",
)

SECURE_NOISE = "Exact integer Gaussian noise from AES-256, under fresh keys from the operating system."
SEEDED_NOISE = (
    "NOT PRIVATE: the noise was made from a known seed (insecure_seed), so it can be removed. "
    "For tests and simulated data only."
)

UNKNOWN_TOTAL = "All runs on this data together: unknown, because no ledger was kept of them."
TOTAL_CONDITION = (
    "if what each may cost was decided without a look at what the others gave, and none was broken off because of what "
    "it gave."
)
TOTAL_PARTIAL = (
    "Some entries are of an earlier version of dpals, which counted what adaptive runs used, and no searches: the true "
    "total may be larger."
)

_FALSE_ALARMS = 0.01
_LARGEST = 2**128  # more than any integer of a release can be


@dataclass(frozen=True)
class Statement:
    """What a model promises about its users.

    Attributes
    ----------
    epsilon, delta, mu
        The guarantee: what was spent, or all that might have been where costs depended on releases. mu is None for a
        search.
    releases
        Everything that was published, in order; by the best try, for a search.
    assumptions
        Facts that the caller declared public; the promise does not cover them.
    is_private
        False where the noise was seeded.
    dataset, dataset_mu
        The name of the data in the ledger, and mu of all trainings on it; None for a ledger in memory, which does not
        know of other runs.
    dataset_epsilon, dataset_delta
        What was spent on the data in all, with searches; None as well.
    dataset_searches
        Epsilon and delta of each search on the data.
    ledger_head
        The ledger's head when the statement was made; None for a ledger in memory.
    dataset_seeded
        Whether some of the runs on the data had seeded noise: these promise nothing.
    dataset_partial
        Whether an earlier version of dpals wrote some of the ledger: the total is then at least this.
    selection
        How the best of a secret number of tries was chosen, for a search. The guarantee is then epsilon and delta
        alone: it is no Gaussian differential privacy.
    """

    epsilon: float
    delta: float
    mu: float | None
    releases: tuple[Release, ...]
    assumptions: tuple[str, ...]
    is_private: bool
    dataset: str
    dataset_mu: float | None
    ledger_head: str | None
    selection: Selection | None = None
    dataset_seeded: bool = False
    dataset_partial: bool = False
    dataset_epsilon: float | None = None
    dataset_delta: float | None = None
    dataset_searches: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        for what, holds in _conditions(self):
            if not holds:
                raise InputError(f"this is no privacy statement: {what}")

    @classmethod
    def of(cls, mechanism: Mechanism, assumptions: tuple[str, ...]) -> "Statement":
        """The statement of everything that went through a mechanism.

        Where costs are adaptive, chosen after seeing earlier releases, what was spent tells something itself: the
        guarantee is then that of the whole budget.
        """
        mu = mu_of(
            max(mechanism.spent, mechanism.budget.cost)
            if mechanism.adaptive and mechanism.releases
            else mechanism.spent
        )
        epsilon = smallest_epsilon(mu, mechanism.budget.delta)
        if mechanism.spent <= mechanism.budget.cost:
            epsilon = min(epsilon, mechanism.budget.epsilon)  # both are true then
        return cls(
            epsilon=epsilon,
            delta=mechanism.budget.delta,
            mu=mu,
            releases=tuple(mechanism.releases),
            assumptions=assumptions,
            is_private=mechanism.insecure_seed is None and not any(release.seeded for release in mechanism.releases),
            dataset=mechanism.dataset,
            **together(mechanism.ledger, mechanism.dataset, mechanism.budget.delta),
        )

    @property
    def shares(self) -> tuple[float, ...]:
        """The part of the cost that each release took."""
        total = sum(release.cost for release in self.releases)
        return tuple(release.cost / total if total else 0.0 for release in self.releases)

    @property
    def attack_power(self) -> float:
        """Largest share of members that any attack recognises at 1 % false alarms."""
        if self.mu is None:
            return general_attack_power(self.epsilon, self.delta, _FALSE_ALARMS)
        return attack_power(self.mu, _FALSE_ALARMS)

    @property
    def noise(self) -> str:
        return SECURE_NOISE if self.is_private else SEEDED_NOISE

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the guarantee says nothing about."""
        if self.selection is None:
            return NOT_COVERED
        return tuple(CHOICES_BESIDE_SEARCH if line == OTHER_CHOICES else line for line in NOT_COVERED)

    @property
    def _origin(self) -> str:
        """Where epsilon comes from."""
        if self.mu is not None:
            return f"from Gaussian differential privacy with mu = {up(self.mu)}"
        chosen = self.selection
        assert chosen is not None
        return (
            f"for the best of a secret number of tries ({chosen.distribution}, {chosen.tries:g} on average), each with "
            f"Gaussian differential privacy of mu = {up(chosen.mu)}"
        )

    @property
    def _record(self) -> list[str]:
        """Where the spend is written down, and what it adds up to."""
        if self.ledger_head is None:
            return [f"Data set {self.dataset!r}; ledger in memory only, not kept.", UNKNOWN_TOTAL]
        lines = [f"Data set {self.dataset!r}; ledger head {self.ledger_head}."]
        lines.append(f"All runs in this ledger on this data together: {self.together}, {TOTAL_CONDITION}")
        if self.dataset_partial:
            lines.append(TOTAL_PARTIAL)
        if self.dataset_seeded:
            lines.append("This is so if their noise were secure. Some of it was seeded: together they are NOT PRIVATE.")
        return lines

    @property
    def together(self) -> str:
        """What all runs on the data add up to, in words."""
        if self.ledger_head is None or self.dataset_mu is None:
            return "unknown"
        epsilon, delta = self.dataset_epsilon, self.dataset_delta
        if epsilon is None or delta is None:  # written by an earlier version, which gave mu alone
            epsilon, delta = smallest_epsilon(self.dataset_mu, self.delta), self.delta
        return rounding.together(epsilon, delta, self.dataset_mu, self.dataset_searches, self.dataset_partial)

    def _sections(self) -> list[tuple[str, list[str]]]:
        """Headings and their lines, shared by text and HTML."""
        guarantee = f"epsilon = {up(self.epsilon)} at delta = {up(self.delta)}, {self._origin}."
        attacker = (
            f"An attacker who knows everything but whether one person took part, and who is wrong about "
            f"{_FALSE_ALARMS:.0%} of those who did not, recognises at most "
            f"{up(100 * self.attack_power, digits=2)}% of those who did."
        )
        releases = [
            f"{share:6.1%}  {release.purpose} ({release.shape[0]:,} x {release.shape[1]:,}, noise {release.sigma:.4g})"
            for release, share in zip(self.releases, self.shares, strict=True)
        ]
        of_a_try = "" if self.selection is None else " of the best try"
        return [
            (
                "Guarantee",
                [guarantee] if self.is_private else [SEEDED_NOISE, f"With secure noise: {guarantee}"],
            ),
            ("Who is protected", [UNIT]),
            ("What it means", [attacker, WHAT_LEAVES]),
            ("Declared public by the caller", list(self.assumptions) or ["Nothing."]),
            (f"Releases{of_a_try} and their share of the cost", releases or ["None."]),
            ("Noise", [self.noise]),
            ("Not covered", list(self.not_covered)),
            ("Record", self._record),
        ]

    def __str__(self) -> str:
        lines = ["Privacy statement"]
        for heading, content in self._sections():
            lines += ["", heading, *(f"  {line}" for line in content)]
        return "\n".join(lines)

    def to_json(self) -> str:
        """The statement as data; `from_json` reads it back."""
        return json.dumps(
            {
                **asdict(self),
                "unit": UNIT,
                "noise": self.noise,
                "attack_power_at_1_percent_false_alarms": self.attack_power,
                "not_covered": self.not_covered,
            },
            indent=2,
        )

    @classmethod
    def from_json(cls, text: str) -> "Statement":
        """Read back what `to_json` wrote; InputError where it is anything else."""
        try:
            data = json.loads(text)
            fields = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
            fields["assumptions"] = tuple(data["assumptions"])
            fields["dataset_searches"] = tuple(map(tuple, data.get("dataset_searches", ())))
            fields["selection"] = None if data["selection"] is None else Selection(**data["selection"])
            fields["releases"] = tuple(
                Release(**{**release, "shape": tuple(release["shape"])}) for release in data["releases"]
            )
            return cls(**fields)
        except (KeyError, TypeError, ValueError, RecursionError) as problem:
            if isinstance(problem, InputError):
                raise
            raise InputError(f"this is no privacy statement: {type(problem).__name__}: {problem}") from problem

    def to_html(self) -> str:
        """The statement as a small page of its own."""
        body = "".join(
            f"<h2>{html.escape(heading)}</h2>\n<ul>\n"
            + "".join(f"<li>{html.escape(line.strip())}</li>\n" for line in content)
            + "</ul>\n"
            for heading, content in self._sections()
        )
        return page("Privacy statement", body, "" if self.is_private else "seeded")


def together(ledger: Ledger, dataset: str, delta: float) -> dict[str, Any]:
    """What a statement says of all runs on the data. A ledger in memory does not know."""
    total, head = ledger.summary(dataset)
    if ledger.path is None:
        return {"dataset_mu": None, "ledger_head": None, "dataset_seeded": total.seeded}
    epsilon, delta = total.at(delta)
    return {
        "dataset_mu": total.mu,
        "dataset_epsilon": epsilon,
        "dataset_delta": delta,
        "dataset_searches": total.searches,
        "dataset_seeded": total.seeded,
        "dataset_partial": total.partial,
        "ledger_head": head,
    }


def _conditions(statement: Statement) -> Iterator[tuple[str, bool]]:
    """What must hold of a statement, wherever it comes from, in words and whether it does."""
    yield "epsilon must be a number of at least 0", _is_number(statement.epsilon)
    yield "delta must lie between 0 and 1", _is_number(statement.delta) and 0 < statement.delta < 1
    chosen = statement.selection
    if chosen is None:
        yield "mu must be a number of at least 0", _is_number(statement.mu)
    else:
        yield "a search has no mu of its own", statement.mu is None
        yield "tries must have a known distribution", chosen.distribution in DISTRIBUTIONS
        yield "tries and their mu must be numbers of at least 0", _is_number(chosen.tries) and _is_number(chosen.mu)
    for name in ("dataset_mu", "dataset_epsilon", "dataset_delta"):
        value = getattr(statement, name)
        yield f"{name} must be a number of at least 0", value is None or _is_number(value)
    for search in statement.dataset_searches:
        yield "a search has an epsilon and a delta", len(search) == 2 and all(map(_is_number, search))
    for text in (statement.dataset, statement.ledger_head or "", *statement.assumptions):
        yield "names and assumptions must be text", isinstance(text, str)
    for flag in (statement.is_private, statement.dataset_seeded, statement.dataset_partial):
        yield "what is private and what is seeded must be true or false", isinstance(flag, bool)
    for release in statement.releases:
        yield "a release must have a purpose, a shape, a bound, a variance and a step", _is_release(release)


def _is_number(value: object) -> bool:
    """Whether it is a number of at least 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= sys.float_info.max


def _is_release(release: Release) -> bool:
    return (
        isinstance(release.purpose, str)
        and isinstance(release.form, str)
        and isinstance(release.seeded, bool)
        and len(release.shape) == 2
        and all(type(size) is int and 0 <= size < _LARGEST for size in release.shape)
        and all(type(number) is int for number in (release.bound, release.variance))
        and 0 <= release.bound < _LARGEST
        and 0 < release.variance < _LARGEST
        and _is_number(release.step)
    )


def page(title: str, body: str, kind: str = "") -> str:
    """A page of HTML that needs no other files. `kind` is a class for the style of its body."""
    return _PAGE.format(title=html.escape(title), body=body, kind=f" class={kind}" if kind else "")


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }}
h1 {{ font-size: 1.6rem }} h2 {{ font-size: 1.05rem; margin: 1.4rem 0 .3rem }}
ul {{ margin: 0; padding-left: 1.2rem }} li {{ overflow-wrap: anywhere }}
table {{ border-collapse: collapse }} td, th {{ padding: .15rem .8rem .15rem 0; text-align: left; vertical-align: top }}
svg {{ max-width: 100%; height: auto }}
.seeded h2:first-of-type + ul, .failed {{ color: #a00; font-weight: 600 }} .inconclusive {{ color: #960 }}
</style>
</head>
<body{kind}>
<h1>{title}</h1>
{body}
</body>
</html>
"""
