"""What a model remembers of the method that trained it."""

import json
import types
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
from tests.methods.every_method import METHODS, PRIVATE, data, data_for, fitted_to_its_kind, make

import dpals
from dpals.methods.base.settings import estimator_from, settings_of


def values(found):
    """Of all fields of a model, in a form that can be compared."""
    model = {field.name: getattr(found, field.name) for field in fields(found)}
    model["frank_wolfe_steps"] = found.frank_wolfe_steps and found.frank_wolfe_steps.to_dict()
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in model.items()}


def search(**changes):
    return dpals.PrivateSearch(**{"estimator": dpals.ItemMean(), "grid": {"bias_prior": [0.1, 0.2]}, **changes})


@pytest.mark.parametrize("name", METHODS)
class TestEveryMethod:
    def test_is_remembered_by_its_model_through_a_folder(self, name, tmp_path):
        """So well that it can be trained again, with the same model as the result."""
        method = fitted_to_its_kind(name)
        method.save(tmp_path)
        loaded = dpals.load(tmp_path)
        assert loaded.settings == method.model_.settings == settings_of(make(name))
        assert loaded.settings["method"] == name
        again = estimator_from(loaded.settings)
        assert type(again) is type(method)
        assert repr(again) == repr(make(name))
        assert values(again.fit(data_for(name)).model_) == values(method.model_)

    def test_has_settings_that_are_json(self, name):
        settings = settings_of(make(name))
        assert json.loads(json.dumps(settings, allow_nan=False)) == settings
        assert set(settings) == {"method", *make(name)._parameter_names()}
        assert "method" not in make(name)._parameter_names()

    def test_takes_no_other_arguments(self, name):
        with pytest.raises(dpals.InputError, match="has no argument 'colour'"):
            estimator_from({**settings_of(make(name)), "colour": "red"})


@pytest.mark.parametrize("name", PRIVATE)
def test_settings_do_not_depend_on_the_data(name):
    """Not even on whether there is anyone."""
    ratings = data_for(name)
    silent = ratings.keep(np.zeros(ratings.n_ratings, bool))
    assert fitted_to_its_kind(name).model_.settings == make(name).fit(silent).model_.settings


def test_what_a_method_chose_is_not_an_argument_it_was_given():
    method = dpals.PooledDPALS(4.0, insecure_seed=1).fit(data())
    assert method.get_params()["rank"] is not None
    assert method.model_.settings["rank"] is None
    assert settings_of(method) == method.model_.settings


def test_a_search_remembers_what_it_searched_and_not_what_it_found():
    grid = types.MappingProxyType({"bias_prior": (np.float64(0.1), 0.2), "residual_bound": [np.float64(0.5)]})
    method = search(estimator=dpals.ItemMean(np.int64(3)), grid=grid, tries=3, insecure_seed=1).fit(data())
    settings = method.model_.settings
    assert settings["estimator"] == settings_of(dpals.ItemMean(3))
    assert settings["grid"] == {"bias_prior": [0.1, 0.2], "residual_bound": [0.5]}
    assert settings["tries"] == 3
    assert "best_params_" not in settings
    assert isinstance(estimator_from(settings).estimator, dpals.ItemMean)


def test_a_search_without_a_try_remembers_as_well():
    found = search(tries=1.01, distribution="poisson", insecure_seed=0)
    for seed in range(30):
        found.set_params(insecure_seed=seed).fit(data())
        if found.best_params_ is None:
            break
    assert found.best_params_ is None
    assert found.model_.settings == settings_of(found)


@pytest.mark.parametrize(
    ("given", "plain"),
    [(np.int32(3), 3), (np.float32(0.5), 0.5), (np.bool_(True), True), (np.str_("a"), "a"), ((1, (2,)), [1, [2]])],
    ids=str,
)
def test_values_of_numpy_and_tuples_become_plain(given, plain):
    kept = settings_of(dpals.ItemMean(given))["epsilon"]
    assert kept == plain
    assert type(kept) is type(plain)


@pytest.mark.parametrize("value", [Fraction(1, 2), object(), float("inf"), float("nan"), {1: 2}, b"text"])
def test_what_json_cannot_hold_is_not_remembered(value):
    assert settings_of(dpals.ItemMean(bias_prior=value)) is None
    assert settings_of(search(estimator=dpals.ItemMean(bias_prior=value))) is None
    assert settings_of(search(grid={"bias_prior": [0.1, value]})) is None


def test_training_with_such_a_value_still_works(tmp_path):
    method = dpals.ItemMean(bias_prior=Fraction(1, 4), insecure_seed=1).fit(data())
    method.save(tmp_path)
    assert dpals.load(tmp_path).settings is None
    twin = dpals.ItemMean(bias_prior=0.25, insecure_seed=1).fit(data())
    assert np.array_equal(method.model_.item_biases, twin.model_.item_biases)


