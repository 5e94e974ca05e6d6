import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import dpals
from dpals.evaluation.metrics import recall_at_k, rmse
from dpals.evaluation.splits import liked, pairs, split_entries, split_users
from dpals.public.initial_factors import random_factors

NAN = float("nan")
BOTH = [dpals.DPALS, dpals.AdaDPALS]
NOISE = {"gram_noise": 20.0, "moment_noise": 10.0, "count_noise": 30.0}

# Everything that decides how good the model is, so that a change of defaults changes no finding below.
FILMS = {
    "rank": 16,
    "steps": 2,
    "user_ridge": 5.0,
    "user_exponent": 1.0,
    "item_exponent": 0.5,
    "typical_count": 100.0,
    "row_clip": 0.7,
    "entry_clip": 2.0,
    "ratings_per_user": 50,
    "sampling": "adaptive",
    "frequent_fraction": 0.4,
    "noise_ratio": 2.0,
    "count_share": 0.1,
    "mean_share": 0.005,
    "start_scale": 0.3,
}
RIDGE = {dpals.DPALS: 80.0, dpals.AdaDPALS: 10.0}


# --- What it computes: at a budget without end, what dense linear algebra computes.


def full_ratings(seed, *, implicit=False, n_users=25, n_items=8):
    """Every user has a rating and every item too."""
    rng = np.random.default_rng(seed)
    seen = rng.random((n_users, n_items)) < rng.uniform(0.2, 1, (n_users, 1))
    seen[np.arange(n_users), np.arange(n_users) % n_items] = True
    matrix = csr_array(np.where(seen, rng.uniform(1, 5, seen.shape), 0))
    return dpals.Ratings.from_csr(matrix, rating_range=None if implicit else (1, 5), implicit=implicit)


def dense_users(matrix, seen, items, ridge, unseen):
    rank = items.shape[1]
    users = np.zeros((len(matrix), rank))
    for i, row in enumerate(seen):
        shrink = ridge(row.sum()) * np.eye(rank) + unseen * items.T @ items
        users[i] = np.linalg.solve(items[row].T @ items[row] + shrink, items[row].T @ matrix[i, row])
    return users


def dense_dpals(ratings, weights_of, *, rank, steps, ridge, user_ridge, typical, row_clip, entry_clip, scale, unseen):
    """Scores of all pairs: mu = 0.5 and nu = 1, all items frequent, all ratings in the item step, no noise."""
    shape = (ratings.n_users, ratings.n_items)
    matrix, seen = np.zeros(shape), np.zeros(shape, bool)
    seen[ratings.rows, ratings.indices] = True
    matrix[seen] = 1.0 if ratings.is_implicit else ratings.values
    mean = (
        0.0 if ratings.is_implicit else np.mean([row[chosen].mean() for row, chosen in zip(matrix, seen, strict=True)])
    )
    matrix = np.where(seen, matrix - mean, 0)
    weights = weights_of(seen)
    powers = np.sqrt(weights_of(seen, popularity=True))
    items = scale * random_factors(ratings.n_items, rank)

    def shrink(n):
        return user_ridge * n / typical

    for _ in range(steps):
        users = dense_users(matrix, seen, items, shrink, unseen)
        users *= np.minimum(1, row_clip / np.linalg.norm(users, axis=1))[:, None]
        items = np.zeros_like(items)
        for j in range(ratings.n_items):
            system = users.T @ (weights[:, j, None] * users) + ridge * powers[j] / powers.mean() * np.eye(rank)
            moments = users.T @ (weights[:, j] * np.clip(matrix[:, j], -entry_clip, entry_clip))
            items[j] = np.linalg.solve(system + unseen * users.T @ users, moments)
    return mean + dense_users(matrix, seen, items, shrink, unseen) @ items.T


def plain_weights(seen, popularity=False):
    return seen.sum(axis=0) if popularity else seen.astype(float)


def spread_weights(seen, popularity=False):
    """The popularity of an item is the sum of the users' equal weights; weights go with its power -0.3."""
    known = (seen / np.sqrt(seen.sum(axis=1, keepdims=True))).sum(axis=0)
    raw = seen * known**-0.3
    return known if popularity else raw / np.linalg.norm(raw, axis=1, keepdims=True)


def all_predictions(model, ratings):
    users, items = np.repeat(ratings.users, ratings.n_items), np.tile(ratings.items, ratings.n_users)
    return model.predict(ratings, users, items).reshape(ratings.n_users, ratings.n_items)


