import pickle

import numpy as np

import dpals
from dpals.data.population import remembered


def ratings():
    return dpals.Ratings.from_arrays([1, 2, 2], [5, 5, 6])


def test_ratings_in_memory_are_one_block_with_everyone():
    data = ratings()
    (block,) = data.blocks
    assert block.open() is data


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
