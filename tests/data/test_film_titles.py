import numpy as np
import pytest

import dpals
from dpals.data.film_titles import KINDS, film_titles


@pytest.mark.parametrize("shape", [(0, 4), (5, 1), (5, 0), (30_000, 48)])
def test_every_item_has_a_title_of_its_own(shape):
    titles = film_titles(np.random.default_rng(0).normal(size=shape))
    assert len(titles) == len(set(titles)) == shape[0]


def test_the_kind_is_the_strongest_of_the_first_four_directions():
    kinds = list(KINDS)
    factors = np.repeat(np.eye(6), 2, axis=0) * np.tile([1, -1], 6)[:, None]
    found = [title.split("(")[1].rstrip(")") for title in film_titles(factors)]
    assert found[:8] == kinds
    assert all(nouns.split() == sorted(set(nouns.split()), key=nouns.split().index) for nouns in KINDS.values())


def test_titles_do_not_change_the_ratings():
    plain, titled = (dpals.simulate.movielens_like(200, 100, 30, seed=3, titles=titles) for titles in (False, True))
    assert np.array_equal(plain.values, titled.values)
    assert np.array_equal(plain.indices, titled.indices)
    assert plain.items.tolist() == list(range(100))
    assert "sci-fi" in "".join(titled.items.tolist())


def test_films_of_a_kind_appeal_to_the_same_users():
    """What users have seen beyond chance: more of a kind that they have seen much of."""
    ratings = dpals.simulate.movielens_like(2000, 400, 60, seed=3, titles=True)
    of_kind = np.array([title.endswith("(sci-fi)") for title in ratings.items.tolist()])
    seen = ratings.to_csr().astype(bool).toarray()
    halves = [seen[:, np.flatnonzero(of_kind)[start::2]].mean(axis=1) / seen.mean(axis=1) for start in (0, 1)]
    assert np.corrcoef(*halves)[0, 1] > 0.2
