"""Recommendations block by block against all at once."""

import numpy as np
import polars as pl
import pytest
from tests.small_models import N_ITEMS, history_of, model_of, table_of_ratings

import dpals
from dpals.model.batch import recommend_in_blocks
from dpals.private.user_vectors import LeastSquaresProblem, LogisticProblem


@pytest.mark.parametrize("exclude_seen", [True, False])
@pytest.mark.parametrize("text", [True, False])
def test_blocks_are_what_the_model_recommends_at_once(exclude_seen, text):
    """To the last bit. Some users have seen nearly everything, and get fewer items."""
    items = [f"film {at}" for at in range(N_ITEMS)] if text else np.arange(100, 100 + N_ITEMS)
    model, history = model_of(1, items=items), history_of(table_of_ratings(2, share=0.8), items)
    ids, scores = model.recommend(history, 6, exclude_seen)
    blocks = list(recommend_in_blocks(model, [history], 6, exclude_seen, users_at_once=4))
    assert sum(block.n_ratings for block in blocks) == history.n_ratings
    table = pl.concat(block.table("uid", "film") for block in blocks)
    expected = [
        (user, place + 1, item, score)
        for user, row, values in zip(history.users.tolist(), ids.tolist(), scores.tolist(), strict=True)
        for place, (item, score) in enumerate(zip(row, values, strict=True))
        if score > -np.inf
    ]
    assert table.columns == ["uid", "rank", "film", "score"]
    assert table.rows() == expected
    assert exclude_seen == (len(expected) < 6 * history.n_users)
    lists = pl.concat(block.lists() for block in blocks)
    assert lists["user"].to_list() == history.users.tolist()
    assert [(u, i) for u, row, _ in lists.rows() for i in row] == [(u, i) for u, _, i, _ in expected]
    assert [s for _, _, row in lists.rows() for s in row] == [s for *_, s in expected]


def test_a_user_who_has_seen_everything_has_an_empty_list():
    model = model_of(1, items=[7, 8], item_factors=np.zeros((2, 1)), item_biases=[0, 0])
    history = dpals.Ratings.from_arrays([1, 1, 2], [7, 8, 8], [3, 3, 3], rating_range=(0.5, 5), catalogue=[7, 8])
    (block,) = recommend_in_blocks(model, [history], 2)
    assert block.lists().rows() == [(1, [], []), (2, [7], [pytest.approx(3.4)])]


@pytest.mark.parametrize("log_odds", [False, True])
def test_the_item_side_is_computed_once_for_all_blocks(monkeypatch, log_odds):
    problem = LogisticProblem if log_odds else LeastSquaresProblem
    made, make = [], problem.of
    monkeypatch.setattr(problem, "of", lambda *arguments, **named: (made.append(1), make(*arguments, **named))[1])
    model = model_of(1, **({"log_odds": True, "rating_range": None} if log_odds else {}))
    blocks = list(recommend_in_blocks(model, [history_of(table_of_ratings(2), implicit=log_odds)], 3, users_at_once=4))
    assert len(blocks) > 5
    assert len(made) == 1
