"""Level 4: attacks on what one training publishes, and on nothing else.

An attacker of this kind is weaker than the one of the promise, who sees every release and knows everybody else. What
such attacks show lies far below what is promised; they are here because they look at the whole, end to end: code that
leaks beside the releases, in the model itself, is seen here or nowhere.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpals.audit.attacks import (
    NO_PRIVACY,
    Doubles,
    Promise,
    canary_ratings,
    coins,
    fit_to_each,
    rated,
    right_guesses,
    roc,
    trained,
    without_privacy,
)
from dpals.audit.bounds import CONFIDENCE, share_bounds
from dpals.audit.guessing import chance_of_guesses, epsilon_of_guesses, guesses_needed
from dpals.audit.recording import checked_subject
from dpals.audit.report import Check, Curve, Level, Verdict
from dpals.errors import InputError
from dpals.kernels.hashing import hashed_uniform
from dpals.methods.estimator import PrivateEstimator
from dpals.simulate import movielens_like

RATINGS_OF_A_CANARY, PAIRS_OF_A_CANARY = 40, 10
"""In ratings and in implicit feedback: with these, most methods learn canaries by heart if they have no noise."""
ITEMS_PER_CANARY = 8
RARE_SHARE = 0.18
"""Canaries rate the items that people rate least. By their own ratings these are among the fifth rated most, on which
some methods train alone."""
PEOPLE_BESIDE_CANARIES = 200
MOST_CANARIES = 1_000_000

PEOPLE, PEOPLE_ITEMS, PEOPLE_RATINGS = 750, 1500, 50
TESTED_RATES = 20

Coins = NDArray[np.bool_]


def audit_one_run(estimator: PrivateEstimator, implicit: bool = False, canaries: int = 2_000, seed: int = 0) -> Level:
    """Attack the model that one training publishes, twice: with canaries, and with people like any others.

    Parameters
    ----------
    estimator
        A private method. It is copied and trained as it is.
    implicit
        Whether to train on implicit feedback.
    canaries
        How many canaries there are. With more of them, larger epsilons can be belied.
    seed
        Of the simulated data. The coins that decide who takes part are tossed anew each time, like the noise.

    Examples
    --------
    >>> import dpals
    >>> level = audit_one_run(dpals.ItemMean(epsilon=1.0), canaries=500)
    >>> level.facts["epsilon_at_least"] <= level.facts["epsilon_claimed"]
    True
    """
    subject = checked_subject(estimator)
    if canaries < 100:
        raise InputError(f"one run needs at least 100 canaries to say anything, not {canaries:,}")
    games = _canary_games(subject, implicit, canaries, seed)
    promise = games[0].promise
    canary_check, canary_facts = _judged_game(*games, canaries)
    people_check, people_facts, curves = _judged_people(*_people_attacks(subject, implicit, seed), promise)
    return Level(4, "one run", (canary_check, people_check), canary_facts | people_facts, curves, one_is_enough=True)


@dataclass(frozen=True, eq=False)
class Attack:
    """Scores of people who may have taken part, whether they did, and what was promised to them."""

    promise: Promise
    scores: Doubles
    is_in: Coins


def _canary_games(estimator: PrivateEstimator, implicit: bool, canaries: int, seed: int) -> tuple[Attack, Attack]:
    """The canaries' scores after one run of the method, and after one of its twin without privacy."""
    from scipy.sparse import vstack

    n_items = ITEMS_PER_CANARY * canaries
    people = movielens_like(PEOPLE_BESIDE_CANARIES, n_items, mean_ratings=30, seed=seed).to_csr()
    by_count = np.argsort(np.bincount(people.indices, minlength=n_items), kind="stable")
    rare = by_count[: int(RARE_SHARE * n_items)]
    each = PAIRS_OF_A_CANARY if implicit else RATINGS_OF_A_CANARY
    all_canaries = canary_ratings(canaries, rare, n_items, each, seed)
    is_in = coins(canaries)
    data, known = rated(vstack([people, all_canaries[is_in]]), implicit), rated(all_canaries, implicit)

    def game(method: PrivateEstimator) -> Attack:
        model = trained(method, data)
        assert model.privacy is not None
        return Attack(Promise(model.privacy), fit_to_each(model, known), is_in)

    return game(estimator), game(without_privacy(estimator))


