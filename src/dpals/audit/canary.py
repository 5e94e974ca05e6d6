"""Level 3, the worst case: how well releases give away canaries, users who reach the bound of every release."""

import math

import numpy as np
from scipy.special import ndtr

from dpals.audit.canary_scores import CanaryScores, MechanismReleases, releases_by_mechanism, score_canaries
from dpals.audit.confidence_bounds import (
    Scores,
    epsilon_from_scores,
    expected_mu_lower_bound,
    mu_lower_bound,
    trials_to_refute,
)
from dpals.audit.p_values import judge_p_values, variance_p_value
from dpals.audit.plots import Curve
from dpals.audit.recorded_run import checked_subject, record_run
from dpals.audit.report import Check, Level, Verdict
from dpals.audit.search_canary import check_search
from dpals.data.ratings import Ratings
from dpals.methods.base.estimator import PrivateEstimator
from dpals.methods.private_search import PrivateSearch
from dpals.release.accounting import attack_power, mu_of
from dpals.release.mechanism import Mechanism
from dpals.statement.record import Statement

_FEWEST, _MOST = 20, 100
_FOR_MU_1 = 1.4
_ROUNDED_BY_MECHANISM = 0.01

_FORMS = {"scalar": "numbers", "vector": "vectors", "symmetric": "matrices"}


def audit_canary(estimator: PrivateEstimator, ratings: Ratings, runs: int = 100_000) -> Level:
    """Recognise users who reach every bound, and compare with what the statement claims.

    The method is trained once, to see what it releases. Then canaries go through the real mechanism, with the same
    queries, costs and secure noise: in each of `runs` pairs there are at least 20 who take part and as many who do not,
    many pairs in one release (see `dpals.audit.canary_contributions`). An attacker who knows exactly what a canary
    would add scores them by their likelihood ratio, which no attack can beat. A lower bound on mu follows from the
    attacker's error rates. The threshold is fixed beforehand, halfway between absent and present.

    Parameters
    ----------
    estimator
        The method, with its settings.
    ratings
        Simulated data to train on.
    runs
        Number of pairs.

    Examples
    --------
    >>> import dpals
    >>> from dpals.audit.simulated_data import odd_users
    >>> level = audit_canary(dpals.GlobalMean(epsilon=1.0), odd_users(40, 40, implicit=False).ratings(), runs=1000)
    >>> level.verdict
    'passed'
    """
    subject = checked_subject(estimator)
    run = record_run(subject, ratings, insecure_seed=None)
    if isinstance(subject, PrivateSearch):
        while not run.mechanisms:  # it can happen that a search makes no try
            run = record_run(subject, ratings, insecure_seed=None)
    statement = run.model.privacy
    assert statement is not None
    parts = releases_by_mechanism(run, n_mechanisms=2 if statement.selection else None)
    if not any(part.releases for part in parts):
        return _nothing_released(statement)
    if statement.selection is None:
        assert statement.mu is not None
        return _audit_releases(parts, statement, statement.mu, runs, subject.mechanism_class)
    level = _audit_releases(parts, statement, statement.selection.mu, runs, subject.mechanism_class)
    check, epsilon = check_search(statement, runs, subject.mechanism_class)
    facts = {**level.facts, "epsilon_at_least": epsilon}
    return Level(3, "canary", (*level.checks, check), facts, level.curves)


def canaries_per_pair(mu: float) -> int:
    """So many on each side that 100,000 pairs should bring the bound on mu to 97.5 % of what is claimed or further.

    For mu below 0.12 that would take too long, and the bound is further away.

    Examples
    --------
    >>> canaries_per_pair(0.5), canaries_per_pair(0.2367)
    (20, 25)
    """
    return min(_MOST, max(_FEWEST, math.ceil(_FOR_MU_1 / mu**2)))


def _nothing_released(statement: Statement) -> Level:
    detail = f"nothing was released, and epsilon {statement.epsilon:g} is claimed"
    facts = {"mu_claimed": statement.mu or 0.0, "mu_at_least": 0.0, "epsilon_claimed": statement.epsilon}
    facts |= {"epsilon_at_least": 0.0, "pairs": 0.0, "canaries": 0.0}
    return Level(3, "canary", (Check("no release can give anyone away", "passed", detail),), facts)


