"""What every estimator of the library promises, tried on each of them."""

import json
import math

import numpy as np
import pytest
import sklearn.base

import dpals
from dpals.methods.base.estimator import Estimator, PrivateEstimator
from dpals.release.mechanism import Mechanism

SMALL = {"rank": 3, "steps": 2}
PRIVATE = {
    "PooledDPALS": SMALL,
    "DPALS": {**SMALL, "ratings_per_user": 10, "frequent_fraction": 0.5},
    "AdaDPALS": {**SMALL, "frequent_fraction": 0.5},
    "DPFrankWolfe": {"steps": 3, "frequent_fraction": 0.9},
    "DPSVD": {"rank": 3, "most_items": 35},
    "DPSGD": SMALL,
    "SGLD": SMALL,
    "GlobalMean": {},
    "UserMean": {},
    "ItemMean": {},
    "PrivateBiases": {"steps": 2},
    "Popularity": {},
    "PrivateSearch": {"estimator": dpals.PooledDPALS(**SMALL), "grid": {"clip": [1.0, 2.0]}, "tries": 2},
}
OPEN = {"ALS": SMALL, "StagewiseALS": {**SMALL, "stage_size": 2}, "TraceNorm": SMALL}
SETTINGS = {**PRIVATE, **OPEN}
FOR_CHOICES = {"PooledDPALS", "DPALS", "AdaDPALS", "ALS", "Popularity", "PrivateSearch"}
FOR_RATINGS = set(SETTINGS) - {"Popularity"}
SPENDS_NOTHING = {"UserMean"}
PAIRS = [(name, False) for name in sorted(FOR_RATINGS)] + [(name, True) for name in sorted(FOR_CHOICES)]
PRIVATE_PAIRS = [(name, implicit) for name, implicit in PAIRS if name in PRIVATE]
N_USERS, N_ITEMS = 400, 40


def make(name, seed=1, **changes):
    arguments = {**SETTINGS[name], **changes}
    if name in PRIVATE:
        arguments = {"epsilon": 4.0, "delta": 1e-5, "insecure_seed": seed, **arguments}
    return getattr(dpals, name)(**arguments)


def data(implicit=False, n_users=N_USERS, seed=0):
    """Users and items have names; the last item has no ratings."""
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((n_users, N_ITEMS - 1)) < rng.random((n_users, 1)) * 0.6)
    names = np.array([f"user {i:04}" for i in range(n_users)])[users]
    catalogue = [f"item {j:02}" for j in range(N_ITEMS)]
    values = rng.choice([1.0, 2.0, 3.5, 5.0], len(users))
    rated = {} if implicit else {"values": values, "rating_range": (1, 5)}
    return dpals.Ratings.from_arrays(names, np.array(catalogue)[items], **rated, catalogue=catalogue)


def scores(model, ratings):
    """Of some users for all items: which of them a method trains on may depend on noise."""
    return model.predict(ratings, np.repeat(ratings.users[:20], N_ITEMS), np.tile(ratings.items, 20))


def test_every_estimator_of_the_library_is_tried_here():
    public = {name for name in dpals.__all__ if isinstance(getattr(dpals, name), type)}
    assert {name for name in public if issubclass(getattr(dpals, name), Estimator)} == set(SETTINGS)
    assert {name for name in SETTINGS if issubclass(getattr(dpals, name), PrivateEstimator)} == set(PRIVATE)


@pytest.mark.parametrize("name", SETTINGS)
class TestArguments:
    def test_are_stored_as_they_are_given(self, name):
        method = make(name)
        parameters = method.get_params()
        assert parameters.items() >= SETTINGS[name].items()
        again = type(method)(**parameters)
        assert again.get_params() == parameters
        assert repr(again) == repr(method)
        assert repr(method).startswith(f"{name}(")

    def test_can_be_changed_by_name(self, name):
        method = make(name)
        for argument, value in method.get_params().items():
            assert method.set_params(**{argument: value}) is method
        with pytest.raises(ValueError, match="has no parameter 'nonsense'"):
            method.set_params(nonsense=1)

    @pytest.mark.parametrize("fitted", [False, True])
    def test_survive_a_clone_by_scikit_learn(self, name, fitted):
        """A clone is an estimator that was never fitted, with the same arguments."""
        method = make(name)
        if fitted:
            method.fit(data(implicit=name not in FOR_RATINGS))
        copy = sklearn.base.clone(method)
        assert type(copy) is type(method)
        assert copy is not method
        assert repr(copy.get_params()) == repr(method.get_params())
        assert not hasattr(copy, "model_")
        for argument, value in method.get_params(deep=False).items():
            copy.set_params(**{argument: value})
        assert copy.get_params() == method.get_params()
        if fitted:
            ratings = data(implicit=name not in FOR_RATINGS)
            assert np.array_equal(scores(copy.fit(ratings), ratings), scores(method, ratings))

    def test_that_are_numbers_may_not_be_nonsense(self, name):
        """Before anything is spent."""
        implicit = name not in FOR_RATINGS
        ledger = dpals.Ledger()
        for argument, value in make(name).get_params().items():
            if argument in {"insecure_seed", "biases"} or isinstance(value, (bool, str)):
                continue
            for wrong in (math.nan, "many", 0.5 if argument == "seed" else -1):
                record = {"ledger": ledger} if name in PRIVATE else {}
                method = make(name).set_params(**{argument: wrong})
                with pytest.raises((ValueError, TypeError)):
                    method.fit(data(implicit), **record)
        assert ledger.spent("ratings") == 0


