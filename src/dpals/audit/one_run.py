"""Level 4: attacks on what one training run publishes, and on nothing else.

An attacker of this kind is weaker than the one of the promise, who sees every release and knows everybody else. What
such attacks show lies far below what is promised; they are here because they look at the whole, end to end, as someone
would who downloads the model.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpals.audit.confidence_bounds import CONFIDENCE
from dpals.audit.guess_bounds import chance_of_guesses, epsilon_of_guesses, guesses_needed
from dpals.audit.membership_attack import (
    NO_PRIVACY,
    Doubles,
    Promise,
    canary_ratings,
    count_correct_guesses,
    membership_scores,
    roc,
    to_ratings,
    toss_coins,
    train,
    without_privacy,
)
from dpals.audit.plots import Curve
from dpals.audit.recorded_run import checked_subject
from dpals.audit.report import Check, Level
from dpals.data.simulate import movielens_like
from dpals.errors import InputError
from dpals.ledger.amounts import up
from dpals.methods.base.estimator import PrivateEstimator

RATINGS_OF_A_CANARY, PAIRS_OF_A_CANARY = 40, 10
"""In ratings and in implicit feedback: with these, most methods learn canaries by heart if they have no noise."""
ITEMS_PER_CANARY = 8
RARE_SHARE = 0.18
"""Canaries rate the items that other users rate least. Their own ratings bring these among the fifth rated most, the
only ones that some methods train on."""
USERS_BESIDE_CANARIES = 200
MOST_CANARIES = 1_000_000

ITEMS_PER_USER, RATINGS_OF_A_USER = 10, 30
OTHERS_SHARE = 1 / 3
"""Share of the ordinary users whom the attacker knows, to see how well a model usually fits."""

Coins = NDArray[np.bool_]


def audit_one_run(estimator: PrivateEstimator, implicit: bool = False, canaries: int = 2_000, seed: int = 0) -> Level:
    """Attack the model that one training run publishes, twice: with canaries, and with ordinary users.

    Parameters
    ----------
    estimator
        A private method. It is copied and trained as it is.
    implicit
        Whether to train on implicit feedback.
    canaries
        How many canaries there are, and ordinary users. With more of them, larger epsilons can be refuted.
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
    games = {
        "canaries are not recognised more often than the claimed epsilon allows": _canary_games,
        "ordinary users are not recognised more often than the claimed epsilon allows": _ordinary_user_games,
    }
    attacks = [make(subject, implicit, canaries, seed) for make in games.values()]
    found = [_guess(*pair) for pair in attacks]
    checks = tuple(guessed.check(question) for question, guessed in zip(games, found, strict=True))
    facts, curves = _curves_and_facts(*attacks[1])
    return Level(4, "one run", checks, found[0].facts | facts, curves, one_is_enough=True)


@dataclass(frozen=True, eq=False)
class AttackScores:
    """Scores of users who may have taken part, whether they did, and what was promised to them."""

    promise: Promise
    scores: Doubles
    is_in: Coins


def _canary_games(
    estimator: PrivateEstimator, implicit: bool, canaries: int, seed: int
) -> tuple[AttackScores, AttackScores]:
    """The canaries' scores after one run of the method, and after one of its twin without privacy."""
    from scipy.sparse import vstack

    n_items = ITEMS_PER_CANARY * canaries
    users = movielens_like(USERS_BESIDE_CANARIES, n_items, mean_ratings=30, seed=seed).to_csr()
    by_count = np.argsort(np.bincount(users.indices, minlength=n_items), kind="stable")
    rare = by_count[: int(RARE_SHARE * n_items)]
    each = PAIRS_OF_A_CANARY if implicit else RATINGS_OF_A_CANARY
    all_canaries = canary_ratings(canaries, rare, n_items, each, seed)
    is_in = toss_coins(canaries)
    data, known = to_ratings(vstack([users, all_canaries[is_in]]), implicit), to_ratings(all_canaries, implicit)

    def game(method: PrivateEstimator) -> AttackScores:
        model = train(method, data)
        assert model.privacy is not None
        return AttackScores(Promise(model.privacy), membership_scores(model, known), is_in)

    return game(estimator), game(without_privacy(estimator))


@dataclass(frozen=True)
class GuessingResult:
    """How many guesses were right, of the attack and of its twin, and how many would refute the claim."""

    promise: Promise
    n_users: int
    guesses: int
    needed: int
    right: int
    right_of_twin: int
    delta: float

    @property
    def epsilon(self) -> float:
        """Promises of this kind with a smaller epsilon, at the statement's delta, are refuted."""
        shown = epsilon_of_guesses(self.right, self.guesses, self.n_users, self.delta)
        return self.promise.at_own_delta(shown, self.delta)

    @property
    def facts(self) -> dict[str, float]:
        return {
            "epsilon_claimed": self.promise.statement.epsilon,
            "epsilon_at_least": self.epsilon,
            "canaries": float(self.n_users),
            "guesses": float(self.guesses),
            "correct": float(self.right),
            "correct_without_privacy": float(self.right_of_twin),
        }

    def check(self, question: str) -> Check:
        """Failed if too many guesses are right; inconclusive if there could not have been enough."""
        claim = self.promise.statement
        found = (
            f"of {self.guesses:,} guesses about {self.n_users:,} of them {self.right:,} are right, and "
            f"{self.right_of_twin:,} without privacy (epsilon {NO_PRIVACY:g}); epsilon is at least {self.epsilon:.3g}, "
            f"claimed is {up(claim.epsilon)} at delta {up(claim.delta)}"
        )
        if self.right >= self.needed:
            return Check(question, "failed", f"{found}: {self.needed:,} right guesses already refute it")
        if self.needed > self.guesses:
            more = _n_users_needed(self.promise, 2 * self.n_users)
            return Check(question, "inconclusive", f"{found}: not even all guesses right could refute it; {more}")
        if self.right_of_twin < self.needed and claim.epsilon > 0:  # or there is no privacy to do without
            weak = "this attack has no such success without privacy; level 3 attacks harder"
            return Check(
                question, "inconclusive", f"{found}: {self.needed:,} right guesses would refute it, and {weak}"
            )
        return Check(question, "passed", f"{found}, and {self.needed:,} right guesses would refute it")


