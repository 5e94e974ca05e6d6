"""Canaries for searches, whose promise is epsilon and delta alone: what the best of many tries gives away.

Three things together stand for that promise. One try has the mu that it should have (`dpals.audit.canary`). The best
of many is chosen as it should be: here, with `best_of` itself and tries that publish one number through the real
mechanism. And what is promised for the best of such tries covers what it truly loses: here, by working it out
exactly.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpals.audit.confidence_bounds import CONFIDENCE, Scores, epsilon_from_scores
from dpals.audit.report import Check, Verdict
from dpals.release import selection
from dpals.release.accounting import Budget, cost_of
from dpals.release.contribution import Contribution, Pattern, Query
from dpals.release.mechanism import Mechanism
from dpals.release.selection import DISTRIBUTIONS, Poisson, Tries, tries_of
from dpals.statement.record import Statement
from dpals.statement.rounding import up

_RUNS_PER_SEARCH = 10  # a search takes as long as many canaries of other methods
_MOST_TRIES = 1_000_000
_TOGETHER = 2**16
_CELLS = np.concatenate([[-np.inf], np.linspace(-9.0, 9.0, 6001), [np.inf]])
_LARGEST_MU = 25.0  # beyond it, chances are smaller than floating point can tell
_OTHER_MUS = (0.05, 0.2, 1.0)
_OTHER_DELTAS = (1e-6, 1e-4)
_OTHER_MEANS = (3.0, 10.0, 100.0)


def search_checks(
    statement: Statement, runs: int, mechanism_class: type[Mechanism]
) -> tuple[tuple[Check, Check, Check], float]:
    """Three checks of a search, and the epsilon that its outcomes prove."""
    chosen = statement.selection
    assert chosen is not None
    tries = tries_of(chosen.distribution, chosen.tries)
    wanted = max(1, runs // _RUNS_PER_SEARCH)
    searches = max(1, min(wanted, int(_MOST_TRIES / tries.mean)))
    absent, present = (best_scores(tries, chosen.mu, searches, here, mechanism_class) for here in (False, True))
    chances = lambda y: (best_below(tries, y), best_below(tries, y - chosen.mu))  # noqa: E731
    epsilon = epsilon_from_scores(absent, present, chances, statement.delta)
    drawn = _check_drawn(tries, (absent, present), chances, epsilon, statement.epsilon)
    return (drawn, _check_own_loss(statement, tries), _check_other_losses()), epsilon


def best_scores(tries: Tries, mu: float, searches: int, present: bool, mechanism_class: type[Mechanism]) -> Scores:
    """The best scores of searches whose tries publish whether one user is there; -infinity for no tries."""
    published = _tries(mu, present, mechanism_class)

    def attempt(_candidate: int, _seed: int | None) -> tuple[float, float]:
        score = next(published)
        return score, score

    outcomes = [selection.best_of(tries, 1, attempt) for _ in range(searches)]
    return np.array([-math.inf if outcome is None else outcome for outcome in outcomes])


def _tries(mu: float, present: bool, mechanism_class: type[Mechanism]) -> Iterator[float]:
    """Scores of tries without end. Those of many tries are released together, each as an item with its own user."""
    budget = Budget.of_cost(cost_of(mu))
    query = Query("presence of canaries", _TOGETHER, 1.0)
    users = _TOGETHER if present else 0
    contribution = Contribution(
        Pattern(np.arange(users + 1), np.arange(users, dtype=np.int32), _TOGETHER), np.ones(users)
    )
    while True:
        mechanism = mechanism_class(budget, quiet=True)
        table = mechanism.release(query, contribution, budget.cost)
        yield from (table[:, 0] / mechanism.releases[-1].sigma).tolist()


def best_below(tries: Tries, y: Scores) -> Scores:
    """The chance that the best of tries N(0, 1) is at most y, or that there is none."""
    return generating_function(tries, ndtr(-y))


def generating_function(tries: Tries, beyond: Scores) -> Scores:
    """E[(1 - beyond)^K]: the chance that no try is beyond something, if one try is so with this chance.

    Examples
    --------
    >>> generating_function(tries_of("geometric", 4.0), np.array([0.0, 0.5, 1.0])).round(4)
    array([1. , 0.2, 0. ])
    """
    if isinstance(tries, Poisson):
        return np.exp(-tries.mean * beyond)
    rest = tries.gamma + (1 - tries.gamma) * beyond
    if tries.eta == 0:
        return np.log(rest) / math.log(tries.gamma)
    result: Scores = (rest**-tries.eta - 1) / (tries.gamma**-tries.eta - 1)
    return result


def lost(mu: float, epsilon: float, tries: Tries) -> float:
    """A delta that the best of `tries` needs at least at this epsilon, if tries are N(0, 1) or N(mu, 1).

    What a try publishes is put into cells, and the cells into an order by score. The chances of the best cell are
    then known, and so is the delta of this one search. Rounding to cells can only lose information, so that every
    order gives a true lower bound. Orders tried: rising, falling, and both with the far end of the scores put on top.
    There the tries besides the best tell the most: the less likely they make a try that beats the outcome, the likelier
    the outcome.
    """
    chances = [_cell_chances(0.0), _cell_chances(mu)]
    worst = 0.0
    for order in _orders(chances[0], tries):
        one, other = (_best(tries, chance[order]) for chance in chances)
        for a, b in ((one, other), (other, one)):
            with np.errstate(divide="ignore"):
                allowed = np.exp(np.minimum(epsilon + np.log(b), 0.0))
            worst = max(worst, float(np.maximum(a - allowed, 0).sum()))
    return worst


def _cell_chances(mean: float) -> Scores:
    """Of each cell, from the nearer tail, so that small ones are exact."""
    low, high = _CELLS[:-1] - mean, _CELLS[1:] - mean
    return np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))


def _best(tries: Tries, chances: Scores) -> Scores:
    """The chance of each cell to be the best one; the first cell beats all others.

    It is the difference of two values of the `generating_function`, written so that small ones keep all their digits:
    exp(epsilon) would make large ones of rounding errors.
    """
    beyond = np.minimum(np.concatenate([[0.0], np.cumsum(chances[:-1])]), 1.0)
    if isinstance(tries, Poisson):
        return np.asarray(-np.exp(-tries.mean * beyond) * np.expm1(-tries.mean * chances))
    rest = tries.gamma + (1 - tries.gamma) * beyond
    growth = np.log1p((1 - tries.gamma) * chances / rest)
    if tries.eta == 0:
        return np.asarray(growth / -math.log(tries.gamma))
    return np.asarray(-(rest**-tries.eta) * np.expm1(-tries.eta * growth) / (tries.gamma**-tries.eta - 1))


def _orders(chances: Scores, tries: Tries) -> Iterator[NDArray[np.int64]]:
    """Cells from the best to the worst, in several ways."""
    rising = np.arange(len(chances))
    for cells in (rising, rising[::-1]):
        for part in (0.0, 0.1, 0.3, 1.0, 3.0):
            top = int(np.searchsorted(np.cumsum(chances[cells]), min(part / tries.mean, 0.45))) if part else 0
            yield np.concatenate([cells[:top], cells[top:][::-1]])


def _check_drawn(
    tries: Tries,
    outcomes: tuple[Scores, Scores],
    chances: Callable[[Scores], tuple[Scores, Scores]],
    epsilon: float,
    claimed: float,
) -> Check:
    """Are the best scores distributed as they should be? By the inequality of Dvoretzky, Kiefer and Wolfowitz."""
    searches = len(outcomes[0])
    lines = np.linspace(-5.0, 6.0, 441)
    pairs = zip(outcomes, chances(lines), strict=True)
    off = max(np.abs(np.searchsorted(np.sort(seen), lines, "right") / searches - due).max() for seen, due in pairs)
    at_most = math.sqrt(math.log(4 / (1 - CONFIDENCE)) / 2 / searches)
    # A plainly broken search always makes twice as many tries as it should on average.
    broken = float(np.abs(ndtr(lines) ** (2 * tries.mean) - best_below(tries, lines)).max())
    detail = (
        f"{searches:,} searches with and as many without a user: scores are off by {off:.3f}, by chance at most "
        f"{at_most:.3f}; epsilon at least {epsilon:.3f}, claimed {claimed:.3f}"
    )
    question = "the best of a secret number of tries is chosen as it should be"
    if off > at_most or epsilon > claimed:
        return Check(question, "failed", detail)
    if broken > 2 * at_most:
        return Check(question, "passed", detail)
    needed = math.ceil(_RUNS_PER_SEARCH * searches * (2 * at_most / broken) ** 2)
    return Check(question, "inconclusive", f"{detail}; {needed:,} runs would do")


def _check_own_loss(statement: Statement, tries: Tries) -> Check:
    chosen = statement.selection
    assert chosen is not None
    question = "the promise covers the exact loss of such a search"
    if chosen.mu > _LARGEST_MU:
        return Check(
            question, "inconclusive", f"epsilon {up(statement.epsilon)} promises so little that it was not tried"
        )
    delta = lost(chosen.mu, statement.epsilon, tries)
    detail = f"at epsilon {up(statement.epsilon)} it needs a delta of {delta:.3g}; claimed is {up(statement.delta)}"
    return Check(question, _covered(delta, statement.delta), detail)


def _check_other_losses() -> Check:
    """The formula that the promise comes from, with settings at which its terms matter in turn."""
    settings = [
        (mu, delta, name, mean)
        for mu in _OTHER_MUS
        for delta in _OTHER_DELTAS
        for name in DISTRIBUTIONS
        for mean in _OTHER_MEANS
    ]
    shares = []
    for mu, delta, name, mean in settings:
        tries = tries_of(name, mean)
        shares.append(lost(mu, selection.epsilon(mu, delta, tries), tries) / delta)
    worst = int(np.argmax(shares))
    mu, delta, name, mean = settings[worst]
    detail = (
        f"{len(settings)} settings; at most {shares[worst]:.3g} times delta is needed, at mu {mu:g}, delta {delta:g} "
        f"and {mean:g} tries on average ({name})"
    )
    verdict = _covered(shares[worst], 1.0)
    return Check("what is promised for searches covers their exact loss at other settings too", verdict, detail)


def _covered(needed: float, claimed: float) -> Verdict:
    """Differences of a billionth are rounding errors of the chances."""
    return "failed" if needed > claimed * (1 + 1e-9) + 1e-12 else "passed"