@pytest.mark.parametrize(("name", "implicit"), PAIRS)
class TestModel:
    def test_predicts_and_recommends(self, name, implicit):
        ratings = data(implicit)
        method = make(name)
        assert method.fit(ratings) is method
        predicted = scores(method, ratings)
        assert predicted.shape == (20 * N_ITEMS,)
        assert np.isfinite(predicted).all()
        if not implicit:
            assert predicted.min() >= 1
            assert predicted.max() <= 5
        ids, values = method.recommend(ratings, k=5)
        assert ids.shape == values.shape == (ratings.n_users, 5)
        assert (np.diff(values, axis=1) <= 0).all()
        for user in range(20):
            seen = ratings.items[ratings.indices[ratings.indptr[user] : ratings.indptr[user + 1]]]
            assert not set(ids[user]) & set(seen)
        assert method.item_factors_.shape == (N_ITEMS, method.model_.rank)

    def test_serves_users_it_has_never_seen(self, name, implicit):
        method = make(name).fit(data(implicit))
        strangers = data(implicit, n_users=80, seed=7)
        assert np.isfinite(scores(method, strangers)).all()
        assert method.recommend(strangers, k=3)[0].shape == (strangers.n_users, 3)

    def test_comes_back_from_disk_as_it_was(self, name, implicit, tmp_path):
        ratings = data(implicit)
        method = make(name).fit(ratings)
        method.save(tmp_path / "model")
        loaded = dpals.load(tmp_path / "model")
        assert np.array_equal(scores(loaded, ratings), scores(method, ratings))
        assert np.array_equal(loaded.recommend(ratings, k=4)[0], method.recommend(ratings, k=4)[0])
        assert loaded.privacy == method.model_.privacy

    def test_wants_ratings_of_this_library(self, name, implicit):
        with pytest.raises(dpals.InputError, match=r"fit takes a dpals\.Ratings"):
            make(name).fit(data(implicit).to_csr())


@pytest.mark.parametrize("name", sorted(set(SETTINGS) - FOR_CHOICES | {"Popularity"}))
def test_data_of_the_wrong_kind_is_refused_by_name(name):
    with pytest.raises(dpals.InputError, match=name):
        make(name).fit(data(implicit=name != "Popularity"))