def _audit_releases(
    parts: list[MechanismReleases], statement: Statement, mu: float, runs: int, mechanism_class: type[Mechanism]
) -> Level:
    """What canaries prove about releases for which this mu is claimed: those of a fit, or of one try."""
    each = canaries_per_pair(mu)
    scored = score_canaries(parts, 2 * each * runs, mechanism_class)
    everything = scored.pop("all")
    absent, present = everything.absent, everything.present
    found = _proven_mu(everything, mu)
    epsilon = epsilon_from_scores(absent, present, lambda t: (ndtr(t), ndtr(t - mu)), statement.delta)
    facts = {
        "mu_claimed": mu,
        "mu_at_least": found,
        "share": found / mu,
        "epsilon_claimed": statement.epsilon,
        "epsilon_at_least": epsilon,
        "pairs": float(runs),
        "canaries": float(len(present)),
    }
    what = "releases" if statement.selection is None else "the releases of one try"
    question = f"{what} tell no more about a user at every bound than claimed"
    detail = (
        f"mu at least {found:.4f}, claimed {mu:.4f}; epsilon at least {epsilon:.3f}, claimed {statement.epsilon:.3f}; "
        f"{runs:,} pairs with {len(present):,} canaries present and {len(absent):,} absent, at "
        f"{everything.reach / mu:.2%} of mu"
    )
    if found > mu or epsilon > statement.epsilon:
        check = Check(question, "failed", detail)
    elif _is_conclusive(everything, mu):
        check = Check(question, "passed", detail)
    else:
        needed = -(-trials_to_refute(mu, everything.reach / mu) // each)
        check = Check(question, "inconclusive", f"{detail}; {needed:,} pairs would do")
    checks = (check, *_form_checks(parts, scored), _check_scores(everything))
    return Level(3, "canary", checks, facts, _curves(absent, present, mu))


def _proven_mu(scored: CanaryScores, mu: float) -> float:
    """The lower bound on mu, with the threshold halfway between absent and present as claimed."""
    alarms, misses = int(np.sum(scored.absent > mu / 2)), int(np.sum(scored.present <= mu / 2))
    return mu_lower_bound(alarms, len(scored.absent), misses, len(scored.present))


def _is_conclusive(scored: CanaryScores, mu: float) -> bool:
    """Whether noise half as large as claimed should have been noticed."""
    return expected_mu_lower_bound(scored.reach, mu / 2, len(scored.present), noise=0.5) > mu


def _check_scores(scored: CanaryScores) -> Check:
    """Are scores distributed as they should be? If not, being hard to recognise says nothing.

    Absent canaries have N(0, 1). Present ones have their reach more, or a little less: the mechanism scales those
    above the bound down by rounding, and never up.
    """
    excess, least = scored.present - scored.reaches, -_ROUNDED_BY_MECHANISM * scored.reach
    absent_off, present_off = abs(scored.absent.mean()), max(0.0, excess.mean(), least - excess.mean())
    p_values = [
        *(variance_p_value(side) for side in (scored.absent, excess)),
        *(2 * float(ndtr(-off * math.sqrt(len(excess)))) for off in (absent_off, present_off)),
    ]
    found = (
        f"absent ones have mean {scored.absent.mean():.4f} and variance {scored.absent.var():.4f}, present ones "
        f"{scored.present.mean() / scored.reach:.2%} of what they should add and variance {excess.var():.4f}"
    )
    return judge_p_values("canaries are scored as the stated noise says", p_values, found)


def _form_checks(parts: list[MechanismReleases], scored: dict[str, CanaryScores]) -> list[Check]:
    """Each form of release by itself, so that a mistake in one does not hide behind the others.

    Forms with so small a part of the cost that these runs tell nothing about them are left out.
    """
    checks = []
    for form, alone in scored.items() if len(scored) > 1 else ():
        releases = [release for part in parts for release in part.releases if release.query.form == form]
        mu = mu_of(sum(release.record.cost for release in releases))
        found = _proven_mu(alone, mu)
        if found > mu or _is_conclusive(alone, mu):
            verdict: Verdict = "failed" if found > mu else "passed"
            detail = f"mu at least {found:.4f}, claimed {mu:.4f}; number of releases: {len(releases)}"
            checks.append(Check(f"releases of {_FORMS[form]} alone tell no more than they cost", verdict, detail))
    return checks


def _curves(absent: Scores, present: Scores, mu: float) -> tuple[Curve, Curve]:
    """What was recognised at 61 lines between the scores, and the most that the promise allows."""
    lines = np.linspace(4.0, -4.0, 61)
    alarms, hits = (1 - np.searchsorted(np.sort(side), lines) / len(side) for side in (absent, present))
    seen = Curve("canary at every bound", "attack", tuple(alarms.tolist()), tuple(hits.tolist()))
    allowed = tuple(attack_power(mu, rate) for rate in seen.false_alarms)
    return seen, Curve("what the promise allows", "limit", seen.false_alarms, allowed)
