"""What users are served: alone and together the same, and models that mix users up are found out."""

from dataclasses import replace

import numpy as np
import pytest

import dpals
from dpals.audit.serving import serving_differences
from dpals.audit.simulated_data import odd_users
from dpals.model.factor_model import FactorModel


@pytest.mark.parametrize(
    ("method", "implicit"),
    [
        (dpals.PooledDPALS(50.0, rank=17), False),
        (dpals.PooledDPALS(50.0, rank=17), True),
        (dpals.DPFrankWolfe(50.0, steps=2), False),
        (dpals.Popularity(1.0), True),
    ],
)
def test_users_are_served_by_their_own_history_alone(method, implicit):
    rows = odd_users(12, 40, implicit)
    assert list(serving_differences(method.fit(rows.ratings()).model_, rows)) == []


ROWS = odd_users(12, 40, implicit=False)
MODEL = replace(dpals.PooledDPALS(50.0, rank=3).fit(ROWS.ratings()).model_)


def test_newcomers_who_are_like_the_mean_of_others_are_found_out(monkeypatch):
    search_vectors = FactorModel.search_vectors

    def like_everyone(model, history):
        vectors = search_vectors(model, history)
        new = np.diff(history.indptr) == 0
        vectors[new] = vectors.mean(axis=0)
        return vectors

    monkeypatch.setattr(FactorModel, "search_vectors", like_everyone)
    assert "the search vector of a user depends on who else is in the history" in list(serving_differences(MODEL, ROWS))


def test_the_last_bit_of_a_prediction_is_compared(monkeypatch):
    predict = FactorModel.predict

    def rounded_by_others(model, history, users, items):
        predicted = predict(model, history, users, items)
        return np.nextafter(predicted, np.float32(9)) if history.n_users > 1 else predicted

    monkeypatch.setattr(FactorModel, "predict", rounded_by_others)
    assert list(serving_differences(MODEL, ROWS)) == ["a prediction of a user depends on who else is in the history"]
