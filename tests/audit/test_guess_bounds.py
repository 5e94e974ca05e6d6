"""What right guesses about canaries say about epsilon."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom

from dpals.audit.guess_bounds import chance_of_guesses, epsilon_of_guesses, guesses_needed


def by_the_formula(correct, guesses, canaries, epsilon, delta):
    """The theorem, term by term, in exact numbers."""
    share = Fraction(1 / (1 + math.exp(-epsilon)))
    chances = [math.comb(guesses, k) * share**k * (1 - share) ** (guesses - k) for k in range(guesses + 1)]
    rare = [sum(chances[max(0, correct - i) : correct]) / i for i in range(1, canaries + 1)]
    return min(1.0, float(sum(chances[correct:]) + 2 * canaries * Fraction(delta) * max(rare)))


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-3])
@pytest.mark.parametrize(("correct", "guesses", "canaries"), [(0, 5, 5), (1, 1, 9), (18, 20, 60), (30, 30, 40)])
def test_chances_are_those_of_the_theorem(correct, guesses, canaries, delta):
    for epsilon in (0.0, 0.7, 3.0):
        expected = by_the_formula(correct, guesses, canaries, epsilon, delta)
        assert chance_of_guesses(correct, guesses, canaries, epsilon, delta) == pytest.approx(expected, rel=1e-9)


def test_without_delta_nothing_is_given_away_by_chance():
    assert chance_of_guesses(10, 10, 50, 0.0, 0.0) == pytest.approx(2.0**-10)
    # All of n guesses right has chance q^n, so that the bound is where q^n is the risk.
    share = 0.0001 ** (1 / 80)
    assert epsilon_of_guesses(80, 80, 80, 0.0) == pytest.approx(math.log(share / (1 - share)))


def test_randomised_response_reaches_the_bound_and_does_not_exceed_it():
    """Each coin is published as it is with probability e^epsilon / (1 + e^epsilon): nothing gives more away."""
    epsilon, canaries, runs = 1.0, 40, 20_000
    rng = np.random.default_rng(5)
    coins = rng.random((runs, canaries)) < 0.5
    told = coins ^ (rng.random(coins.shape) > 1 / (1 + math.exp(-epsilon)))
    right = np.sum(told == coins, axis=1)
    for correct in (26, 30, 34):
        chance = chance_of_guesses(correct, canaries, canaries, epsilon, 0.0)
        assert np.mean(right >= correct) == pytest.approx(chance, abs=5 * math.sqrt(chance / runs))


def test_sound_mechanisms_are_rarely_accused():
    epsilon, guesses = 1.5, 100
    share = 1 / (1 + math.exp(-epsilon))
    accused = [k for k in range(guesses + 1) if epsilon_of_guesses(k, guesses, 300, 1e-8) > epsilon]
    risk = sum(binom.pmf(accused, guesses, share))
    assert 0.1 * 1e-4 < risk <= 1e-4


@pytest.mark.parametrize("told", [5, 20, 80])
def test_what_delta_excuses_is_allowed_for(told):
    """With a small probability, some canaries at random are published. Each canary is with probability delta."""
    canaries, delta = 200, 1e-4
    event = canaries * delta / told
    for guesses in (told, 2 * told):
        for correct in range(guesses + 1):
            by_luck = binom.sf(correct - 1, guesses, 0.5)
            with_help = binom.sf(correct - told - 1, guesses - told, 0.5) if guesses > told else 1.0
            true = (1 - event) * by_luck + event * with_help
            assert true <= chance_of_guesses(correct, guesses, canaries, 0.0, delta) * (1 + 1e-9)


def test_more_right_guesses_show_more():
    shown = [epsilon_of_guesses(k, 100, 500, 1e-7) for k in range(50, 101, 5)]
    assert shown[0] == 0
    assert all(low <= high for low, high in pairwise(shown))
    for epsilon in (0.5, 1.0):
        needed = guesses_needed(500, 100, epsilon, 1e-7)
        assert epsilon_of_guesses(needed, 100, 500, 1e-7) > epsilon >= epsilon_of_guesses(needed - 1, 100, 500, 1e-7)
    assert guesses_needed(500, 100, 8.0, 1e-7) == 101


def test_the_chance_rises_with_epsilon_wherever_it_is_small():
    for correct in (70, 90, 100):
        chances = [chance_of_guesses(correct, 100, 500, epsilon, 4e-7) for epsilon in np.linspace(0, 6, 200)]
        assert all(low <= high * (1 + 1e-9) for low, high in pairwise(chances) if low < 0.1)


def test_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="cannot be"):
        chance_of_guesses(11, 10, 50, 1.0, 0.0)