@pytest.mark.parametrize("implicit", [False, True])
@pytest.mark.parametrize(
    ("method", "more", "weights"),
    [(dpals.DPALS, {}, plain_weights), (dpals.AdaDPALS, {"weight_exponent": 0.3}, spread_weights)],
)
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), rank=st.integers(1, 3), steps=st.integers(1, 3))
def test_without_noise_it_is_the_algorithm_of_the_paper(method, more, weights, implicit, seed, rank, steps):
    ratings = full_ratings(seed, implicit=implicit)
    shared = {"rank": rank, "steps": steps, "ridge": 2.0, "user_ridge": 0.5, "row_clip": 0.8, "entry_clip": 1.0}
    model = method(
        1e9,
        1e-5,
        **shared,
        **more,
        ratings_per_user=ratings.n_items,
        typical_count=4.0,
        user_exponent=1.0,
        item_exponent=0.5,
        frequent_fraction=1.0,
        start_scale=0.5,
        unseen_weight=0.2 if implicit else 0.0,
        insecure_seed=1,
    ).fit(ratings)
    expected = dense_dpals(ratings, weights, **shared, typical=4.0, scale=0.5, unseen=0.2 if implicit else 0.0)
    if not implicit:
        expected = np.clip(expected, 1, 5)
    np.testing.assert_allclose(all_predictions(model, ratings), expected, atol=0.01)


@pytest.mark.parametrize("method", BOTH)
def test_finds_a_low_rank_matrix_when_privacy_is_no_concern(method):
    task = dpals.simulate.paper_synthetic(4_000, 200)
    theory = method(
        1e6,
        1e-5,
        rank=5,
        steps=6,
        orthonormal=True,
        ridge=0.1,
        user_ridge=1e-3,
        user_exponent=0.0,
        item_exponent=0.0,
        row_clip=3.0,
        entry_clip=5.0,
        ratings_per_user=200,
        frequent_fraction=1.0,
        sampling="uniform",
        centre=False,
        start_scale=1.0,
        insecure_seed=1,
    ).fit(task.train)
    assert rmse(theory.predict(task.train, *pairs(task.test)), task.test.values) < 0.02


# --- How good it is, on simulated films.


@pytest.fixture(scope="module")
def films():
    return split_entries(dpals.simulate.movielens_like(8_000, 800, 100, seed=3))


def scores(films, method, epsilon, seeds=(1, 2, 3), **changes):
    """Test errors over several draws of the noise."""
    train, _, test = films
    arguments = {**FILMS, "ridge": RIDGE[method], **changes}
    models = [method(epsilon, 1e-5, insecure_seed=seed, **arguments).fit(train) for seed in seeds]
    return np.array([rmse(model.predict(train, *pairs(test)), test.values) for model in models])


@pytest.fixture(scope="module")
def user_mean(films):
    train, _, test = films
    means = np.bincount(train.rows, train.values, train.n_users) / np.maximum(np.diff(train.indptr), 1)
    return rmse(means[test.rows], test.values)


@pytest.mark.parametrize("method", BOTH)
def test_a_larger_budget_gives_better_predictions(films, user_mean, method):
    low, middle, high = (scores(films, method, epsilon) for epsilon in (1, 5, 20))
    assert high.max() < middle.min() - 0.003
    assert middle.max() < low.min() - 0.03
    assert middle.max() < user_mean - 0.04


@pytest.mark.parametrize("method", BOTH)
def test_with_a_huge_budget_it_nears_the_model_that_is_not_private(films, user_mean, method):
    train, _, test = films
    (private,) = scores(films, method, 1e6, seeds=(1,), frequent_fraction=1.0)
    reference = dpals.ALS(rank=16, steps=10, biases=False).fit(train)
    best = rmse(reference.predict(train, *pairs(test)), test.values)
    assert user_mean - private > 2 / 3 * (user_mean - best)


@pytest.mark.parametrize(("method", "ridge"), [(dpals.DPALS, 20.0), (dpals.AdaDPALS, 2.0)])
def test_without_the_projection_it_is_terrible(films, user_mean, method, ridge):
    without = scores(films, method, 5, ridge=ridge, project=False)
    assert without.min() > scores(films, method, 5, ridge=ridge).max() + 0.1
    assert without.min() > user_mean + 0.1


def test_sampling_the_rare_beats_sampling_uniformly(films):
    uniform, adaptive = (
        scores(films, dpals.DPALS, 10, sampling=sampling, ratings_per_user=20, frequent_fraction=1.0)
        for sampling in ("uniform", "adaptive")
    )
    assert adaptive.max() < uniform.min() - 0.01


@pytest.mark.parametrize("method", BOTH)
def test_training_on_frequent_items_helps_at_a_small_budget(films, method):
    few, all_items = (scores(films, method, 1, frequent_fraction=fraction) for fraction in (0.2, 1.0))
    assert few.max() < all_items.min() - 0.03


