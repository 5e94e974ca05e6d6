"""What a search tells besides its best try."""

import pytest

import dpals
from dpals.audit.search_replay import run_search, search_leaks, seed_with_several_tries
from dpals.audit.simulated_data import odd_users
from dpals.methods.private_search import PrivateSearch

ROWS = odd_users(12, 40, implicit=False)
SEARCH = PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, 1.0, tries=3)


@pytest.fixture(scope="module")
def seed():
    return seed_with_several_tries(SEARCH, ROWS.ratings())


def test_there_is_something_to_tell(seed):
    run, tries = run_search(SEARCH, ROWS.ratings(), seed)
    assert len(tries) >= 4
    best = max(tries, key=lambda one: one.score)
    assert best != tries[0]
    assert best.candidate != tries[-1].candidate
    assert run.estimator.best_params_ == {"residual_bound": [0.1, 0.5][best.candidate]}


def test_a_search_with_one_candidate_has_a_seed_too():
    search = PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1]}, 1.0, tries=2)
    assert len(run_search(search, ROWS.ratings(), seed_with_several_tries(search, ROWS.ratings()))[1]) > 3


def test_a_sound_search_tells_nothing(seed):
    assert list(search_leaks(SEARCH, ROWS, seed)) == []


class Counting(PrivateSearch):
    """Remembers how often it has made a candidate."""

    def _with(self, candidate):
        self.made_ = getattr(self, "made_", 0) + 1
        return super()._with(candidate)


class Careless(PrivateSearch):
    """Tries on the estimator that it was given, and not on a copy."""

    def _with(self, candidate):
        return self.estimator.set_params(**candidate, epsilon=self.epsilon)


@pytest.mark.parametrize(("kind", "told"), [(Counting, "made_"), (Careless, "estimator")])
def test_what_tells_of_other_tries_is_found_out(kind, told, seed):
    search = kind(dpals.ItemMean(), {"residual_bound": [0.1, 0.5]}, 1.0, tries=3)
    assert any(line.startswith(f"{told} differs from the best of") for line in search_leaks(search, ROWS, seed))
