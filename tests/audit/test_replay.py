"""Level 1 as a whole: sound methods pass, and methods that leak around the mechanism do not."""

import logging
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import dpals
from dpals.audit import replay
from dpals.audit.replay import audit_replay
from dpals.kernels.threads import thread_count
from dpals.release.contribution import Contribution, Pattern, Query


@pytest.fixture(autouse=True)
def smaller_data(monkeypatch):
    monkeypatch.setattr(replay, "_LARGE_DATA", ((200, 60, 1.0, 1), (20, 150, 1.0, 2)))


def failures(method, **arguments):
    level = audit_replay(method, n_users=6, **arguments)
    return [check.question for check in level.checks if check.verdict == "failed"]


@pytest.mark.parametrize("method", [dpals.ItemMean(1.0), dpals.UserMean()])
def test_sound_methods_pass(method):
    """And so does every other one: tests/privacy/test_methods.py."""
    assert failures(method) == []


def test_someone_comes_close_to_the_bound():
    """Or the comparison could hardly notice a bound that is too large."""
    level = audit_replay(dpals.ItemMean(1.0), n_users=12)
    assert 0.9 < level.facts["largest_share_of_bound"] <= 1
    assert level.facts["neighbours"] == 24 + 8
    assert level.facts["releases"] == 3


class Prints(dpals.ItemMean):
    def _fit(self, ratings, mechanism):
        print(f"training on {ratings.n_users} users", file=sys.stderr)
        return super()._fit(ratings, mechanism)


class Warns(dpals.ItemMean):
    def _fit(self, ratings, mechanism):
        warnings.warn(f"{ratings.n_users} users are few", stacklevel=1)
        return super()._fit(ratings, mechanism)


class Remembers(dpals.ItemMean):
    def _fit(self, ratings, mechanism):
        self.mean_rating = float(np.mean(ratings.values))
        return super()._fit(ratings, mechanism)


class OverwritesAnArgument(dpals.ItemMean):
    def _fit(self, ratings, mechanism):
        model = super()._fit(ratings, mechanism)
        self.residual_bound = float(ratings.values.std())
        return model


class RemembersAMatrix(dpals.ItemMean):
    """In an object that does not show its numbers when it is printed."""

    def _fit(self, ratings, mechanism):
        self.counts_ = csr_array(np.bincount(ratings.indices, minlength=ratings.n_items)[None, :])
        return super()._fit(ratings, mechanism)


class LogsElsewhere(dpals.ItemMean):
    def _fit(self, ratings, mechanism):
        logging.getLogger("my company").warning("%d ratings", ratings.n_ratings)
        return super()._fit(ratings, mechanism)


class BehavesWhenSeeded(dpals.ItemMean):
    def _fit(self, ratings, mechanism):
        model = super()._fit(ratings, mechanism)
        return model if self.insecure_seed else replace(model, global_mean=float(ratings.values.mean()))


class ListensToTheNext(dpals.GlobalMean):
    """A user counts only if the next one is there, and within the bound."""

    def _fit(self, ratings, mechanism):
        numbers = np.full(ratings.n_users, 0.1)
        names = np.array([int(str(user).split()[-1]) for user in ratings.users])
        kept = np.diff(names, append=-1) == 1
        contribution = Contribution(Pattern.one_item(int(kept.sum())), numbers[kept])
        mechanism.release(Query("numbers", 1, sensitivity=1.0), contribution, 2**40)
        return dpals.UserMean()._fit(ratings, mechanism)


class ShowsSteps(dpals.ItemMean):
    """Its last model is sound; the one that callbacks see while it trains is not."""

    def _fit(self, ratings, mechanism):
        model = super()._fit(ratings, mechanism)
        exact = dpals.FactorModel(model.items, model.item_factors, model.item_biases, float(ratings.values.mean()), 0.0)
        self._after_step(1, 1, exact)
        return model


class RoundsByThreads(dpals.GlobalMean):
    """With several threads, what a user contributes depends on how many users there are, in the last bit."""

    def _fit(self, ratings, mechanism):
        rounded = thread_count() > 1 and ratings.n_users % 2
        numbers = np.full(ratings.n_users, np.nextafter(0.1, 1) if rounded else 0.1)
        mechanism.release(
            Query("numbers", 1, sensitivity=1.0), Contribution(Pattern.one_item(ratings.n_users), numbers), 2**40
        )
        return dpals.UserMean()._fit(ratings, mechanism)


class SpendsWhatItLikes(dpals.GlobalMean):
    """The cost of its second release tells something about the first."""

    def _fit(self, ratings, mechanism):
        contribution = Contribution(Pattern.one_item(ratings.n_users), np.ones(ratings.n_users))
        whole = mechanism.budget.cost
        first = mechanism.release(Query("number of users", 1, sensitivity=1.0), contribution, whole // 4)
        part = 2 + round(1e6 * first[0, 0]) % 7
        mechanism.release(Query("once more", 1, sensitivity=1.0), contribution, whole // part)
        return dpals.UserMean()._fit(ratings, mechanism)


@pytest.mark.filterwarnings("ignore:.* users are few")
@pytest.mark.parametrize(
    ("method", "noticed_by"),
    [
        (Prints, "what is logged or printed"),
        (Warns, "what is logged or printed"),
        (Remembers, "the published model"),
        (OverwritesAnArgument, "the published model"),
        (RemembersAMatrix, "the published model"),
        (LogsElsewhere, "what is logged or printed"),
        (BehavesWhenSeeded, "the published model"),
        (ListensToTheNext, "what a user contributes"),
        (ShowsSteps, "the published model"),
        (RoundsByThreads, "large data sets add up"),
        (SpendsWhatItLikes, "costs that depend on releases"),
    ],
)
def test_leaks_around_the_mechanism_are_noticed(method, noticed_by):
    assert any(question.startswith(noticed_by) for question in failures(method(1.0)))


def test_costs_may_depend_on_releases_if_the_whole_is_promised():
    class PromisesTheWhole(SpendsWhatItLikes):
        adaptive_costs = True

    assert not any(question.startswith("costs") for question in failures(PromisesTheWhole(1.0)))
