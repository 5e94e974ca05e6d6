"""The privacy statement as data: made from a mechanism, checked, written and read."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from dpals.errors import InputError
from dpals.ledger.ledger import Ledger
from dpals.release.accounting import Release, attack_power, general_attack_power, mu_of
from dpals.release.accounting import epsilon as smallest_epsilon
from dpals.release.mechanism import Mechanism
from dpals.release.selection import DISTRIBUTIONS, Selection
from dpals.statement import text as words
from dpals.statement.page import page_of

_LARGEST = 2**128  # more than any integer of a release can be


@dataclass(frozen=True)
class Statement:
    """What a model promises about its users.

    Attributes
    ----------
    epsilon, delta, mu
        The guarantee: what was spent, or the whole budget if costs depended on releases. mu is None for a search.
    releases
        Everything that was published, in order; for a search, by the best try.
    assumptions
        Facts that the caller declared public; the promise does not cover them.
    is_private
        False if the noise was seeded.
    dataset, dataset_mu
        The name of the data in the ledger, and mu of all training runs on it; None for a ledger in memory, which does
        not know of other runs.
    dataset_epsilon, dataset_delta
        What was spent on the data in all, with searches; None for a ledger in memory.
    dataset_searches
        Epsilon and delta of each search on the data.
    ledger_head
        The ledger's head when the statement was made; None for a ledger in memory.
    dataset_seeded
        Whether some of the runs on the data had seeded noise: these promise nothing.
    dataset_partial
        Whether an earlier version of dpals wrote some of the ledger: the true total may then be larger.
    selection
        For a search: how the best of a secret number of tries was chosen. The guarantee is then only
        epsilon and delta, not Gaussian differential privacy.
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
                raise InputError(f"this is not a privacy statement: {what}")

    @classmethod
    def of(cls, mechanism: Mechanism, assumptions: tuple[str, ...]) -> "Statement":
        """The statement about everything that a mechanism released.

        If costs are adaptive, that is, chosen after seeing earlier releases, then what was spent reveals something
        itself: the guarantee is that of the whole budget (docs/privacy.md, step 5).
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
            **dataset_totals(mechanism.ledger, mechanism.dataset, mechanism.budget.delta),
        )

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of the cost that each release took."""
        total = sum(release.cost for release in self.releases)
        return tuple(release.cost / total if total else 0.0 for release in self.releases)

    @property
    def attack_power(self) -> float:
        """Largest share of members that any attack recognises at 1 % false alarms."""
        if self.mu is None:
            return general_attack_power(self.epsilon, self.delta, words.FALSE_ALARMS)
        return attack_power(self.mu, words.FALSE_ALARMS)

    @property
    def noise(self) -> str:
        """Where the noise came from, in words."""
        return words.noise(self)

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the guarantee says nothing about, in words."""
        return words.not_covered(self)

    @property
    def together(self) -> str:
        """What all runs on the data add up to, in words."""
        return words.together(self)

    def __str__(self) -> str:
        return words.text_of(self)

    def to_json(self) -> str:
        """The statement as data; `from_json` reads it back."""
        return json.dumps(
            {
                **asdict(self),
                "releases": list(map(_release_to, self.releases)),
                "unit": words.UNIT,
                "noise": self.noise,
                "attack_power_at_1_percent_false_alarms": self.attack_power,
                "not_covered": self.not_covered,
            },
            indent=2,
        )

    @classmethod
    def from_json(cls, text: str) -> "Statement":
        """Read back what `to_json` wrote; InputError if it is anything else."""
        try:
            data = json.loads(text)
            fields = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
            fields["assumptions"] = tuple(data["assumptions"])
            fields["dataset_searches"] = tuple(map(tuple, data.get("dataset_searches", ())))
            fields["selection"] = None if data["selection"] is None else Selection(**data["selection"])
            fields["releases"] = tuple(map(_release_from, data["releases"]))
            return cls(**fields)
        except (KeyError, TypeError, ValueError, RecursionError) as problem:
            if isinstance(problem, InputError):
                raise
            raise InputError(f"this is not a privacy statement: {type(problem).__name__}: {problem}") from problem

    def to_html(self) -> str:
        """The statement as a small page of its own."""
        return page_of(self)


def _release_to(release: Release) -> dict[str, Any]:
    """The release as it is written, where the sensitivity is called "bound", as in earlier versions."""
    return {"bound" if name == "sensitivity" else name: value for name, value in asdict(release).items()}


def _release_from(data: dict[str, Any]) -> Release:
    others = {**data, "shape": tuple(data["shape"])}
    return Release(sensitivity=others.pop("bound"), **others)


def dataset_totals(ledger: Ledger, dataset: str, delta: float) -> dict[str, Any]:
    """What a statement says about all runs on the data. A ledger in memory does not know of other runs."""
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
    """What must hold for a statement, wherever it comes from: each condition in words, and whether it holds."""
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
        yield "a release must have a purpose, a shape, a sensitivity, a variance and a step", _is_release(release)


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
        and all(type(number) is int for number in (release.sensitivity, release.variance))
        and 0 <= release.sensitivity < _LARGEST
        and 0 < release.variance < _LARGEST
        and _is_number(release.step)
    )