@pytest.mark.parametrize("method", BOTH)
def test_implicit_feedback_beats_popularity_for_new_users_at_a_large_budget(films, method):
    split = split_users(liked(films[0]), held_out=1_500)
    query, target = split.test.history, split.test.target
    model = method(
        100.0,
        1e-5,
        rank=16,
        steps=2,
        ridge=1.0,
        user_exponent=0.0,
        item_exponent=0.0,
        unseen_weight=0.2,
        insecure_seed=1,
    )
    found = recall_at_k(model.fit(split.train).recommend(query, 20)[0], target)
    popularity = np.tile(np.bincount(split.train.indices, minlength=query.n_items).astype(float), (query.n_users, 1))
    popularity[query.rows, query.indices] = -1
    assert found > recall_at_k(np.argsort(-popularity, axis=1)[:, :20], target, by_index=True) + 0.02


# --- What it publishes and what that costs.


def steps_of(n, *, unseen=False):
    each = ["Gram matrices", "right-hand sides", *(["sum of all users"] if unseen else [])]
    return [f"{purpose}, step {step}" for step in range(1, n + 1) for purpose in each]


CONFIGURATIONS = {
    "as in the paper": (dpals.DPALS, {}, ["global mean", "item counts", "counts of the sampled ratings"], False),
    "uniform, some items": (
        dpals.DPALS,
        {"sampling": "uniform"},
        ["global mean", "item counts", "counts of the sampled ratings"],
        False,
    ),
    "uniform, all items": (
        dpals.DPALS,
        {"sampling": "uniform", "frequent_fraction": 1.0},
        ["global mean", "counts of the sampled ratings"],
        False,
    ),
    "equal ridges": (dpals.DPALS, {"item_exponent": 0.0}, ["global mean", "item counts"], False),
    "no pre-processing": (
        dpals.DPALS,
        {"sampling": "uniform", "frequent_fraction": 1.0, "item_exponent": 0.0, "centre": False},
        [],
        False,
    ),
    "not centred": (dpals.DPALS, {"centre": False}, ["item counts", "counts of the sampled ratings"], False),
    "all pairs": (
        dpals.DPALS,
        {"unseen_weight": 0.3},
        ["global mean", "item counts", "counts of the sampled ratings"],
        True,
    ),
    "adaptive weights": (dpals.AdaDPALS, {}, ["global mean", "item popularity"], False),
    "adaptive weights, all pairs": (
        dpals.AdaDPALS,
        {"unseen_weight": 0.3, "centre": False},
        ["item popularity"],
        True,
    ),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("steps", [1, 3])
def test_every_step_is_released_once_and_what_is_not_needed_never(name, steps):
    method, changes, before, unseen = CONFIGURATIONS[name]
    model = method(3.0, 1e-5, rank=2, steps=steps, **changes).fit(full_ratings(0))
    assert [release.purpose for release in model.privacy.releases] == [*before, *steps_of(steps, unseen=unseen)]
    assert 0.99 * 3.0 < model.privacy.epsilon <= 3.0
    assert model.privacy.is_private


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize("start", ["power", "pca"])
def test_a_start_from_the_data_is_paid_for(method, start):
    model = method(3.0, 1e-5, rank=2, steps=1, start=start, frequent_fraction=1.0).fit(full_ratings(0))
    purposes = [release.purpose for release in model.privacy.releases]
    started = {"power": ["power iteration, step 1", "power iteration, step 2"], "pca": ["covariance of items"]}[start]
    assert purposes[-2 - len(started) :] == [*started, *steps_of(1)]
    assert 0.99 * 3.0 < model.privacy.epsilon <= 3.0


def test_implicit_feedback_has_no_mean_to_release():
    model = dpals.DPALS(3.0, 1e-5, rank=2, steps=2).fit(full_ratings(0, implicit=True))
    purposes = [release.purpose for release in model.privacy.releases]
    assert purposes == ["item counts", "counts of the sampled ratings", *steps_of(2, unseen=True)]


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_noise_that_is_given_decides_the_epsilon(name):
    method, changes, before, unseen = CONFIGURATIONS[name]
    model = method(None, 1e-6, rank=2, steps=3, ratings_per_user=5, **NOISE, **changes).fit(full_ratings(1))
    k = 5 if method is dpals.DPALS else 1
    gram, moment, count = (sigma**-2 for sigma in NOISE.values())
    squared = 3 * k * (gram + moment)
    squared += k * count * sum(purpose != "global mean" for purpose in before) + count * ("global mean" in before)
    squared += 3 * gram * unseen
    assert model.privacy.mu**2 == pytest.approx(squared, rel=1e-6)
    assert model.privacy.epsilon == pytest.approx(get_epsilon_gaussian(squared**-0.5, 1e-6), rel=1e-5)


@pytest.mark.parametrize("method", BOTH)
def test_noise_that_is_given_is_the_noise_that_is_drawn(method):
    """In units of what one rating adds: row_clip^2 to Gram matrices, row_clip * entry_clip to moments, 1 to counts."""
    model = method(
        None, 1e-6, rank=2, ratings_per_user=5, row_clip=0.7, entry_clip=1.5, unseen_weight=0.1, **NOISE
    ).fit(full_ratings(1))
    units = {"Gram": 20 * 0.49, "right-hand": 10 * 1.05, "sum": 20 * 0.49, "item": 30, "counts": 30}
    drawn = {release.purpose.split()[0]: release.sigma for release in model.privacy.releases}
    for word, sigma in units.items():
        assert word not in drawn or drawn[word] == pytest.approx(sigma, rel=1e-6)
    assert drawn.keys() >= {"Gram", "right-hand", "sum", "item"}


@pytest.mark.parametrize("method", BOTH)
def test_the_noise_ratio_is_that_of_the_noises_in_units_of_their_bounds(method):
    model = method(3.0, 1e-5, rank=2, row_clip=0.7, entry_clip=1.5, noise_ratio=3.0).fit(full_ratings(1))
    drawn = {release.purpose: release.sigma for release in model.privacy.releases}
    ratio = (drawn["Gram matrices, step 1"] / 0.49) / (drawn["right-hand sides, step 1"] / 1.05)
    assert ratio == pytest.approx(3.0, rel=1e-6)


# --- Items and users that it was not trained on.


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize("fraction", [0.1, 0.5])
def test_infrequent_items_are_predicted_by_the_users_own_mean(method, fraction):
    ratings = dpals.simulate.movielens_like(200, 30, 20, seed=4)
    model = method(5.0, 1e-5, rank=2, frequent_fraction=fraction).fit(ratings)
    trained = model.model_.is_trained
    assert trained.sum() == round(fraction * 30)
    means = np.bincount(ratings.rows, ratings.values) / np.diff(ratings.indptr)
    rare = all_predictions(model, ratings)[:, ~trained]
    np.testing.assert_allclose(rare, np.tile(means[:, None], rare.shape[1]), atol=1e-5)


@pytest.mark.parametrize("method", BOTH)
def test_a_user_without_ratings_of_frequent_items_gets_the_global_mean_for_them(method):
    users, items = np.nonzero(np.ones((40, 4)))
    ratings = dpals.Ratings.from_arrays(
        [*users, 99], [*items, 7], [*np.tile([1, 2, 4, 5], 40), 5], rating_range=(1, 5), catalogue=range(8)
    )
    model = method(1e4, 1e-5, rank=2, frequent_fraction=0.5, insecure_seed=1).fit(ratings)
    assert model.model_.is_trained.tolist() == [True] * 4 + [False] * 4
    np.testing.assert_allclose(model.predict(ratings, [99] * 4, range(4)), model.model_.global_mean, atol=1e-5)
    np.testing.assert_allclose(model.predict(ratings, [99] * 4, range(4, 8)), 5.0, atol=1e-5)


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("implicit", [False, True])
def test_odd_data_give_finite_predictions(method, epsilon, implicit):
    def ratings(users, items):
        values, span = (None, None) if implicit else ([3.0] * len(users), (1, 5))
        return dpals.Ratings.from_arrays(users, items, values, rating_range=span, catalogue=["a", "b", "c", "d"])

    one_user, same_everywhere = ratings(["ann"], ["c"]), ratings(["ann", "ann", "bob", "eve"], ["a", "b", "b", "a"])
    nobody_rated = same_everywhere.keep(np.zeros(4, bool))
    for data in (one_user, same_everywhere, nobody_rated):
        model = method(epsilon, 1e-5, rank=2, insecure_seed=1).fit(data)
        predictions = all_predictions(model, data)
        assert np.isfinite(predictions).all()
        assert implicit or ((predictions >= 1) & (predictions <= 5)).all()


# --- Repeating, saving, parameters.


@pytest.mark.parametrize("method", BOTH)
def test_the_insecure_seed_repeats_and_says_so(method):
    ratings = full_ratings(2)
    first, again, other, fresh = (
        method(2.0, 1e-5, rank=2, insecure_seed=seed).fit(ratings) for seed in (1, 1, 2, None)
    )
    assert np.array_equal(first.item_factors_, again.item_factors_)
    assert not np.array_equal(first.item_factors_, other.item_factors_)
    assert not np.array_equal(first.item_factors_, fresh.item_factors_)
    assert not first.privacy.is_private
    assert fresh.privacy.is_private


# --- Mistakes cost nothing.

WRONG = [
    {"rank": 9},
    {"rank": 0},
    {"epsilon": 0.0},
    {"epsilon": -1.0},
    {"epsilon": NAN},
    {"epsilon": None},
    {"epsilon": None, "gram_noise": 1.0, "moment_noise": 1.0},
    {"epsilon": None, **NOISE, "gram_noise": 0.0},
    {"epsilon": None, **NOISE, "moment_noise": NAN},
    {"epsilon": None, **NOISE, "start": "power"},
    {"epsilon": None, **NOISE, "delta": 0.0},
    {"delta": 0.0},
    {"delta": -1.0},
    {"delta": 1.0},
    {"delta": NAN},
    {"sampling": "clever"},
    {"start": "warm"},
    {"frequent_fraction": 0.0},
    {"frequent_fraction": 2.0},
    {"frequent_fraction": NAN},
    {"steps": 0},
    {"ratings_per_user": 0},
    {"ridge": 0.0},
    {"ridge": NAN},
    {"ridge": float("inf")},
    {"row_clip": 0.0},
    {"row_clip": -1.0},
    {"typical_count": 0.0},
    {"noise_ratio": -2.0},
    {"start_scale": NAN},
    {"count_share": 0.9, "mean_share": 0.1},
    {"count_share": -0.1},
    {"count_share": NAN},
    {"start": "pca", "start_share": -0.1},
]
ODDER = [
    {"entry_clip": 0.0},
    {"entry_clip": -1.0},
    {"entry_clip": NAN},
    {"user_ridge": -1.0},
    {"user_ridge": NAN},
    {"user_exponent": NAN},
    {"item_exponent": NAN},
    {"unseen_weight": -0.1},
    {"unseen_weight": NAN},
    {"unseen_weight": 0.1, "unseen_share": 1.0},
    {"unseen_weight": 0.1, "unseen_share": 2.0},
    {"unseen_weight": 0.1, "unseen_share": NAN},
    {"start": "power", "start_share": 0.0},
    {"epsilon": None, **NOISE, "gram_noise": float("inf")},
    {"start": "power", "rank": 6, "frequent_fraction": 0.5},
    {"start": "pca", "rank": 6, "frequent_fraction": 0.5},
    {"rank": 2.5},
    {"steps": 1.5},
    {"weight_exponent": NAN},
]


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_wrong_arguments_are_refused_and_spend_nothing(method, wrong):
    check_refused(method, wrong)


@pytest.mark.parametrize("wrong", ODDER, ids=str)
def test_odder_arguments_are_refused_and_spend_nothing(wrong):
    check_refused(dpals.AdaDPALS, wrong)


def check_refused(method, wrong):
    """The error names an argument that is wrong, and comes before the first release."""
    ledger = dpals.Ledger()
    with pytest.raises(ValueError, match="|".join([*wrong, "shares"])):
        method(**{"rank": 2, **wrong}).fit(full_ratings(0), ledger=ledger)
    assert ledger.entries() == []


def test_a_catalogue_too_large_for_private_pca_spends_nothing():
    ledger = dpals.Ledger()
    ratings = dpals.Ratings.from_arrays([1, 2], [1, 2], [3, 4], rating_range=(1, 5), catalogue=range(3_000))
    with pytest.raises(ValueError, match="too many"):
        dpals.DPALS(rank=2, start="pca", frequent_fraction=1.0).fit(ratings, ledger=ledger)
    assert ledger.entries() == []


@pytest.mark.parametrize("method", BOTH)
def test_wrong_data_spend_nothing(method):
    ledger = dpals.Ledger()
    with pytest.raises(dpals.InputError, match="Ratings"):
        method().fit(full_ratings(0).to_csr(), ledger=ledger)
    assert ledger.entries() == []


def test_a_budget_declared_for_the_data_is_kept():
    ledger = dpals.Ledger()
    ledger.declare("films", epsilon=1.5, delta=1e-5)
    dpals.DPALS(1.0, 1e-5, rank=2).fit(full_ratings(0), ledger=ledger, dataset="films")
    with pytest.raises(dpals.PrivacyBudgetExceeded):
        dpals.DPALS(1.4, 1e-5, rank=2).fit(full_ratings(0), ledger=ledger, dataset="films")
    assert ledger.spent("films") <= ledger.allowance("films")
