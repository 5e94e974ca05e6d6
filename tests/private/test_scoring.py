import numpy as np
import pytest

import dpals
from dpals.evaluation.metrics import recall_at_k
from dpals.evaluation.splits import split_entries
from dpals.private.sampling import Split
from dpals.private.scoring import ScoredSplit, gain_contribution, score_contribution

RATINGS = dpals.simulate.movielens_like(n_users=1500, n_items=60, mean_ratings=20, seed=3)
LIKED = dpals.Ratings.from_arrays(
    RATINGS.users[RATINGS.rows], RATINGS.items[RATINGS.indices], catalogue=RATINGS.items.tolist()
)


def test_the_score_of_ratings_is_the_mean_squared_error():
    known, hidden = split_entries(RATINGS, (0.8, 0.2))
    model = dpals.ItemMean(8.0).fit(known).model_
    contribution = gain_contribution(model.serving(), known, hidden)
    guesses = model.predict(known, hidden.users[hidden.rows], hidden.items[hidden.indices])
    for user in (0, 7, 500):
        own = slice(hidden.indptr[user], hidden.indptr[user + 1])
        error = np.mean((guesses[own].astype(float) - hidden.values[own]) ** 2) / 2.25**2
        assert contribution.coefficients[user] == pytest.approx(0.5 - min(error, 1), abs=1e-6)


def test_the_score_of_implicit_feedback_is_the_recall():
    known, hidden = split_entries(LIKED, (0.8, 0.2))
    model = dpals.PooledDPALS(8.0, rank=2, steps=2, insecure_seed=1).fit(known).model_
    gains = gain_contribution(model.serving(), known, hidden).coefficients
    counted = np.diff(hidden.indptr) > 0
    assert (gains[~counted] == 0).all()
    assert np.mean(gains[counted] + 0.5) == pytest.approx(
        recall_at_k(model.recommend(known, k=20)[0], hidden), abs=1e-3
    )


def extreme_data(implicit, n_users=300, n_items=60):
    rng = np.random.default_rng(2)
    users, items = np.nonzero(rng.random((n_users, n_items)) < rng.random((n_users, 1)))
    values = rng.choice([0.5, 5.0], size=len(users))

    def ratings(keep):
        rated = {} if implicit else {"values": values[keep], "rating_range": (0.5, 5.0)}
        return dpals.Ratings.from_arrays(users[keep], items[keep], **rated, catalogue=range(n_items))

    return users, ratings


@pytest.mark.parametrize("implicit", [False, True])
def test_what_a_user_adds_to_the_score_depends_on_nobody_else(implicit):
    users, ratings = extreme_data(implicit)
    model = dpals.PooledDPALS(20.0, rank=3, steps=2).fit(ratings(users >= 0)).model_

    def gains(keep):
        known, hidden = split_entries(ratings(keep), (0.7, 0.3))
        contribution = gain_contribution(model.serving(), known, hidden)
        assert (np.abs(contribution.coefficients) <= 0.5).all(), "within the bound"
        assert (np.diff(contribution.pattern.indptr) == 1).all()
        return contribution.coefficients

    everyone = gains(users >= 0)
    assert len(np.unique(everyone)) > 8
    for cut in (2, 7, 100):
        assert np.array_equal(everyone, np.concatenate([gains(users < cut), gains(users >= cut)]))


@pytest.mark.parametrize("implicit", [False, True])
def test_users_of_whom_nothing_is_hidden_add_nothing(implicit):
    ratings = LIKED if implicit else RATINGS
    model = dpals.PooledDPALS(8.0, rank=0, steps=1).fit(ratings).model_
    nothing = ratings.keep(np.zeros(ratings.n_ratings, bool))
    assert not gain_contribution(model.serving(), ratings, nothing).coefficients.any()


def test_a_score_is_the_gain_on_what_a_split_holds_back():
    model, split = dpals.ItemMean(8.0).fit(RATINGS).model_, Split((0.8, 0.2), 7)
    known, hidden = split_entries(RATINGS, *split)
    expected = gain_contribution(model.serving(), known, hidden)
    scored = score_contribution(RATINGS, ScoredSplit(model.serving(), split))
    assert np.array_equal(scored.coefficients, expected.coefficients)
