"""The tries of a search: how many there are, and of which candidates. Drawn many times, without training."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import dpals
from dpals.audit.p_values import FEWEST_EXPECTED, chi_square_p_value
from dpals.audit.simulated_data import odd_users
from dpals.release import selection
from dpals.release.noise import NoiseStream
from dpals.release.selection import Poisson, best_of, tries_distribution

RATINGS = odd_users(40, 40, implicit=False).ratings()
GRID = {"residual_bound": [0.1, 0.5]}
SEARCHES = {3.0: 2000, 100.0: 1000}
"""How many searches are drawn, by the mean number of tries. Long ones show a limit on the number."""
FAR = 20  # times the mean: larger numbers are counted together
GROUPS = 8  # candidates are put into so many groups to see whether they depend on their place
SMALLEST = 1e-8
"""Of a p-value: tries are secure, so these tests could fail by chance."""


@pytest.mark.parametrize("distribution", selection.DISTRIBUTIONS)
@pytest.mark.parametrize("mean", [1.5, 3.0])
def test_a_search_draws_its_tries_as_its_statement_says(monkeypatch, distribution, mean):
    search = dpals.PrivateSearch(dpals.ItemMean(), GRID, 1.0, tries=mean, distribution=distribution)
    drawn = []

    def watched(tries, n_candidates, attempt, insecure_seed=None):
        drawn.append((tries, n_candidates, insecure_seed))
        return best_of(tries, n_candidates, attempt, insecure_seed)

    monkeypatch.setattr("dpals.methods.private_search.best_of", watched)
    stated = search.fit(RATINGS).privacy.selection
    assert drawn == [(tries_distribution(stated.distribution, stated.tries), 2, None)]
    assert (stated.distribution, stated.tries) == (distribution, mean)


def candidates_of(tries, n_candidates):
    """The candidates of one search, in order."""
    candidates = []

    def attempt(candidate, _):
        candidates.append(candidate)
        return 0.0, None

    best_of(tries, n_candidates, attempt)
    return candidates


def chances(tries, n):
    """P(K = k) for k < n, by formulas other than those that searches draw with."""
    k = np.arange(n)
    if isinstance(tries, Poisson):
        return stats.poisson.pmf(k, tries.mean)
    if tries.eta == 0:
        return stats.logser.pmf(k, 1 - tries.gamma)
    whole = stats.nbinom.pmf(k, tries.eta, tries.gamma) / stats.nbinom.sf(0, tries.eta, tries.gamma)
    return np.where(k > 0, whole, 0.0)


def number_p_value(tries, drawn):
    """Of the numbers of tries."""
    counts = np.bincount([len(candidates) for candidates in drawn], minlength=int(FAR * tries.mean))
    expected = np.append(chances(tries, len(counts)), 0.0)
    expected[-1] = max(0.0, 1 - expected.sum())  # of all larger numbers
    return chi_square_p_value(np.append(counts, 0), expected)


def candidate_p_value(n_candidates, drawn):
    """Of candidates being uniform, whatever their place, the candidate before and the number of tries; corrected."""
    candidates = np.concatenate([np.array(row, np.int64) for row in drawn])
    groups = min(n_candidates, GROUPS, max(2, math.isqrt(len(candidates) // FEWEST_EXPECTED)))
    group = candidates % groups
    uniform = np.bincount(np.arange(n_candidates) % groups) / n_candidates
    place = np.concatenate([np.arange(len(row)) for row in drawn])
    later = place > 0
    lengths = np.repeat([len(row) for row in drawn], [len(row) for row in drawn])
    related = [
        (place % groups, group),
        (group[np.flatnonzero(later) - 1], group[later]),
        (np.searchsorted(np.quantile(lengths, [0.25, 0.5, 0.75]), lengths), group),
    ]
    values = [chi_square_p_value(np.bincount(candidates, minlength=n_candidates), np.full(n_candidates, 1.0))]
    for one, other in related:
        values += [
            chi_square_p_value(np.bincount(other[one == value], minlength=groups), uniform) for value in np.unique(one)
        ]
    return min(1.0, min(values) * len(values))


@pytest.mark.parametrize("distribution", selection.DISTRIBUTIONS)
@pytest.mark.parametrize("mean", SEARCHES)
def test_the_number_of_tries_and_their_candidates_have_the_stated_distribution(distribution, mean):
    tries = tries_distribution(distribution, mean)
    for n_candidates in (2,) if mean == max(SEARCHES) else (2, 30):
        drawn = [candidates_of(tries, n_candidates) for _ in range(SEARCHES[mean])]
        assert number_p_value(tries, drawn) > SMALLEST
        assert candidate_p_value(n_candidates, drawn) > SMALLEST


TURNS = itertools.count()
NUMBER = selection._number


@pytest.mark.parametrize(
    ("name", "replacement", "mean", "p_value"),
    [
        ("_number", lambda tries, _: round(tries.mean), 3.0, number_p_value),
        ("_number", lambda tries, source: min(NUMBER(tries, source), 50), 100.0, number_p_value),
        ("_number", lambda _, source: 1 + int(source.words(1)[0]) % 5, 3.0, number_p_value),
        ("_uniform", lambda n, _: next(TURNS) % n, 3.0, candidate_p_value),
        ("_uniform", lambda n, source: min(int(source.words(1)[0]) % (n + 1), n - 1), 3.0, candidate_p_value),
    ],
)
def test_tries_that_are_drawn_otherwise_are_noticed(monkeypatch, name, replacement, mean, p_value):
    monkeypatch.setattr(selection, name, replacement)
    tries = tries_distribution("geometric", mean)
    drawn = [candidates_of(tries, 2) for _ in range(SEARCHES[mean])]
    assert p_value(2 if p_value is candidate_p_value else tries, drawn) < SMALLEST


def test_a_search_draws_from_one_stream_under_a_key_of_its_own(monkeypatch):
    opened, start = [], NoiseStream._start
    monkeypatch.setattr(NoiseStream, "_start", lambda stream, key: (opened.append(key), start(stream, key))[1])
    for _ in range(20):
        candidates_of(tries_distribution("geometric", 3.0), 2)
    assert len(opened) == len(set(opened)) == 20