@pytest.mark.parametrize(("name", "implicit"), PRIVATE_PAIRS)
class TestPrivacy:
    def test_the_statement_stays_within_the_budget_and_names_each_release(self, name, implicit):
        method = make(name).fit(data(implicit))
        statement = method.privacy
        assert statement.epsilon <= 4.0
        assert statement.delta == 1e-5
        assert bool(statement.releases) == (name not in SPENDS_NOTHING)
        assert statement.epsilon == 0 if name in SPENDS_NOTHING else statement.epsilon > 3.9
        assert all(release.purpose for release in statement.releases)
        assert dpals.Statement.from_json(statement.to_json()) == statement
        assert json.loads(statement.to_json())["unit"].startswith("One user")

    def test_the_ledger_has_what_the_statement_says(self, name, implicit):
        ledger = dpals.Ledger()
        method = make(name).fit(data(implicit), ledger=ledger, dataset="a name")
        total, statement = ledger.total("a name"), method.privacy
        if isinstance(method, dpals.PrivateSearch):
            assert (total.cost, total.searches) == (0, ((statement.epsilon, statement.delta),))
        elif method.adaptive_costs:
            assert total.cost == dpals.Budget(4.0, 1e-5).cost
            assert statement.mu == total.mu
        else:
            assert total.cost == sum(release.cost for release in statement.releases)
        assert ledger.open_runs() == []

    def test_what_is_left_is_given_back_where_training_fails(self, name, implicit, monkeypatch):
        """A search keeps all of it: nobody may know how far it came."""
        ledger, calls = dpals.Ledger(), []
        if name in SPENDS_NOTHING:
            pytest.skip("it makes no release to fail after")

        def failing(mechanism, *arguments):
            calls.append(1)
            table = released(mechanism, *arguments)
            raise MemoryError(table.shape)

        released = Mechanism._draw
        monkeypatch.setattr(Mechanism, "_draw", failing)
        with pytest.raises(MemoryError):
            make(name).fit(data(implicit), ledger=ledger)
        spends = sum(entry.cost for entry in ledger.entries() if entry.kind == "spend")
        assert calls == [1]
        assert ledger.open_runs() == []
        if isinstance(make(name), dpals.PrivateSearch):
            assert len(ledger.total("ratings").searches) == 1
        else:
            whole = dpals.Budget(4.0, 1e-5).cost
            assert ledger.spent("ratings") == (whole if make(name).adaptive_costs else spends) > 0

    def test_without_a_ledger_the_total_is_unknown(self, name, implicit):
        statement = make(name).fit(data(implicit)).privacy
        assert (statement.dataset_mu, statement.dataset_epsilon) == (None, None)
        assert "All runs on this data together: unknown" in str(statement)

    def test_a_seed_repeats_the_model_and_taints_it(self, name, implicit):
        ratings = data(implicit)
        first, second, other = (make(name, seed).fit(ratings) for seed in (5, 5, 6))
        assert np.array_equal(scores(first, ratings), scores(second, ratings))
        if name not in SPENDS_NOTHING:
            assert not np.array_equal(scores(first, ratings), scores(other, ratings))
        assert not first.privacy.is_private
        assert "NOT PRIVATE" in str(first.privacy)

    def test_without_a_seed_noise_is_fresh(self, name, implicit):
        ratings = data(implicit)
        first, second = (make(name, seed=None).fit(ratings) for _ in range(2))
        assert first.privacy.is_private
        if name not in SPENDS_NOTHING:
            assert not np.array_equal(scores(first, ratings), scores(second, ratings))

    @pytest.mark.parametrize("epsilon", [1e-3, 300.0])
    def test_however_small_or_large_the_budget_predictions_are_sound(self, name, implicit, epsilon):
        ratings = data(implicit)
        predicted = scores(make(name, epsilon=epsilon).fit(ratings), ratings)
        assert np.isfinite(predicted).all()
        assert implicit or (predicted.min() >= 1 and predicted.max() <= 5)

    def test_one_user_and_no_users_are_data_like_any_other(self, name, implicit):
        """Whether there is anyone, and whether they rated anything, is private."""
        ratings = data(implicit)
        someone, nobody = np.arange(ratings.n_users) == 3, np.zeros(ratings.n_users, bool)
        silent = ratings.keep(np.zeros(ratings.n_ratings, bool))
        for few in (ratings.take_users(someone), ratings.take_users(nobody), silent):
            assert np.isfinite(scores(make(name).fit(few), ratings)).all()

    def test_shares_that_leave_nothing_are_refused_before_anything_is_spent(self, name, implicit):
        shares = [argument for argument in make(name).get_params() if argument.endswith("_share")]
        ledger = dpals.Ledger()
        if len(shares) > 1:
            method = make(name, **dict.fromkeys(shares, 0.6))
            with pytest.raises(ValueError, match="share"):
                method.fit(data(implicit), ledger=ledger)
        assert ledger.spent("ratings") == 0


@pytest.mark.parametrize(("name", "implicit"), [pair for pair in PAIRS if pair[0] in OPEN])
def test_what_is_not_private_says_nothing_of_privacy(name, implicit):
    method = make(name).fit(data(implicit))
    assert method.model_.privacy is None
    assert "not private" in repr(method.model_)
    assert np.array_equal(scores(make(name).fit(data(implicit)), data(implicit)), scores(method, data(implicit)))


@pytest.mark.parametrize("name", OPEN)
def test_nothing_to_learn_from_is_an_error_where_that_may_be_said(name):
    ratings = data()
    with pytest.raises(dpals.InputError, match="no ratings"):
        make(name).fit(ratings.keep(np.zeros(ratings.n_ratings, bool)))
