import pickle

import numpy as np

import dpals
from dpals.data.population import remembered, user_ids
from dpals.evaluation.splits import split_entries


def ratings():
    return dpals.Ratings.from_arrays([1, 2, 2], [5, 5, 6])


def test_few_ratings_in_memory_are_one_block_with_everyone():
    data = ratings()
    (block,) = data.blocks
    assert block.open() is data


def test_many_ratings_in_memory_are_views_in_several_blocks(monkeypatch):
    monkeypatch.setattr("dpals.data.ratings._RATINGS_PER_BLOCK", 10)
    rng = np.random.default_rng(1)
    users, items = np.nonzero(rng.random((30, 9)) < rng.random((30, 1)))
    data = dpals.Ratings.from_arrays(users, items)
    parts = [block.open() for block in data.blocks]
    assert len(parts) > 5
    assert len({block.name for block in data.blocks}) == len(parts)
    assert np.concatenate([part.users for part in parts]).tolist() == data.users.tolist()
    assert np.concatenate([part.indices for part in parts]).tolist() == data.indices.tolist()
    assert all(np.shares_memory(part.indices, data.indices) for part in parts)
    assert [block.open() for block in data.blocks] == parts, "they stay the same, and remember"


def test_the_ids_of_all_users(tmp_path):
    blocks = dpals.write_blocks(ratings(), tmp_path, ratings_per_block=1)
    for population in (ratings(), blocks, split_entries(blocks)[1]):
        assert sorted(user_ids(population)) == [1, 2]


def test_the_last_result_is_remembered_for_the_same_values_and_block():
    calls = []

    @remembered
    def total(block, public):
        calls.append(public)
        return public * block.n_ratings

    data, values = ratings(), np.array([1, 2])
    assert total(data, values).tolist() == total(data, values).tolist() == [3, 6]
    assert len(calls) == 1
    assert total(data, np.array([5, 5])).tolist() == [15, 15], "other values"
    assert total(ratings(), values).tolist() == [3, 6], "another block"
    assert total(data, values).tolist() == [3, 6], "only the last values are remembered"
    assert len(calls) == 4


def test_parts_of_the_ratings_remember_nothing_of_the_whole():
    data = ratings()
    remembered(lambda block, _: block.n_ratings)(data, "values")
    assert data.memory
    assert not data.take_users(slice(0, 1)).memory
    assert not data.keep(np.array([True, True, False])).memory


def test_what_is_remembered_is_not_sent_to_another_process():
    data = ratings()
    remembered(lambda block, _: block.n_ratings)(data, "values")
    sent = pickle.loads(pickle.dumps(data))
    assert sent.memory == {}
    assert np.array_equal(sent.indices, data.indices)
