"""Methods that someone writes on top of the mechanism, sound ones and broken ones."""

import numpy as np
import pytest

import dpals
from dpals.methods.base.estimator import PrivateEstimator
from dpals.model.factor_model import FactorModel
from dpals.release.accounting import Budget
from dpals.release.contribution import Contribution, Pattern, Query
from dpals.release.mechanism import Mechanism
from dpals.testing import assert_private


class Counts(PrivateEstimator):
    """How many people rated each item, each person with the same weight in all."""

    def __init__(self, epsilon=1.0, delta=1e-5, *, insecure_seed=None):
        self.epsilon = epsilon
        self.delta = delta
        self.insecure_seed = insecure_seed

    def weights(self, ratings):
        counts = np.diff(ratings.indptr)
        return np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts)

    def release(self, ratings, mechanism, cost):
        contribution = Contribution(Pattern(ratings.indptr, ratings.indices, ratings.n_items), self.weights(ratings))
        return mechanism.release(Query("counts", ratings.n_items, sensitivity=1.0), contribution, cost)[:, 0]

    def model(self, ratings, biases):
        return FactorModel(ratings.items, np.zeros((ratings.n_items, 0)), biases, 0.0, 0.0)

    def _fit(self, ratings, mechanism):
        return self.model(ratings, self.release(ratings, mechanism, mechanism.budget.cost))


class Shares(Counts):
    """Divides by the number of people, which is private."""

    def _fit(self, ratings, mechanism):
        return self.model(ratings, self.release(ratings, mechanism, mechanism.budget.cost) / ratings.n_users)


class Normalised(Counts):
    """Weights that depend on everyone."""

    def weights(self, ratings):
        return np.full(ratings.n_ratings, 1 / np.sqrt(np.diff(ratings.indptr).max()))


class Frequent(Counts):
    """Leaves out items that nobody has, without asking the mechanism."""

    def _fit(self, ratings, mechanism):
        counts = self.release(ratings, mechanism, mechanism.budget.cost)
        counts[np.bincount(ratings.indices, minlength=ratings.n_items) == 0] = 0.0
        return self.model(ratings, counts)


class Twice(Counts):
    """Takes one of two releases out of the record."""

    def _fit(self, ratings, mechanism):
        self.release(ratings, mechanism, mechanism.budget.cost // 2)
        mechanism.releases.clear()
        return self.model(ratings, self.release(ratings, mechanism, mechanism.budget.cost // 2))


class Dear(Counts):
    """Spends more than it may."""

    def _fit(self, ratings, mechanism):
        self.release(ratings, mechanism, mechanism.budget.cost)
        return super()._fit(ratings, mechanism)


class Adaptive(Counts):
    """How many releases there are depends on who is there."""

    def _fit(self, ratings, mechanism):
        for _ in range(ratings.n_users % 2):
            self.release(ratings, mechanism, mechanism.budget.cost // 4)
        return self.model(ratings, self.release(ratings, mechanism, mechanism.budget.cost // 4))


class OwnMechanism(Counts):
    """Goes another way."""

    def fit(self, ratings, **_):
        mechanism = Mechanism(Budget(self.epsilon, self.delta))
        self.model_ = self._fit(ratings, mechanism)
        return self


class Unseeded(Counts):
    def __init__(self, epsilon=1.0, delta=1e-5):
        super().__init__(epsilon, delta)


def test_a_sound_method_passes():
    assert_private(Counts())
    assert_private(Counts(), implicit=True, levels=[1])


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (Shares, "failed +the published model depends on the data through releases only"),
        (Normalised, "failed +what a user contributes depends on nobody else"),
        (Frequent, "failed +the published model depends on the data through releases only"),
        (Twice, "failed +releases, ledger and statement agree"),
        (Dear, r"failed +the method can be trained\s+training ended with PrivacyBudgetExceeded"),
        (Adaptive, "failed +number, shape, bound, noise and cost of releases"),
    ],
)
def test_broken_methods_are_found_out(broken, complaint):
    with pytest.raises(AssertionError, match=complaint):
        assert_private(broken(), levels=[1])


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (OwnMechanism(), "makes a mechanism of its own"),
        (Unseeded(), "takes no insecure_seed"),
        (Counts(insecure_seed=3), "is not private, and says so"),
        (dpals.ALS(), "ALS is not private: it promises nothing"),
        ("pooled", "str is not private"),
    ],
)
def test_what_cannot_be_audited_is_refused_with_the_reason(subject, reason):
    with pytest.raises(dpals.InputError, match=reason):
        assert_private(subject)


def test_a_model_is_not_a_method():
    model = Counts().fit(dpals.simulate.movielens_like(100, 50, 20)).model_
    with pytest.raises(dpals.InputError, match="takes the method that trains models"):
        assert_private(model)
