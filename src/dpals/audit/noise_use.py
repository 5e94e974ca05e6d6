"""How noise is used: never twice, only for what is paid for, and marked as not private where its seed is known."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy import stats

from dpals.audit.noise_samples import weights_by_definition
from dpals.audit.p_values import judge_p_values
from dpals.audit.recorded_run import RecordedRelease, RecordedRun
from dpals.audit.report import Check
from dpals.ledger.entries import SEEDED
from dpals.ledger.ledger import Ledger
from dpals.release.accounting import Budget, PrivacyBudgetExceeded
from dpals.release.mechanism import Mechanism


def check_no_repeats(releases: Sequence[RecordedRelease]) -> Check:
    """No two tables of one shape and variance have the same noise, but for as many as chance explains."""
    kinds: dict[tuple[object, ...], list[RecordedRelease]] = {}
    for release in releases:
        kind = release.record.variance, release.sums.shape, release.query.form, release.query.weights
        kinds.setdefault(kind, []).append(release)
    p_values, repeated = [], 0
    for alike in kinds.values():
        same = sum(math.comb(count, 2) for count in Counter(release.noise.tobytes() for release in alike).values())
        p_values.append(float(stats.poisson.sf(same - 1, math.comb(len(alike), 2) * _chance_of_same_noise(alike[0]))))
        repeated += same
    found = f"{len(releases):,} tables of fits and repeats, {repeated:,} pairs of them with the same noise"
    return judge_p_values("no noise is used twice", p_values, found)


def _chance_of_same_noise(release: RecordedRelease) -> float:
    """That two tables like this one have the same noise: two numbers agree with about 1 / (2 sqrt(pi) sigma)."""
    sigmas = np.sqrt(release.record.variance / weights_by_definition(release.query))
    agreeing = np.minimum(1 / (2 * math.sqrt(math.pi) * sigmas), 1.0)
    return math.exp(len(release.sums) * float(np.sum(np.log(agreeing))))


class _RefusingLedger(Ledger):
    def spend(self, *_: object, **__: object) -> None:
        raise PrivacyBudgetExceeded("this ledger takes no spend")


def check_refused_spend(release: RecordedRelease, mechanism_class: type[Mechanism]) -> Check:
    """Nothing leaves the mechanism where the ledger refuses the spend."""
    question = "a release that its ledger refuses is not published"
    mechanism = mechanism_class(Budget.of_cost(2 * release.cost), _RefusingLedger())
    try:
        mechanism.release(release.query, (), release.cost)
    except PrivacyBudgetExceeded:
        return Check(question, "passed", release.record.purpose)
    return Check(question, "failed", f"{release.record.purpose}: numbers are published all the same")


def check_seed_marks(secure: RecordedRun, seeded: RecordedRun) -> Check:
    """Statement and ledger mark noise from a known seed as not private, and no other noise."""
    problems = []
    if not secure.estimator.privacy.is_private:
        problems.append("the statement calls secure noise not private")
    if seeded.estimator.privacy.is_private:
        problems.append("the statement calls noise from a known seed private")
    for run, warns in ((secure, False), (seeded, True)):
        statement = run.estimator.privacy
        before_promise = [text.partition("epsilon =")[0] for text in (str(statement), statement.to_html())]
        if any(("NOT PRIVATE" in text) != warns for text in before_promise):
            problems.append("the statement does not warn its readers of seeded noise, or warns of secure noise")
    if any(_marks(secure)):
        problems.append("the ledger marks secure noise as seeded")
    if not all(_marks(seeded)):
        problems.append("the ledger does not mark noise from a known seed")
    return Check(
        "noise from a known seed is called not private, all other noise private",
        "failed" if problems else "passed",
        "; ".join(problems) or f"statements of two fits, {len(_marks(secure) + _marks(seeded))} spends in ledgers",
    )


def _marks(run: RecordedRun) -> list[bool]:
    """For each spend of a run, whether it is marked as seeded."""
    entries = [entry for mechanism in run.mechanisms for entry in mechanism.ledger.entries()]
    return [entry.purpose.endswith(SEEDED) for entry in entries if entry.kind == "spend"]
