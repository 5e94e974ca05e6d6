"""Evaluation of a model against loops over users and items."""

import math

import numpy as np
import pytest
from tests.small_models import RANGE, history_of, model_of, table_of_ratings

import dpals
from dpals.evaluation.held_out import evaluate, histories_of


def test_numbers_are_those_of_loops():
    model, whole = model_of(3), history_of(table_of_ratings(4))
    is_test = np.random.default_rng(5).random(whole.n_ratings) < 0.3
    history, test = whole.keep(~is_test), whole.keep(is_test)
    found = evaluate(model, history, test, k=4)
    ids, _ = model.recommend(history, 4)
    errors, recalls, gains = [], [], []
    for user, name in enumerate(whole.users.tolist()):
        entries = range(test.indptr[user], test.indptr[user + 1])
        wanted = {test.items[test.indices[entry]] for entry in entries}
        for entry in entries:
            predicted = model.predict(history, [name], [test.items[test.indices[entry]]])[0]
            errors.append((float(predicted) - float(test.values[entry])) ** 2)
        if wanted:
            hits = [item in wanted for item in ids[user]]
            recalls.append(sum(hits) / min(4, len(wanted)))
            best = sum(1 / math.log2(place + 2) for place in range(min(4, len(wanted))))
            gains.append(sum(hit / math.log2(place + 2) for place, hit in enumerate(hits)) / best)
    assert found.rmse == pytest.approx(math.sqrt(np.mean(errors)), rel=1e-6)
    assert found.recall == pytest.approx(np.mean(recalls))
    assert found.ndcg == pytest.approx(np.mean(gains))
    assert (found.users, found.ratings, found.seen) == (len(recalls), len(errors), 0)


def test_newcomers_and_what_was_seen():
    model = model_of(3, rating_range=None)
    facts = {"catalogue": model.items}
    history = dpals.Ratings.from_arrays(["ann", "bob"], [100, 101], **facts)
    test = dpals.Ratings.from_arrays(["ann", "eve", "ann"], [100, 103, 105], **facts)
    found = evaluate(model, history, test, k=5)
    assert (found.rmse, found.users, found.newcomers, found.ratings, found.seen) == (None, 2, 1, 3, 1)
    alone = evaluate(model, history, dpals.Ratings.from_arrays(["eve"], [103], **facts), k=5)
    ids, _ = model.recommend(histories_of(history, alone_users := test.users[1:]), 5)
    assert alone_users.tolist() == ["eve"]
    assert alone.recall == float(103 in ids[0])


def test_ids_of_two_types_and_nothing_to_predict():
    model = model_of(3)
    facts = {"rating_range": RANGE, "catalogue": model.items}
    history = dpals.Ratings.from_arrays(["ann"], [100], [3], **facts)
    with pytest.raises(dpals.InputError, match="text in the history and integers in the test"):
        evaluate(model, history, dpals.Ratings.from_arrays([7], [100], [3], **facts))
    nothing = dpals.Ratings.from_arrays(["ann"], [999], [3], **facts, on_unknown_items="drop")
    with pytest.raises(dpals.InputError, match="knows no item"):
        evaluate(model, history, nothing)
