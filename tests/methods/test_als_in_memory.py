"""What ALS trains on, in memory and in blocks: the same counts, models and held-out errors."""

import numpy as np
import pytest
from tests.methods.every_method import data
from tests.methods.test_blocks import InBlocks

import dpals
from dpals.engines.local import LocalEngine
from dpals.evaluation.metrics import recall_at_k, rmse
from dpals.evaluation.splits import pairs, split_entries
from dpals.methods import als_in_blocks
from dpals.methods.als_in_memory import InMemory
from dpals.methods.als_settings import Settings
from dpals.private.sampling import Split

TRAININGS = {
    "memory": InMemory,
    "blocks": lambda ratings: als_in_blocks.InBlocks(InBlocks(ratings, public=3), LocalEngine()),
}
SETTINGS = Settings(3, 60, 10.0, 2.0, user_exponent=0.5, item_exponent=0.5, unseen_weight=0.0, seed=1)


@pytest.fixture(params=TRAININGS.values(), ids=TRAININGS)
def training_on(request):
    return request.param


def test_means_are_of_those_who_have_ratings(training_on):
    ratings = data().keep(data().rows % 3 > 0)
    of_users, of_items = (np.unique(numbers, return_counts=True)[1] for numbers in (ratings.rows, ratings.indices))
    training = training_on(ratings)
    assert training.n_ratings == ratings.n_ratings
    assert training.mean_counts == pytest.approx((of_users.mean(), of_items.mean()))


def test_held_out_errors_are_those_of_predictions_from_what_is_known(training_on):
    split = Split((0.9, 0.1), 5)
    known, hidden = split_entries(data(), split.fractions, split.seed)
    model = dpals.ALS(rank=3, steps=2, ridge=5.0).fit(known).model_
    part, errors_of = training_on(data()).split(split)
    total, number = errors_of(model)
    assert (part.n_ratings, number) == (known.n_ratings, hidden.n_ratings)
    expected = rmse(model.predict(known, *pairs(hidden)), hidden.values)
    assert np.sqrt(total / number) == pytest.approx(expected, rel=1e-5)


def test_held_out_misses_are_those_of_lists_of_users_with_enough_items(training_on):
    split = Split((0.9, 0.1), 5)
    known, hidden = split_entries(data(implicit=True), split.fractions, split.seed)
    model = dpals.ALS(rank=3, steps=2, ridge=5.0).fit(known).model_
    asked = (np.diff(known.indptr) >= 4) & (np.diff(hidden.indptr) > 0)
    total, number = training_on(data(implicit=True)).split(split)[1](model)
    assert number == asked.sum() > 20
    lists = model.recommend(known.take_users(asked), k=20)[0]
    assert 1 - total / number == pytest.approx(recall_at_k(lists, hidden.take_users(asked), k=20), rel=1e-6)


def test_the_unit_makes_no_difference_to_where_training_ends(training_on):
    training = training_on(data())
    *_, model = training.models(SETTINGS)
    *_, other = training.models(SETTINGS._replace(unit=2.0, ridge=SETTINGS.ridge / 2))
    expected, found = (one.predict(data(), *pairs(data())) for one in (model, other))
    np.testing.assert_allclose(found, expected, atol=0.01)
    assert np.ptp(expected) > 2


def test_without_factors_there_are_biases(training_on):
    *_, model = training_on(data()).models(SETTINGS._replace(rank=0))
    assert model.item_factors.shape == (data().n_items, 0)
    assert np.count_nonzero(model.item_biases) == data().n_items - 1  # one has no ratings