def _judged_game(attack: Attack, twin: Attack, canaries: int) -> tuple[Check, dict[str, float]]:
    """What the right guesses about canaries say about the claimed epsilon."""
    question = "canaries are not recognised more often than the claimed epsilon allows"
    promise, delta = attack.promise, _delta_of_game(attack.promise.statement.delta, canaries)
    claimed = promise.epsilon_at(delta)
    guesses = _number_of_guesses(canaries, claimed, delta)
    needed = guesses_needed(canaries, guesses, claimed, delta)
    correct, of_twin = (right_guesses(game.scores, game.is_in, guesses // 2) for game in (attack, twin))
    shown = promise.at_own_delta(epsilon_of_guesses(correct, guesses, canaries, delta), delta)
    facts = {
        "epsilon_claimed": promise.statement.epsilon,
        "epsilon_at_least": shown,
        "canaries": float(canaries),
        "guesses": float(guesses),
        "correct": float(correct),
        "correct_without_privacy": float(of_twin),
    }
    detail = (
        f"of {guesses:,} guesses about {canaries:,} canaries {correct:,} are right, and {of_twin:,} without privacy "
        f"(epsilon {NO_PRIVACY:g}); epsilon is at least {shown:.3g}, claimed is {promise.statement.epsilon:.3g} at "
        f"delta {promise.statement.delta:g}"
    )
    if correct >= needed:
        return Check(question, "failed", f"{detail}: {needed:,} right guesses already belie it"), facts
    if needed > guesses:
        more = _canaries_needed(promise, 2 * canaries)
        return Check(question, "inconclusive", f"{detail}: not even right guesses alone could belie it; {more}"), facts
    if of_twin < needed and claimed > 0:  # where nothing is released, there is no privacy to do without
        weak = f"{detail}: {needed:,} right guesses would belie it, and this attack has no such success without privacy"
        return Check(
            question, "inconclusive", f"{weak}; another number of canaries may help, and level 3 attacks harder"
        ), facts
    seen = "the attack sees the published model only, and is weaker than the worst case of level 3"
    return Check(question, "passed", f"{detail}, and {needed:,} right guesses would belie it; {seen}"), facts


def _delta_of_game(delta: float, canaries: int) -> float:
    """Where the promise is put to the test. At a larger delta, delta alone excuses too many right guesses."""
    return min(delta, 2 * (1 - CONFIDENCE) / canaries)


def _number_of_guesses(canaries: int, epsilon: float, delta: float) -> int:
    """The fewer guesses the surer they are, but they must be able to belie the claim with one in twenty wrong.

    It depends on what is claimed and on nothing that was observed.
    """
    for share in (0.1, 0.2, 0.5):
        guesses = 2 * round(share * canaries / 2)
        if guesses_needed(canaries, guesses, epsilon, delta) <= 0.95 * guesses:
            return guesses
    return 2 * (canaries // 2)


def _canaries_needed(promise: Promise, at_least: int) -> str:
    """How many canaries could belie the claim if all guesses were right, doubled until they do."""
    number = at_least
    while number <= MOST_CANARIES:
        delta = _delta_of_game(promise.statement.delta, number)
        if chance_of_guesses(number, number, number, promise.epsilon_at(delta), delta) <= 1 - CONFIDENCE:
            return f"{number:,} canaries could"
        number *= 2
    return f"nor could those of {MOST_CANARIES:,} canaries"


def _people_attacks(estimator: PrivateEstimator, implicit: bool, seed: int) -> tuple[Attack, Attack]:
    """Scores of people like any others: how much better the model fits them than one trained on yet others."""
    everybody = movielens_like(PEOPLE, PEOPLE_ITEMS, PEOPLE_RATINGS, seed=seed).to_csr()
    luck = hashed_uniform(seed + 3, np.arange(PEOPLE))
    others, suspects = everybody[luck < 1 / 3], everybody[luck >= 1 / 3]
    is_in = coins(suspects.shape[0])
    data, known = rated(suspects[is_in], implicit), rated(suspects, implicit)
    twin = without_privacy(estimator)
    usual = fit_to_each(trained(twin, rated(others, implicit)), known)

    def attack(method: PrivateEstimator) -> Attack:
        model = trained(method, data)
        assert model.privacy is not None
        return Attack(Promise(model.privacy), fit_to_each(model, known) - usual, is_in)

    return attack(estimator), attack(twin)


def _judged_people(attack: Attack, twin: Attack, promise: Promise) -> tuple[Check, dict[str, float], tuple[Curve, ...]]:
    """The curve of the attack against the limit."""
    limit = promise.limit
    area, area_of_twin = _area(attack), _area(twin)
    ours, reference = _curve(attack, "attack", "at the stated epsilon"), _curve(twin, "reference", "without privacy")
    recognised = max(float(hit) for alarm, hit in zip(ours.false_alarms, ours.recognised, strict=True) if alarm <= 0.01)
    facts = {
        "auc_members": area,
        "auc_reference": area_of_twin,
        "recognised_at_1_percent": recognised,
        "limit_at_1_percent": limit(0.01),
    }
    rates = np.geomspace(0.001, 1, 200)
    allowed = Curve("what the promise allows", "limit", tuple(rates), tuple(limit(rate) for rate in rates))
    noticed = "crosses" if _crossing(twin, limit) else "does not cross"
    detail = (
        f"with 1% false alarms the attack recognises {recognised:.1%} of {attack.is_in.sum():,} members, and "
        f"{limit(0.01):.1%} are allowed; area under the curve {area:.3f}, and {area_of_twin:.3f} without privacy, "
        f"where the attack {noticed} the limit with certainty"
    )
    sure = Attack(attack.promise, attack.is_in.astype(np.float64), attack.is_in)
    verdict: Verdict = "passed"
    if crossing := _crossing(attack, limit):
        verdict, detail = "failed", f"{detail}: {crossing}"
    elif not _crossing(sure, limit):
        verdict, detail = "inconclusive", f"{detail}: for so large an epsilon not even a sure attack would"
    elif not _crossing(twin, limit) and promise.statement.epsilon > 0:
        verdict, detail = "inconclusive", f"{detail}: it could not have shown anything"
    question = "people like any others are not recognised more often than the promise allows"
    return Check(question, verdict, detail), facts, (allowed, ours, reference)


def _crossing(attack: Attack, limit: Callable[[float], float]) -> str:
    """Where the curve lies above the limit with confidence at one of the tested numbers of accusations, or nothing."""
    members, others = roc(attack.scores, attack.is_in)
    n_members, n_others = int(members[-1]), int(others[-1])
    confidence = 1 - (1 - CONFIDENCE) / (2 * TESTED_RATES)
    for accused in np.rint(np.geomspace(5, n_members, TESTED_RATES)).astype(int):
        recognised = share_bounds(int(members[accused]), n_members, confidence)[0]
        alarms = share_bounds(int(others[accused]), n_others, confidence)[1]
        if recognised > limit(alarms):
            found = f"at least {recognised:.1%} recognised with at most {alarms:.1%} false alarms"
            return f"{found}, where {limit(alarms):.1%} are allowed"
    return ""


def _area(attack: Attack) -> float:
    """Share of the pairs of a member and another in which the member has the higher score; half of them for ties."""
    inside, outside = attack.scores[attack.is_in], attack.scores[~attack.is_in]
    return float(np.mean((inside[:, None] > outside) + 0.5 * (inside[:, None] == outside)))


def _curve(attack: Attack, kind: Literal["attack", "reference"], name: str) -> Curve:
    members, others = roc(attack.scores, attack.is_in)
    return Curve(name, kind, tuple(others / others[-1]), tuple(members / members[-1]))