def test_methods_of_others_are_not_taken_for_ours():
    """Whatever they are called."""

    class MyMean(dpals.GlobalMean):
        pass

    impostor = type("ItemMean", (dpals.GlobalMean,), {})
    for method in (MyMean, impostor):
        assert method(insecure_seed=1).fit(data()).model_.settings is None
        assert settings_of(search(estimator=method())) is None


def test_changes_after_training_do_not_reach_the_model():
    grid = {"bias_prior": [0.1, 0.2]}
    method = search(grid=grid, tries=2, insecure_seed=1).fit(data())
    method.set_params(epsilon=9.0)
    grid["bias_prior"].append(0.3)
    assert method.model_.settings["epsilon"] == 1.0
    assert method.model_.settings["grid"] == {"bias_prior": [0.1, 0.2]}


def test_arguments_that_are_missing_are_the_usual_ones():
    """As for a model of a version that did not have them yet."""
    assert repr(estimator_from({"method": "DPALS", "rank": 5})) == repr(dpals.DPALS(rank=5))


OLD = {
    "method": "PooledDPALS",
    "epsilon": 2.0,
    "delta": 1e-05,
    "rank": 3,
    "steps": 2,
    "growth": 1.15,
    "weight_exponent": None,
    "clip": 0.5,
    "noise_scale": 0.33,
    "taste_scale": 0.1,
    "bias_scale": 0.25,
    "user_bias_ridge": 3.0,
    "caution": 0.3,
    "fading": 0.5,
    "settling": 0.4,
    "mean_share": 0.005,
    "weight_share": 0.1,
    "bias_share": 0.04,
    "company_share": 0.2,
    "gram_share": 0.03,
    "seed": 0,
    "insecure_seed": None,
}
"""What a model of PooledDPALS remembers from before some arguments became constants and one got another name."""


class TestModelsOfEarlierVersions:
    def test_are_trained_as_they_were(self, caplog):
        now = dpals.PooledDPALS(2.0, rank=3, steps=2, cooccurrence_share=0.2)
        assert repr(estimator_from(OLD)) == repr(now)
        walk = {"method": "DPFrankWolfe", "steps": 4, "mean_share": 0.01}
        assert repr(estimator_from(walk)) == repr(dpals.DPFrankWolfe(steps=4))
        assert caplog.text == ""

    def test_whose_constants_were_others_are_warned_of(self, caplog):
        assert repr(estimator_from({**OLD, "caution": 1.0})) == repr(estimator_from(OLD))
        assert "no argument 'caution': it is always 0.3, and not 1.0" in caplog.text

    def test_whose_scales_were_chosen_are_warned_of(self, caplog):
        assert repr(estimator_from({**OLD, "taste_scale": 0.3})) == repr(estimator_from(OLD))
        assert "learns the scales of ratings: 0.3, which this model has for 'taste_scale', is left out" in caplog.text
        old = {"method": "PrivateBiases", "bias_scale": 0.25, "user_bias_ridge": 3.0}
        assert repr(estimator_from(old)) == repr(dpals.PrivateBiases())

    def test_by_a_search_have_their_grid_in_the_present_names(self, caplog):
        old = {"method": "PrivateSearch", "estimator": OLD, "grid": {"company_share": [0.1, 0.2], "growth": [1.15]}}
        found = estimator_from(old)
        assert found.grid == {"cooccurrence_share": [0.1, 0.2]}
        assert repr(found.estimator) == repr(estimator_from(OLD))
        assert caplog.text == ""


def test_a_model_that_does_not_say_is_refused():
    with pytest.raises(dpals.InputError, match="does not say how it was trained: it was made by an older version"):
        estimator_from(None)


@pytest.mark.parametrize("name", ["NextYearsMethod", "Ledger", "load", "simulate", "__version__", "", None, ["DPALS"]])
def test_what_is_no_method_is_refused(name):
    with pytest.raises(dpals.InputError, match="not a method of this version of dpals"):
        estimator_from({"method": name})
    inner = {**settings_of(search())["estimator"], "method": "Ledger"}
    with pytest.raises(dpals.InputError, match="not a method of this version of dpals"):
        estimator_from({**settings_of(search()), "estimator": inner})


@pytest.mark.parametrize("wrong", [["DPALS"], "DPALS", 3])
def test_what_is_no_settings_is_refused(wrong):
    with pytest.raises(dpals.InputError, match="settings name a method and its arguments"):
        estimator_from(wrong)


def test_what_a_method_cannot_do_without_must_be_there():
    with pytest.raises(dpals.InputError, match="PrivateSearch lacks an argument"):
        estimator_from({"method": "PrivateSearch"})
