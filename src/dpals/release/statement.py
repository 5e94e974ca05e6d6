"""The privacy statement: what was promised, to whom, at what cost, and what was not promised."""

import html
import json
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, Context

from dpals.release.accounting import attack_power, general_attack_power, mu_of
from dpals.release.accounting import epsilon as smallest_epsilon
from dpals.release.mechanism import Door, Release
from dpals.release.selection import Selection

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

_FALSE_ALARMS = 0.01


@dataclass(frozen=True)
class Statement:
    """What a model promises about its users.

    Attributes
    ----------
    epsilon, delta, mu
        The guarantee: what was spent, not what was allowed. mu is None for a search.
    releases
        Everything that was published, in order; by the best try, for a search.
    assumptions
        Facts that the caller declared public; the promise does not cover them.
    is_private
        False where the noise was seeded.
    dataset, dataset_mu
        The name of the data in the ledger, and what was spent on it in all, this run included; None for a search.
    ledger_head
        The ledger's head when the statement was made; None for a ledger in memory.
    dataset_seeded
        Whether some of the runs on the data had seeded noise: these promise nothing.
    selection
        How the best of a secret number of tries was chosen, for a search. The guarantee is then epsilon and delta
        alone: it is no Gaussian differential privacy, and ledgers do not know it.
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

    @classmethod
    def of(cls, door: Door, assumptions: tuple[str, ...], adaptive: bool = False) -> "Statement":
        """The statement of everything that went through a door.

        Where costs were `adaptive`, chosen after seeing earlier releases, what was spent tells something itself: the
        guarantee is then that of the whole budget.
        """
        mu = mu_of(max(door.spent, door.budget.cost) if adaptive else door.spent)
        epsilon = smallest_epsilon(mu, door.budget.delta)
        if door.spent <= door.budget.cost:
            epsilon = min(epsilon, door.budget.epsilon)  # both are true then
        spent, seeded, head = door.ledger.summary(door.dataset)
        return cls(
            epsilon=epsilon,
            delta=door.budget.delta,
            mu=mu,
            releases=tuple(door.releases),
            assumptions=assumptions,
            is_private=door.insecure_seed is None and not any(release.seeded for release in door.releases),
            dataset=door.dataset,
            dataset_mu=mu_of(spent),
            dataset_seeded=seeded,
            ledger_head=head if door.ledger.path else None,
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
            return f"from Gaussian differential privacy with mu = {_rounded_up(self.mu)}"
        chosen = self.selection
        assert chosen is not None
        return (
            f"for the best of a secret number of tries ({chosen.distribution}, {chosen.tries:g} on average), each with "
            f"Gaussian differential privacy of mu = {_rounded_up(chosen.mu)}"
        )

    @property
    def _record(self) -> list[str]:
        """Where the spend is written down, and what it adds up to."""
        if self.dataset_mu is None:
            return [
                f"Data set {self.dataset!r}; in no ledger.",
                "All runs on this data together: add epsilon and delta of this one to those of the others.",
            ]
        kept = "in memory only, not kept" if self.ledger_head is None else f"head {self.ledger_head}"
        together = f"All runs on this data together: mu = {_rounded_up(self.dataset_mu)}"
        if self.dataset_seeded:
            together += ", if their noise were secure. Some of it was seeded: together they are NOT PRIVATE"
        return [f"Data set {self.dataset!r}; ledger {kept}.", f"{together}."]

    def _sections(self) -> list[tuple[str, list[str]]]:
        """Headings and their lines, shared by text and HTML."""
        guarantee = f"epsilon = {_rounded_up(self.epsilon)} at delta = {_rounded_up(self.delta)}, {self._origin}."
        attacker = (
            f"An attacker who knows everything but whether one person took part, and who is wrong about "
            f"{_FALSE_ALARMS:.0%} of those who did not, recognises at most "
            f"{_rounded_up(100 * self.attack_power, digits=2)}% of those who did."
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
        """Read back what `to_json` wrote."""
        data = json.loads(text)
        fields = {name: data[name] for name in cls.__dataclass_fields__}
        fields["assumptions"] = tuple(data["assumptions"])
        fields["selection"] = None if data["selection"] is None else Selection(**data["selection"])
        fields["releases"] = tuple(
            Release(**{**release, "shape": tuple(release["shape"])}) for release in data["releases"]
        )
        return cls(**fields)

    def to_html(self) -> str:
        """The statement as a small page of its own."""
        body = "".join(
            f"<h2>{html.escape(heading)}</h2>\n<ul>\n"
            + "".join(f"<li>{html.escape(line.strip())}</li>\n" for line in content)
            + "</ul>\n"
            for heading, content in self._sections()
        )
        return page("Privacy statement", body, "" if self.is_private else "seeded")


def page(title: str, body: str, kind: str = "") -> str:
    """A page of HTML that needs no other files. `kind` is a class for the style of its body."""
    return _PAGE.format(title=html.escape(title), body=body, kind=f" class={kind}" if kind else "")


def _rounded_up(value: float, digits: int = 4) -> str:
    """So many significant digits, never less than the value."""
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(value))):.{digits}g}"


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
