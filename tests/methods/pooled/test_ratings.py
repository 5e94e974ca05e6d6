"""The training for ratings: what it recovers with much budget, and how a round goes."""

import numpy as np
import pytest

import dpals
from dpals.methods.pooled.budget import Settings, Shares
from dpals.methods.pooled.learner import FADING, Expected
from dpals.methods.pooled.ratings import LONGER, SETTLING, fit_ratings
from dpals.model.factor_model import FactorModel
from dpals.public.evidence import Evidence
from dpals.release.mechanism import Mechanism

N_USERS, N_ITEMS = 1500, 40
SHARES = Shares(first=0.005, weights=0.1, cooccurrence=0.25, biases=0.04, gram=0.03, fit=0.01, history=0.003)
EXPECTED = Expected(taste=0.4, bias=0.55)
BIASES = np.linspace(-1, 1, N_ITEMS)
TASTES = np.where(np.arange(N_ITEMS) % 2, 1.0, -1.0)


@pytest.fixture(scope="module")
def ratings():
    """3 + item bias + user's taste times the item's, without noise, and biases beside the order of popularity."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < rng.uniform(0.2, 0.8, N_ITEMS))
    taste = rng.normal(0, 0.5, N_USERS)
    values = np.clip(3 + BIASES[items] + taste[users] * TASTES[items], 0, 6)
    return dpals.Ratings.from_arrays(users, items, values, rating_range=(0, 6), catalogue=range(N_ITEMS))


def fitted(ratings, rank, steps, epsilon=1e4, after_step=lambda *_: None):
    settings = Settings(rank, steps, weight_exponent=0.3, clip=0.5, shares=SHARES, seed=0)
    return fit_ratings(ratings, settings, EXPECTED, Mechanism(dpals.Budget(epsilon, 1e-5), insecure_seed=1), after_step)


def test_without_factors_the_biases_are_those_of_the_items(ratings):
    model, items = fitted(ratings, rank=0, steps=4)
    assert model.rank == 0
    assert items.estimates.known.all()
    assert np.corrcoef(model.item_biases, BIASES)[0, 1] > 0.99
    assert np.polyfit(BIASES, model.item_biases, 1)[0] == pytest.approx(1, abs=0.1)


def test_a_factor_is_the_taste_that_divides_the_items(ratings):
    model, _ = fitted(ratings, rank=1, steps=6)
    assert abs(np.corrcoef(model.item_factors[:, 0], TASTES)[0, 1]) > 0.98
    assert np.corrcoef(model.item_biases, BIASES)[0, 1] > 0.98
    users, items = ratings.users[ratings.rows], ratings.items[ratings.indices]
    errors = model.predict(ratings, users, items) - ratings.values
    plain, _ = fitted(ratings, rank=0, steps=4)
    assert np.std(errors) < 0.5 * np.std(plain.predict(ratings, users, items) - ratings.values)


def test_where_noise_hides_the_items_there_are_no_biases(ratings):
    model, items = fitted(ratings, rank=2, steps=2, epsilon=1e-5)
    assert not items.estimates.known.any()
    assert not model.item_biases.any()
    assert not model.item_factors.any()


def test_a_model_is_made_only_for_who_asks_for_it(ratings, monkeypatch):
    made, check = [], FactorModel.__post_init__
    monkeypatch.setattr(FactorModel, "__post_init__", lambda model: (made.append(1), check(model))[1])
    fitted(ratings, rank=1, steps=3)
    assert len(made) == 1, "the result"
    seen = []

    def after_step(number, total, make):
        seen.append((number, total, make()))

    model, _ = fitted(ratings, rank=1, steps=3, after_step=after_step)
    assert [entry[:2] for entry in seen] == [(1, 3), (2, 3), (3, 3)]
    assert np.array_equal(seen[-1][2].item_factors, model.item_factors)
    assert not np.array_equal(seen[0][2].item_factors, model.item_factors)


def test_early_evidence_about_factors_fades(ratings, monkeypatch):
    faded = []
    monkeypatch.setattr(Evidence, "fade", lambda evidence, keep: faded.append((evidence.information.shape[1], keep)))
    fitted(ratings, rank=1, steps=5)
    assert faded == [(1, FADING)] * int(SETTLING * 5)


def test_factors_that_predict_worse_than_biases_are_dropped():
    """Ratings without tastes, by users who rated little: vectors fit noise."""
    rng = np.random.default_rng(1)
    users, items = np.nonzero(rng.random((6000, 30)) < 0.15)
    values = np.clip(3 + np.linspace(-1, 1, 30)[items] + rng.normal(0, 1, len(users)), 0, 6)
    without_tastes = dpals.Ratings.from_arrays(users, items, values, rating_range=(0, 6), catalogue=range(30))
    model, _ = fitted(without_tastes, rank=None, steps=6, epsilon=100)
    assert model.rank == 0
    assert fitted(without_tastes, rank=5, steps=6, epsilon=100)[0].rank == 5, "as the caller wants it"
    plain, _ = fitted(without_tastes, rank=0, steps=6, epsilon=100)
    np.testing.assert_allclose(model.item_biases, plain.item_biases, atol=0.05)


@pytest.fixture(scope="module")
def misleading():
    """Two kinds of items, which different people rate; what they like has to do with something else."""
    rng = np.random.default_rng(2)
    kind, taste = (rng.choice([-1.0, 1.0], 60) for _ in range(2))
    interest, liking = rng.normal(size=(2, 6000))
    users, items = np.nonzero(rng.random((6000, 60)) < 0.3 / (1 + np.exp(-4 * interest[:, None] * kind)))
    values = np.clip(3 + 0.7 * liking[users] * taste[items] + rng.normal(0, 1, len(users)), 0, 6)
    return dpals.Ratings.from_arrays(users, items, values, rating_range=(0, 6), catalogue=range(60)), taste


def test_where_cooccurrence_misleads_factors_start_again_and_take_more_steps(misleading):
    ratings, taste = misleading
    seen = []
    model, _ = fitted(ratings, rank=None, steps=4, epsilon=100, after_step=lambda *step: seen.append(step[:2]))
    total = LONGER * 4
    assert seen == [(number, total) for number in range(1, total + 1)]
    assert model.history_factors is None, "histories are sums of what misled"
    strongest = np.linalg.svd(model.item_factors, full_matrices=False)[0][:, 0]
    assert abs(np.corrcoef(strongest, taste)[0, 1]) > 0.97


def test_with_a_single_step_factors_that_mislead_are_dropped(misleading):
    model, _ = fitted(misleading[0], rank=None, steps=1, epsilon=100)
    assert model.rank == 0


def test_factors_do_not_start_again_where_the_caller_chose_their_number(misleading):
    seen = []
    fitted(misleading[0], rank=3, steps=4, epsilon=100, after_step=lambda *step: seen.append(step[:2]))
    assert seen == [(number, 4) for number in range(1, 5)]


def test_a_run_that_starts_again_keeps_to_its_budget(misleading):
    method = dpals.PooledDPALS(100.0, 1e-5, steps=4, insecure_seed=1).fit(misleading[0])
    assert any(f"step {LONGER * 4}" in release.purpose for release in method.privacy.releases)
    assert method.privacy.epsilon <= 100.0
