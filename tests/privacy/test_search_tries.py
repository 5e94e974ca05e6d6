"""The tries of a search: how many there are, and of which candidates."""

import math
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dpals.audit.recorded_run import record_run
from dpals.audit.report import Check
from dpals.audit.p_values import FEWEST_EXPECTED, chi_square_p_value, judge_p_values
from dpals.data.ratings import Ratings
from dpals.methods import private_search
from dpals.methods.private_search import PrivateSearch
from dpals.release.selection import Poisson, Tries, tries_of

_SEARCHES = 2000
_MOST_TRIES = 200_000
_FEWEST_SEARCHES = 400
_FAR = 20  # times the mean: larger numbers are counted together
_LONG, _LONG_SEARCHES = 100.0, 1000  # tries on average, and searches
_GROUPS = 8  # candidates are put into so many groups to see whether they depend on where they stand


def check_tries(search: PrivateSearch, ratings: Ratings) -> tuple[Check, ...]:
    """Fit the search once to see how it draws its tries, then draw many searches in the same way, without training."""
    seen: list[tuple[Tries, int, int | None]] = []
    best_of = vars(private_search)["best_of"]  # the one that the search calls

    def watched(tries: Tries, n_candidates: int, attempt: Any, insecure_seed: int | None = None) -> Any:
        seen.append((tries, n_candidates, insecure_seed))
        return best_of(tries, n_candidates, attempt, insecure_seed)

    with patch.object(private_search, "best_of", watched):
        record_run(search, ratings, insecure_seed=None)
    ((tries, n_candidates, seed),) = seen
    paid = tries_of(search.distribution, search.tries)
    stated = tries == paid and n_candidates == math.prod(map(len, search.grid.values()))
    same = Check(
        "a search draws its tries as its statement says",
        "passed" if stated and seed is None else "failed",
        f"{tries} ({paid} stated) of {n_candidates} candidates, {'secure' if seed is None else 'SEEDED'}",
    )
    n_searches = min(_SEARCHES, int(_MOST_TRIES / search.tries))
    if n_searches < _FEWEST_SEARCHES:
        enough = f"with at most {_MOST_TRIES // _FEWEST_SEARCHES} tries on average they can be looked at"
        return same, Check("the tries have the stated distribution", "inconclusive", f"too many tries: {enough}")
    drawn = [_drawn(best_of, tries, n_candidates) for _ in range(n_searches)]
    long = tries_of(search.distribution, _LONG)
    long_ones = [_drawn(best_of, long, n_candidates) for _ in range(_LONG_SEARCHES)]
    return (
        same,
        _check_numbers("the number of tries has the stated distribution", tries, drawn),
        _check_numbers("so has that of longer searches", long, long_ones),
        _check_candidates(n_candidates, drawn),
    )


def _drawn(best_of: Callable[..., object], tries: Tries, n_candidates: int) -> list[int]:
    """The candidates of one search, in order."""
    candidates: list[int] = []

    def attempt(candidate: int, seed: int | None) -> tuple[float, None]:  # noqa: ARG001, as of a real attempt
        candidates.append(candidate)
        return 0.0, None

    best_of(tries, n_candidates, attempt)
    return candidates


def _check_numbers(question: str, tries: Tries, drawn: list[list[int]]) -> Check:
    numbers = np.array([len(candidates) for candidates in drawn])
    counts = np.bincount(numbers, minlength=int(_FAR * tries.mean))
    chances = np.append(_chances(tries, len(counts)), 0.0)
    chances[-1] = max(0.0, 1 - chances.sum())  # of all larger numbers
    p_values = [chi_square_p_value(np.append(counts, 0), chances)]
    spread, mean = math.sqrt(numbers.var() / len(numbers)), numbers.mean()
    found = f"{len(drawn):,} searches: {mean:.3f} tries on average (+- {spread:.2g}), {tries.mean:.6g} stated"
    return judge_p_values(question, p_values, found)


def _chances(tries: Tries, n: int) -> NDArray[np.float64]:
    """P(K = k) for k < n, from formulas of others than those that searches are drawn with."""
    k = np.arange(n)
    if isinstance(tries, Poisson):
        return np.asarray(stats.poisson.pmf(k, tries.mean))
    if tries.eta == 0:
        return np.asarray(stats.logser.pmf(k, 1 - tries.gamma))
    whole = stats.nbinom.pmf(k, tries.eta, tries.gamma) / stats.nbinom.sf(0, tries.eta, tries.gamma)
    return np.where(k > 0, whole, 0.0)


def _check_candidates(n_candidates: int, drawn: list[list[int]]) -> Check:
    """Uniform, and unrelated to the place, to the candidate before and to how many tries there are."""
    question = "every try draws any candidate with the same chance, whatever came before"
    candidates = np.concatenate([np.empty(0, np.int64), *map(np.array, drawn)]).astype(np.int64)
    if n_candidates == 1:
        return Check(question, "passed", "there is one candidate only")
    groups = min(n_candidates, _GROUPS, max(2, math.isqrt(len(candidates) // FEWEST_EXPECTED)))
    group = candidates % groups
    chances = np.bincount(np.arange(n_candidates) % groups) / n_candidates
    place = np.concatenate([np.arange(len(row)) for row in drawn])
    later = place > 0
    lengths = np.repeat([len(row) for row in drawn], [len(row) for row in drawn])
    related = [
        (place % groups, group),
        (group[np.flatnonzero(later) - 1], group[later]),
        (np.searchsorted(np.quantile(lengths, [0.25, 0.5, 0.75]), lengths), group),
    ]
    p_values = [chi_square_p_value(np.bincount(candidates, minlength=n_candidates), np.full(n_candidates, 1.0))]
    for one, other in related:
        p_values += [
            chi_square_p_value(np.bincount(other[one == value], minlength=groups), chances) for value in np.unique(one)
        ]
    return judge_p_values(question, p_values, f"{len(candidates):,} tries of {n_candidates} candidates")
