"""Published values are equal only where they agree to the last bit."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import dpals
from dpals.audit.published_values import comparable, published_values
from dpals.audit.simulated_data import odd_users


@dataclass
class Pair:
    one: object
    other: object


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.array([0.0]), np.array([-0.0])),
        (np.array([1.0]), np.array([1], np.float32)),
        (np.zeros((2, 1)), np.zeros((1, 2))),
        (np.array(["a"], object), np.array(["b"], object)),
        (Pair(1, np.ones(2)), Pair(1, np.zeros(2))),
        ({"a": [np.ones(2)]}, {"a": [np.zeros(2)]}),
        (csr_array([[1.0, 0.0]]), csr_array([[0.0, 1.0]])),
        (1, 1.0),
        ((1, 2), (1, 3)),
    ],
)
def test_values_that_differ_are_told_apart_and_copies_are_not(one, other):
    import copy

    assert comparable(one) != comparable(other)
    assert comparable(one) == comparable(copy.deepcopy(one))


def test_all_that_a_method_publishes_or_keeps_is_there():
    method = dpals.ItemMean(1.0).fit(odd_users(12, 40, implicit=False).ratings())
    method.found_ = 3
    values = published_values(method, [method.model_])
    assert {"item_biases", "privacy", "found_", "epsilon", "models of the steps"} <= values.keys()
    assert any(name.startswith("the file ") for name in values)
    assert values == published_values(method, [method.model_])
    other = replace(method.model_, item_biases=np.nextafter(method.model_.item_biases, np.float32(9)))
    assert values != published_values(method, [other])


def test_what_the_audit_itself_sets_is_left_out():
    search = dpals.PrivateSearch(dpals.ItemMean(), {"residual_bound": [0.1]}, 1.0, tries=2)
    search.fit(odd_users(12, 40, implicit=False).ratings())
    search.choose = search.mechanism_class = lambda *_: None
    assert not {"choose", "mechanism_class"} & published_values(search, []).keys()