def _guess(attack: AttackScores, twin: AttackScores) -> GuessingResult:
    """Who is guessed to have taken part, and who not, is settled by the scores; how many, by the claim alone."""
    users, promise = len(attack.is_in), attack.promise
    delta = _delta_of_game(promise.statement.delta, users)
    claimed = promise.epsilon_at(delta)
    guesses = _number_of_guesses(users, claimed, delta)
    needed = guesses_needed(users, guesses, claimed, delta)
    right, of_twin = (count_correct_guesses(game.scores, game.is_in, guesses // 2) for game in (attack, twin))
    return GuessingResult(promise, users, guesses, needed, right, of_twin, delta)


def _delta_of_game(delta: float, canaries: int) -> float:
    """Where the promise is put to the test. At a larger delta, delta alone excuses too many right guesses."""
    return min(delta, 2 * (1 - CONFIDENCE) / canaries)


def _number_of_guesses(canaries: int, epsilon: float, delta: float) -> int:
    """The fewer guesses the surer they are, but they must be able to refute the claim with one in twenty wrong.

    It depends on what is claimed and on nothing that was observed.
    """
    for share in (0.1, 0.2, 0.5):
        guesses = 2 * round(share * canaries / 2)
        if guesses_needed(canaries, guesses, epsilon, delta) <= 0.95 * guesses:
            return guesses
    return 2 * (canaries // 2)


def _n_users_needed(promise: Promise, at_least: int) -> str:
    """How many canaries could refute the claim if all guesses were right, doubled until they do."""
    number = at_least
    while number <= MOST_CANARIES:
        delta = _delta_of_game(promise.statement.delta, number)
        if chance_of_guesses(number, number, number, promise.epsilon_at(delta), delta) <= 1 - CONFIDENCE:
            return f"{number:,} canaries or users could"
        number *= 2
    return f"nor could those about {MOST_CANARIES:,}"


def _ordinary_user_games(
    estimator: PrivateEstimator, implicit: bool, users: int, seed: int
) -> tuple[AttackScores, AttackScores]:
    """Scores of ordinary users: how much better the model fits them than one trained on yet others."""
    n_others = round(OTHERS_SHARE * users)
    everybody = movielens_like(n_others + users, ITEMS_PER_USER * users, RATINGS_OF_A_USER, seed=seed).to_csr()
    others, suspects = everybody[:n_others], everybody[n_others:]
    is_in = toss_coins(users)
    data, known = to_ratings(suspects[is_in], implicit), to_ratings(suspects, implicit)
    twin = without_privacy(estimator)
    usual = membership_scores(train(twin, to_ratings(others, implicit)), known)

    def game(method: PrivateEstimator) -> AttackScores:
        model = train(method, data)
        assert model.privacy is not None
        return AttackScores(Promise(model.privacy), membership_scores(model, known) - usual, is_in)

    return game(estimator), game(twin)


def _curves_and_facts(attack: AttackScores, twin: AttackScores) -> tuple[dict[str, float], tuple[Curve, ...]]:
    """Members recognised against false alarms, as curves, and what they come to. They are for the eye.

    Users of one run are not independent of each other, so that a curve above the limit is not a proof.
    """
    limit = attack.promise.limit
    ours, reference = _curve(attack, "attack", "at the stated epsilon"), _curve(twin, "reference", "without privacy")
    facts = {
        "auc_members": _area(attack),
        "auc_reference": _area(twin),
        "recognised_at_1_percent": max(
            hit for alarm, hit in zip(ours.false_alarms, ours.recognised, strict=True) if alarm <= 0.01
        ),
        "limit_at_1_percent": limit(0.01),
    }
    rates = np.geomspace(0.001, 1, 200).tolist()
    allowed = Curve("what the promise allows", "limit", tuple(rates), tuple(limit(rate) for rate in rates))
    return facts, (allowed, ours, reference)


def _area(attack: AttackScores) -> float:
    """Share of the pairs of a member and another in which the member has the higher score; half of them for ties."""
    inside, outside = attack.scores[attack.is_in], attack.scores[~attack.is_in]
    return float(np.mean((inside[:, None] > outside) + 0.5 * (inside[:, None] == outside)))


def _curve(attack: AttackScores, kind: Literal["attack", "reference"], name: str) -> Curve:
    members, others = roc(attack.scores, attack.is_in)
    return Curve(name, kind, tuple((others / others[-1]).tolist()), tuple((members / members[-1]).tolist()))
