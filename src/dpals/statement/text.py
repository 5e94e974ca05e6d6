"""The words of a privacy statement."""

from typing import TYPE_CHECKING

from dpals.ledger import amounts
from dpals.ledger.amounts import up
from dpals.release.accounting import epsilon as smallest_epsilon

if TYPE_CHECKING:
    from dpals.statement.record import Statement

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
    "if what each may cost was decided without looking at the results of the others, and none was interrupted because "
    "of its results."
)
TOTAL_PARTIAL = (
    "An earlier version of dpals wrote some of the entries. It counted what adaptive runs used, and no searches: the "
    "true total may be larger."
)
TOTAL_SEEDED = "This would hold if their noise were secure. Some of it was seeded: together they are NOT PRIVATE."

SEE_GLOSSARY = "The glossary in the documentation of dpals (docs/glossary.md) explains the terms."
GLOSSARY = {
    "Epsilon": "How much the probability of a result may change if one user is added or removed, as the exponent of a "
    "factor. Smaller is more private.",
    "Delta": "The small probability with which a result may reveal more than epsilon allows.",
    "Mu": "The one number of Gaussian differential privacy: the signal that one user leaves, in standard deviations of "
    "the noise. One mu gives an epsilon for every delta.",
    "Joint differential privacy": "What all others get to see is differentially private. What one user sees may depend "
    "on that user's own ratings without noise.",
    "Release": "Sums over all users with noise, and the act of publishing them.",
    "Cost": "What a release takes from the budget, counted as mu squared, because costs in this unit add up exactly.",
    "Noise": "Random numbers that hide what any one user adds to the sums. For each release, the standard deviation is "
    "given.",
    "Ledger": "A file that records what was spent on which data set, before the noise is drawn.",
    "Head": "The hash of the ledger's last entry. A ledger in which it does not occur was rolled back or rewritten.",
    "Run": "One training run, from its first release to its end.",
    "Search": "A choice of hyper-parameters as the best of a secret number of tries, each of which trains a model.",
}
"""What the terms of a statement mean, for a page that is filed without the documentation."""

FALSE_ALARMS = 0.01
"""The share of non-members that the attacker of a statement takes for members."""


def noise(statement: "Statement") -> str:
    """Where the noise came from."""
    return SECURE_NOISE if statement.is_private else SEEDED_NOISE


def not_covered(statement: "Statement") -> tuple[str, ...]:
    """What the guarantee says nothing about."""
    if statement.selection is None:
        return NOT_COVERED
    return tuple(CHOICES_BESIDE_SEARCH if line == OTHER_CHOICES else line for line in NOT_COVERED)


def together(statement: "Statement") -> str:
    """What all runs on the data add up to."""
    if statement.ledger_head is None or statement.dataset_mu is None:
        return "unknown"
    epsilon, delta = statement.dataset_epsilon, statement.dataset_delta
    if epsilon is None or delta is None:  # an earlier version wrote only mu
        epsilon, delta = smallest_epsilon(statement.dataset_mu, statement.delta), statement.delta
    return amounts.total_spent(
        epsilon, delta, statement.dataset_mu, statement.dataset_searches, statement.dataset_partial
    )


def sections(statement: "Statement") -> list[tuple[str, list[str]]]:
    """Headings and their lines, for text and page."""
    guarantee = f"epsilon = {up(statement.epsilon)} at delta = {up(statement.delta)}, {_origin(statement)}."
    attacker = (
        f"An attacker who knows everything but whether one person took part, and who is wrong about "
        f"{FALSE_ALARMS:.0%} of those who did not, recognises at most "
        f"{up(100 * statement.attack_power, digits=2)}% of those who did."
    )
    releases = [
        f"{share:6.1%}  {release.purpose} ({release.shape[0]:,} x {release.shape[1]:,}, noise {release.sigma:.4g})"
        for release, share in zip(statement.releases, statement.shares, strict=True)
    ]
    of_a_try = "" if statement.selection is None else " of the best try"
    return [
        (
            "Guarantee",
            [guarantee] if statement.is_private else [SEEDED_NOISE, f"With secure noise: {guarantee}"],
        ),
        ("Who is protected", [UNIT]),
        ("What it means", [attacker, WHAT_LEAVES]),
        ("Declared public by the caller", list(statement.assumptions) or ["Nothing."]),
        (f"Releases{of_a_try} and their share of the cost", releases or ["None."]),
        ("Noise", [noise(statement)]),
        ("Not covered", list(not_covered(statement))),
        ("Record", _record(statement)),
        ("Terms", [SEE_GLOSSARY]),
    ]


def text_of(statement: "Statement") -> str:
    """The whole statement as text."""
    lines = ["Privacy statement"]
    for heading, content in sections(statement):
        lines += ["", heading, *(f"  {line}" for line in content)]
    return "\n".join(lines)


def _origin(statement: "Statement") -> str:
    """Where epsilon comes from."""
    if statement.mu is not None:
        return f"from Gaussian differential privacy with mu = {up(statement.mu)}"
    chosen = statement.selection
    assert chosen is not None
    return (
        f"for the best of a secret number of tries ({chosen.distribution}, {chosen.tries:g} on average), each with "
        f"Gaussian differential privacy of mu = {up(chosen.mu)}"
    )


def _record(statement: "Statement") -> list[str]:
    """Where the spend is recorded, and what it adds up to."""
    if statement.ledger_head is None:
        return [f"Data set {statement.dataset!r}; ledger in memory only, not kept.", UNKNOWN_TOTAL]
    lines = [f"Data set {statement.dataset!r}; ledger head {statement.ledger_head}."]
    lines.append(f"All runs in this ledger on this data together: {together(statement)}, {TOTAL_CONDITION}")
    if statement.dataset_partial:
        lines.append(TOTAL_PARTIAL)
    if statement.dataset_seeded:
        lines.append(TOTAL_SEEDED)
    return lines
