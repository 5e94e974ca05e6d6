import pytest

import dpals
from dpals.data.datasets.movielens import DATA_SETS
from dpals.evaluation.protocols import FRACTIONS, HELD_OUT_SHARE, split


@pytest.fixture(scope="module")
def ratings():
    return dpals.simulate.movielens_like(n_users=2_000, n_items=200, mean_ratings=25, seed=1)


def test_every_known_data_set_has_one_protocol():
    assert [*FRACTIONS, *HELD_OUT_SHARE] == list(DATA_SETS)


@pytest.mark.parametrize(
    ("name", "train_share"), [("ml-100k", 0.8), ("ml-1m", 0.8), ("ml-10m", 0.8), ("ml-10m-top400", 0.98)]
)
def test_ratings_are_split_one_by_one(name, train_share, ratings):
    parts = split(name, ratings, seed=5)
    sizes = [part.n_ratings for part in (parts.train, parts.validation.target, parts.test.target)]
    assert sum(sizes) == ratings.n_ratings
    assert sizes[0] / ratings.n_ratings == pytest.approx(train_share, abs=0.01)
    assert sizes[1] == pytest.approx(sizes[2], rel=0.2)
    assert parts.validation.history is parts.test.history is parts.train
    assert parts.test.target.users.tolist() == parts.train.users.tolist() == ratings.users.tolist()
    assert split(name, ratings, seed=6).train.n_ratings != sizes[0]


def test_ml20m_is_split_by_users(ratings):
    assert round(DATA_SETS["ml-20m"].users * HELD_OUT_SHARE["ml-20m"]) == 20_000
    parts = split("ml-20m", ratings, seed=5)
    held_out = round(2_000 * 20_000 / 136_677)
    assert parts.train.n_users == 2_000 - held_out
    assert parts.validation.history.n_users == held_out // 2
    assert parts.test.history.n_users == held_out - held_out // 2
    assert not set(parts.train.users) & set(parts.test.history.users)
    assert set(parts.train.indices.tolist()) == set(range(parts.train.n_items))


def test_an_unknown_name(ratings):
    with pytest.raises(dpals.InputError, match=r"no split is known for 'netflix', only for ml-100k, .*ml-20m"):
        split("netflix", ratings)
