"""Canaries for a search, whose promise is only epsilon and delta: how well the best of many tries gives a user away.

`dpals.audit.canary` audits the releases of one try. Here `best_of` itself chooses among tries that publish one number
through the real mechanism. That the stated epsilon covers the exact loss of such a search is a matter of formulas, and
tested with the library.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import ndtr

from dpals.audit.confidence_bounds import CONFIDENCE, Scores, epsilon_from_scores
from dpals.audit.report import Check
from dpals.release import selection
from dpals.release.accounting import Budget, cost_of
from dpals.release.contribution import Contribution, Pattern, Query
from dpals.release.mechanism import Mechanism
from dpals.release.selection import Poisson, TriesDistribution, tries_distribution
from dpals.statement.record import Statement

_RUNS_PER_SEARCH = 10  # a search takes as long as many canaries of other methods
_MOST_TRIES = 1_000_000
_TOGETHER = 2**16


def check_search(statement: Statement, runs: int, mechanism_class: type[Mechanism]) -> tuple[Check, float]:
    """Whether the best try is chosen as it should be, and the epsilon that the outcomes prove."""
    chosen = statement.selection
    assert chosen is not None
    tries = tries_distribution(chosen.distribution, chosen.tries)
    wanted = max(1, runs // _RUNS_PER_SEARCH)
    searches = max(1, min(wanted, int(_MOST_TRIES / tries.mean)))
    absent, present = (best_scores(tries, chosen.mu, searches, here, mechanism_class) for here in (False, True))
    chances = lambda y: (best_below(tries, y), best_below(tries, y - chosen.mu))  # noqa: E731
    epsilon = epsilon_from_scores(absent, present, chances, statement.delta)
    return _check_choice(tries, (absent, present), chances, epsilon, statement.epsilon), epsilon


def best_scores(
    tries: TriesDistribution, mu: float, searches: int, present: bool, mechanism_class: type[Mechanism]
) -> Scores:
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


def best_below(tries: TriesDistribution, y: Scores) -> Scores:
    """The chance that the best of tries N(0, 1) is at most y, or that there is none."""
    return generating_function(tries, ndtr(-y))


def generating_function(tries: TriesDistribution, beyond: Scores) -> Scores:
    """E[(1 - beyond)^K]: the chance that no try is beyond something, if one try is so with this chance.

    Examples
    --------
    >>> generating_function(tries_distribution("geometric", 4.0), np.array([0.0, 0.5, 1.0])).round(4)
    array([1. , 0.2, 0. ])
    """
    if isinstance(tries, Poisson):
        return np.exp(-tries.mean * beyond)
    rest = tries.gamma + (1 - tries.gamma) * beyond
    if tries.eta == 0:
        return np.log(rest) / math.log(tries.gamma)
    result: Scores = (rest**-tries.eta - 1) / (tries.gamma**-tries.eta - 1)
    return result


def _check_choice(
    tries: TriesDistribution,
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
