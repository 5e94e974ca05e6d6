"""Private SVD against a covariance matrix and its eigenvectors, made with numpy."""

import numpy as np
import pytest

import dpals
from dpals.evaluation.metrics import rmse
from dpals.evaluation.splits import pairs, split_entries
from dpals.methods.shared.covariance import release_covariance
from dpals.private.covariance import Rows, RowsOf
from dpals.release.mechanism import Mechanism


@pytest.fixture(scope="module")
def split():
    return split_entries(dpals.simulate.movielens_like(6_000, 60, 25, seed=4))[::2]


def test_the_plain_form_has_the_eigenvectors_of_clipped_rows(split):
    train, _ = split
    method = dpals.DPSVD(5000.0, rank=3, form="plain", entry_clip=1.5, row_clip=3.0, insecure_seed=1).fit(train)
    rows = np.zeros((train.n_users, train.n_items))
    rows[train.rows, train.indices] = np.clip(train.values - 2.75, -1.5, 1.5)
    norms = np.linalg.norm(rows, axis=1)
    covariance = (rows * np.minimum(1, (3.0 / np.maximum(norms, 1e-9)) ** 2)[:, None]).T @ rows
    values, vectors = np.linalg.eigh(covariance)
    for k in range(3):
        found = method.item_factors_[:, k] / np.linalg.norm(method.item_factors_[:, k])
        assert abs(found @ vectors[:, -1 - k]) > 0.999
    lengths = np.linalg.norm(method.item_factors_, axis=0)
    np.testing.assert_allclose(lengths**2 / lengths[0] ** 2, values[:-4:-1] / values[-1], rtol=0.02)
    assert method.model_.global_mean == 2.75
    assert [release.purpose for release in method.privacy.releases] == ["covariance of the items"]


def test_a_user_far_beyond_the_clip_counts_as_one_at_it():
    ratings = dpals.Ratings.from_arrays(
        np.repeat(np.arange(200), 20), np.tile(np.arange(20), 200), np.full(4000, 5.0), rating_range=(1, 5)
    )
    mechanism = Mechanism(dpals.Budget(1e4, 1e-5), insecure_seed=1)
    rows = RowsOf(lambda ratings, _: Rows(ratings, np.full(4000, 100.0)), None, longest=1.0)
    released = release_covariance(mechanism, "test", ratings, rows, 20, mechanism.budget.cost)
    np.testing.assert_allclose(released, 200 / 20, rtol=0.02)


def test_directions_help_where_there_is_budget_and_vanish_where_there_is_none(split):
    train, test = split

    def score(method):
        return rmse(method.fit(train).predict(train, *pairs(test)), test.values)

    biases = score(dpals.PrivateBiases(50.0, insecure_seed=1))
    assert score(dpals.DPSVD(50.0, rank=4, insecure_seed=1)) < biases - 0.01
    poor = dpals.DPSVD(0.05, rank=4, insecure_seed=1).fit(train)
    assert not poor.item_factors_.any(), "eigenvalues that noise alone would have tell nothing"


def test_only_so_many_items_are_in_the_matrix(split):
    method = dpals.DPSVD(5.0, rank=2, most_items=20, insecure_seed=1).fit(split[0])
    shapes = [release.shape for release in method.privacy.releases]
    assert shapes[-1] == (1, 20 * 21 // 2)
    assert (method.item_factors_.any(axis=1)).sum() <= 20


def test_arguments_that_do_not_go_together(split):
    with pytest.raises(ValueError, match="leave something of the budget"):
        dpals.DPSVD(mean_share=0.5, bias_share=0.5).fit(split[0])
    with pytest.raises(dpals.InputError, match="rank 21"):
        dpals.DPSVD(rank=21, most_items=20).fit(split[0])
