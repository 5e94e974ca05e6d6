"""Lower bounds on epsilon from the number of correct guesses about canaries in one training run.

Each of many canaries takes part or not, by the toss of a coin. After one run, someone who sees what was published
says of some canaries that they were in it, of some that they were not, and nothing of the others.
"""

import math

import numpy as np
from scipy.stats import binom

from dpals.audit.confidence_bounds import CONFIDENCE
from dpals.release.accounting import boundary


def chance_of_guesses(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """Largest probability of so many right guesses, or more, under (epsilon, delta)-differential privacy.

    Formal guarantee (Steinke, Nasr & Jagielski 2023, theorem 5.2): with coins that are fair and independent, and B
    binomial with `guesses` trials of probability e^epsilon / (1 + e^epsilon), P[right guesses >= v] is at most

        P[B >= v] + 2 delta canaries max_i P[v > B >= v - i] / i.

    The first term is what guesses without delta can reach. The second is for the rare event in which i guesses more
    are right: delta allows all canaries together 2 delta canaries of it, and i at once use up i times as much.

    Examples
    --------
    >>> round(chance_of_guesses(correct=90, guesses=100, canaries=1000, epsilon=1.0, delta=0.0), 6)
    2.7e-05
    """
    if not 0 <= correct <= guesses <= canaries:
        raise ValueError(f"{correct} right guesses of {guesses} about {canaries} canaries cannot be")
    share = 1 / (1 + math.exp(-min(epsilon, 700.0)))
    reached = float(binom.sf(correct - 1, guesses, share))
    below = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), guesses, share))
    rare = float(np.max(below / np.arange(1, correct + 1), initial=0.0))
    return min(1.0, reached + 2 * delta * canaries * rare)


def epsilon_of_guesses(
    correct: int, guesses: int, canaries: int, delta: float, confidence: float = CONFIDENCE
) -> float:
    """Lower bound on epsilon, given delta: under a smaller one so many right guesses are too unlikely.

    Examples
    --------
    >>> round(epsilon_of_guesses(correct=100, guesses=100, canaries=1000, delta=1e-9), 3)
    2.338
    """
    risk = 1 - confidence
    return boundary(lambda value: chance_of_guesses(correct, guesses, canaries, value, delta) > risk)[0]


def guesses_needed(canaries: int, guesses: int, epsilon: float, delta: float, confidence: float = CONFIDENCE) -> int:
    """The fewest right guesses that refute (epsilon, delta); one more than there are guesses where none do.

    Examples
    --------
    >>> guesses_needed(canaries=1000, guesses=100, epsilon=1.0, delta=1e-9)
    89
    """
    risk = 1 - confidence
    low, high = 0, guesses + 1
    while high - low > 1:
        middle = (low + high) // 2
        fits = chance_of_guesses(middle, guesses, canaries, epsilon, delta) > risk
        low, high = (middle, high) if fits else (low, middle)
    return high
