"""What every estimator of the library promises, tried on each of them."""

import json
import math

import numpy as np
import pytest
import sklearn.base
from tests.methods.every_method import (
    DELTA,
    EPSILON,
    IMPLICIT,
    METHODS,
    N_ITEMS,
    PAIRS,
    PRIVATE,
    PRIVATE_PAIRS,
    RATINGS,
    SPENDS_NOTHING,
    data,
    data_for,
    fitted,
    fitted_to_its_kind,
    make,
    scores,
    small,
)

import dpals
from dpals.methods.base.registry import NOT_PRIVATE
from dpals.release.mechanism import Mechanism


@pytest.mark.parametrize("name", METHODS)
class TestArguments:
    def test_are_stored_as_they_are_given(self, name):
        method = make(name)
        parameters = method.get_params()
        assert {argument: repr(parameters[argument]) for argument in small(name)} == {
            argument: repr(value) for argument, value in small(name).items()
        }
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

    @pytest.mark.parametrize("before", ["not fitted", "fitted"])
    def test_survive_a_clone_by_scikit_learn(self, name, before):
        """A clone is an estimator that was never fitted, with the same arguments."""
        method = make(name) if before == "not fitted" else fitted_to_its_kind(name)
        copy = sklearn.base.clone(method)
        assert type(copy) is type(method)
        assert copy is not method
        assert repr(copy.get_params()) == repr(method.get_params())
        assert not hasattr(copy, "model_")
        for argument, value in method.get_params(deep=False).items():
            copy.set_params(**{argument: value})
        assert copy.get_params() == method.get_params()
        if before == "fitted":
            ratings = data_for(name)
            assert np.array_equal(scores(copy.fit(ratings), ratings), scores(method, ratings))

    def test_that_are_numbers_may_not_be_nonsense(self, name):
        """Before anything is spent."""
        ledger = dpals.Ledger()
        for argument, value in make(name).get_params().items():
            if argument in {"insecure_seed", "biases"} or isinstance(value, (bool, str)):
                continue
            for wrong in (math.nan, "many", 0.5 if argument == "seed" else -1):
                record = {"ledger": ledger} if name in PRIVATE else {}
                method = make(name).set_params(**{argument: wrong})
                with pytest.raises((ValueError, TypeError)):
                    method.fit(data_for(name), **record)
        assert ledger.spent("ratings") == 0


@pytest.mark.parametrize(("name", "implicit"), PAIRS)
class TestModel:
    def test_predicts_and_recommends(self, name, implicit):
        ratings, method = data(implicit), fitted(name, implicit)
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
        method = fitted(name, implicit)
        strangers = data(implicit, n_users=80, seed=7)
        assert np.isfinite(scores(method, strangers)).all()
        assert method.recommend(strangers, k=3)[0].shape == (strangers.n_users, 3)

    def test_comes_back_from_disk_as_it_was(self, name, implicit, tmp_path):
        ratings, method = data(implicit), fitted(name, implicit)
        method.save(tmp_path / "model")
        loaded = dpals.load(tmp_path / "model")
        assert np.array_equal(scores(loaded, ratings), scores(method, ratings))
        assert np.array_equal(loaded.recommend(ratings, k=4)[0], method.recommend(ratings, k=4)[0])
        assert loaded.privacy == method.model_.privacy

    def test_wants_ratings_of_this_library(self, name, implicit):
        with pytest.raises(dpals.InputError, match=r"fit takes a dpals\.Ratings"):
            make(name).fit(data(implicit).to_csr())


@pytest.mark.parametrize("name", sorted(set(RATINGS) ^ set(IMPLICIT)))
def test_data_of_the_wrong_kind_is_refused_by_name(name):
    with pytest.raises(dpals.InputError, match=name):
        make(name).fit(data(implicit=METHODS[name].ratings))


@pytest.mark.parametrize(("name", "implicit"), PRIVATE_PAIRS)
class TestPrivacy:
    def test_the_statement_stays_within_the_budget_and_names_each_release(self, name, implicit):
        statement = fitted(name, implicit).privacy
        assert statement.epsilon <= EPSILON
        assert statement.delta == DELTA
        assert bool(statement.releases) == (name not in SPENDS_NOTHING)
        assert statement.epsilon == 0 if name in SPENDS_NOTHING else statement.epsilon > 0.975 * EPSILON
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
            assert total.cost == dpals.Budget(EPSILON, DELTA).cost
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
            whole = dpals.Budget(EPSILON, DELTA).cost
            assert ledger.spent("ratings") == (whole if make(name).adaptive_costs else spends) > 0

    def test_without_a_ledger_the_total_is_unknown(self, name, implicit):
        statement = fitted(name, implicit).privacy
        assert (statement.dataset_mu, statement.dataset_epsilon) == (None, None)
        assert "All runs on this data together: unknown" in str(statement)

    def test_a_seed_repeats_the_model_and_taints_it(self, name, implicit):
        ratings = data(implicit)
        first, second, other = fitted(name, implicit), make(name).fit(ratings), make(name, seed=2).fit(ratings)
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
            method = make(name, **dict.fromkeys(shares, 0.999))
            with pytest.raises(ValueError, match="share"):
                method.fit(data(implicit), ledger=ledger)
        assert ledger.spent("ratings") == 0


@pytest.mark.parametrize(("name", "implicit"), [pair for pair in PAIRS if pair not in PRIVATE_PAIRS])
def test_what_is_not_private_says_nothing_of_privacy(name, implicit):
    method = fitted(name, implicit)
    assert method.model_.privacy is None
    assert "not private" in repr(method.model_)
    assert np.array_equal(scores(make(name).fit(data(implicit)), data(implicit)), scores(method, data(implicit)))


@pytest.mark.parametrize("name", NOT_PRIVATE)
def test_nothing_to_learn_from_is_an_error_where_that_may_be_said(name):
    ratings = data()
    with pytest.raises(dpals.InputError, match="no ratings"):
        make(name).fit(ratings.keep(np.zeros(ratings.n_ratings, bool)))
