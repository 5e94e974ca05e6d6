"""Evaluation of a model against loops over users and items."""

import math
from collections import Counter
from dataclasses import asdict, dataclass

import numpy as np
import pytest
from tests.small_models import RANGE, history_of, model_of, table_of_ratings

import dpals
from dpals.data.blocks.folder import FileBlock
from dpals.data.population import MemoryBlock, PartOfPopulation
from dpals.evaluation import held_out
from dpals.evaluation.held_out import evaluate
from dpals.evaluation.splits import split_entries


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
    eve = dpals.Ratings.from_arrays(["eve"], [103], **facts)
    ids, _ = model.recommend(eve.keep(np.array([False])), 5)
    assert evaluate(model, history, eve, k=5).recall == float(103 in ids[0])


def test_ids_of_two_types_and_nothing_to_predict():
    model = model_of(3)
    facts = {"rating_range": RANGE, "catalogue": model.items}
    history = dpals.Ratings.from_arrays(["ann"], [100], [3], **facts)
    with pytest.raises(dpals.InputError, match="text in the history and integers in the test"):
        evaluate(model, history, dpals.Ratings.from_arrays([7], [100], [3], **facts))
    nothing = dpals.Ratings.from_arrays(["ann"], [999], [3], **facts, on_unknown_items="drop")
    with pytest.raises(dpals.InputError, match="knows no item"):
        evaluate(model, history, nothing)


@dataclass(frozen=True, eq=False)
class InBlocks(PartOfPopulation):
    """Ratings in memory as several blocks, about which nothing is known."""

    whole: dpals.Ratings
    function: None = None
    public: int = 3

    @property
    def blocks(self):
        parts = np.arange(self.whole.n_users) % self.public
        return [MemoryBlock(self.whole.take_users(parts == k), name=str(k)) for k in range(self.public)]


class TestBlocks:
    """What is evaluated in blocks is what is evaluated in memory, but for the rounding of sums."""

    @pytest.fixture(params=[False, True], ids=["rated", "implicit"])
    def model(self, request):
        return model_of(3, rating_range=None) if request.param else model_of(3)

    @pytest.fixture
    def data(self, model):
        rng = np.random.default_rng(8)
        n = 3000
        users = rng.integers(0, 400, n)
        values = None if model.rating_range is None else rng.integers(1, 11, n) / 2
        facts = {"rating_range": model.rating_range, "catalogue": model.items}
        whole = dpals.Ratings.from_arrays([f"u{user}" for user in users], rng.choice(model.items, n), values, **facts)
        train, test = split_entries(whole, (0.8, 0.2))
        return whole, train.take_users(np.arange(train.n_users) % 9 > 0), test

    @staticmethod
    def same(found, expected):
        numbers = {"rmse": pytest.approx(expected.rmse), "recall": pytest.approx(expected.recall)}
        return asdict(found) == {**asdict(expected), **numbers, "ndcg": pytest.approx(expected.ndcg)}

    @pytest.mark.parametrize("sizes", [(10**6, 10**6), (50, 10), (20, 200), (200, 10**6)])
    def test_blocks_of_any_sizes(self, model, data, tmp_path, sizes):
        _, history, test = data
        expected = evaluate(model, history, test, k=3)
        assert expected.newcomers > 20
        known, wanted = (
            dpals.write_blocks(part, tmp_path / name, ratings_per_block=size)
            for name, part, size in zip("ht", (history, test), sizes, strict=True)
        )
        for pair in ((known, wanted), (history, wanted), (known, test), (InBlocks(history), wanted)):
            assert self.same(evaluate(model, *pair, k=3), expected)

    def test_parts_of_the_same_blocks_pair_up(self, model, data, tmp_path, monkeypatch):
        whole = data[0]
        blocks = dpals.write_blocks(whole, tmp_path, ratings_per_block=100)
        opened = []
        real = FileBlock.open
        monkeypatch.setattr(FileBlock, "open", lambda block: opened.append(block.name) or real(block))
        found = evaluate(model, *split_entries(blocks, (0.8, 0.2)), k=3)
        assert self.same(found, evaluate(model, *split_entries(whole, (0.8, 0.2)), k=3))
        assert Counter(opened) == {block.name: 2 for block in blocks.blocks}
        assert len(blocks.blocks) > 20

    def test_many_users_are_taken_in_turn(self, model, data, monkeypatch):
        _, history, test = data
        expected = evaluate(model, history, test, k=3)
        monkeypatch.setattr(held_out, "USERS_AT_ONCE", 7)
        assert self.same(evaluate(model, history, test, k=3), expected)


def test_a_fitted_method_will_do():
    whole = history_of(table_of_ratings(4))
    fitted = dpals.ALS(rank=2, steps=1).fit(whole)
    assert dpals.evaluate(fitted, whole, whole, k=3) == dpals.evaluate(fitted.model_, whole, whole, k=3)


def test_other_catalogues_and_ranges_are_refused(tmp_path):
    model, whole = model_of(3), history_of(table_of_ratings(4))
    fewer = dpals.Ratings.from_arrays(["ann"], [100], [3], rating_range=RANGE)
    blocks = dpals.write_blocks(fewer, tmp_path / "blocks")
    with pytest.raises(dpals.InputError, match=r"the history lacks 13 items of the model\. Make the history with"):
        evaluate(model, blocks, whole)
    with pytest.raises(dpals.InputError, match="the test data lacks 13 items of the model"):
        evaluate(model, whole, blocks)
    pairs = history_of(table_of_ratings(4), implicit=True)
    with pytest.raises(dpals.InputError, match="made for ratings, and the test data holds implicit feedback"):
        evaluate(model, whole, pairs)
