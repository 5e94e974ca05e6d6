"""Settings of methods on tasks."""

import numpy as np
import pytest

import dpals
from dpals.experiments.settings import _ALL, make, settings_for
from dpals.methods.base.registry import NOT_PRIVATE


def test_an_epsilon_that_was_not_tuned_has_the_settings_of_the_nearest():
    for epsilon, nearest in ((0.1, 1), (2.0, 1), (2.5, 5), (14.0, 10), (15.0, 20), (100.0, 20)):
        assert settings_for("synthetic", "DPALS", epsilon) == settings_for("synthetic", "DPALS", nearest)


def test_a_method_that_is_not_listed_has_its_defaults():
    assert settings_for("ratings", "PooledDPALS", 1.0) == {}


def test_settings_are_a_copy():
    settings_for("synthetic", "DPALS", 1.0)["rank"] = 99
    assert settings_for("synthetic", "DPALS", 1.0)["rank"] != 99


@pytest.mark.parametrize(("task", "method"), [(task, method) for task, tuned in _ALL.items() for method in tuned])
def test_all_settings_are_arguments_that_the_method_takes(task, method):
    implicit = task.startswith("items")
    rng = np.random.default_rng(1)
    users, items = rng.integers(0, 500, 20_000), rng.integers(0, 3_000, 20_000)
    values = {} if implicit else {"ratings": rng.uniform(1, 5, 20_000), "rating_range": (1, 5)}
    ratings = dpals.Ratings.from_arrays(
        users,
        items,
        *(values[k] for k in values if k == "ratings"),
        **{k: v for k, v in values.items() if k == "rating_range"},
    )
    for epsilon in (1.0, 5.0, 10.0, 20.0):
        estimator = make(method, epsilon, 1, settings_for(task.removesuffix(", small"), method, epsilon))
        estimator.check(ratings)
        assert (method in NOT_PRIVATE) or estimator.get_params()["epsilon"] == epsilon
