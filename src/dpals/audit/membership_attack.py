"""The membership attack: how well a published model fits a user, for an attacker who knows that user's ratings."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpals.audit.simulated_data import RANGE
from dpals.data.ratings import Ratings
from dpals.kernels.hashing import hashed_uniform
from dpals.methods.base.estimator import PrivateEstimator
from dpals.model.factor_model import FactorModel
from dpals.release import accounting, selection
from dpals.release.noise import NoiseStream
from dpals.statement.record import Statement

Doubles = NDArray[np.float64]

NO_PRIVACY = 1000.0
"""The epsilon of the twin without privacy. It needs less than a hundredth of the noise of epsilon 1."""


@dataclass(frozen=True)
class Promise:
    """A statement, read at other values of delta than its own.

    It promises more than one pair of epsilon and delta: a mu, of the run or of each try of a search, from which there
    follows an epsilon for every delta.
    """

    statement: Statement

    def epsilon_at(self, delta: float) -> float:
        """The epsilon that it promises at this delta."""
        chosen, mu = self.statement.selection, self.statement.mu
        if mu is not None:
            return accounting.epsilon(mu, delta)
        assert chosen is not None
        return selection.epsilon(chosen.mu, delta, selection.tries_distribution(chosen.distribution, chosen.tries))

    def at_own_delta(self, epsilon: float, delta: float) -> float:
        """The epsilon, at the statement's delta, of a promise of this kind that has `epsilon` at `delta`."""
        chosen, own = self.statement.selection, self.statement.delta
        if epsilon == 0:
            return 0.0
        if chosen is None:
            return accounting.epsilon(accounting.mu(epsilon, delta), own)
        tries = selection.tries_distribution(chosen.distribution, chosen.tries)
        return selection.epsilon(selection.mu(epsilon, delta, tries), own, tries)

    def limit(self, false_alarms: float) -> float:
        """Largest share of members that an attack with this rate of false alarms may recognise."""
        mu = self.statement.mu
        if mu is None:
            return accounting.general_attack_power(self.statement.epsilon, self.statement.delta, false_alarms)
        return accounting.attack_power(mu, false_alarms)


def canary_ratings(canaries: int, items: NDArray[np.int64], n_items: int, each: int, seed: int) -> Any:
    """Users who rate `each` random items out of `items`, as a sparse matrix: half with the best rating, half the worst.

    All of them rate as high on the whole, so that a good fit to one has no other reason than having been trained on.
    """
    from scipy.sparse import csr_array

    canary = np.arange(canaries)[:, None]
    lottery = hashed_uniform(seed, canary, np.arange(len(items))[None, :])
    chosen = np.argpartition(lottery, each - 1, axis=1)[:, :each]
    order = np.argsort(hashed_uniform(seed + 1, canary, chosen), axis=1)
    chosen = np.take_along_axis(chosen, order, axis=1)
    values = np.broadcast_to(np.where(np.arange(each) < each // 2, *RANGE), chosen.shape)
    columns = items[chosen]
    rows = np.repeat(np.arange(canaries), each)
    return csr_array((values.ravel(), (rows, columns.ravel())), shape=(canaries, n_items))


def toss_coins(number: int) -> NDArray[np.bool_]:
    """Fair coins that nobody can predict."""
    return (NoiseStream().words(number) & np.uint64(1)).astype(bool)


def to_ratings(matrix: Any, implicit: bool) -> Ratings:
    """A sparse matrix of users by items as a method takes it."""
    return Ratings.from_csr(matrix, implicit=True) if implicit else Ratings.from_csr(matrix, rating_range=RANGE)


def train(estimator: PrivateEstimator, ratings: Ratings) -> FactorModel:
    """What a copy of the estimator publishes."""
    return copy.deepcopy(estimator).fit(ratings).model_


def without_privacy(estimator: PrivateEstimator) -> PrivateEstimator:
    """The same method with so large an epsilon that there is hardly any noise."""
    given_noise = {name: None for name in estimator.get_params() if name.endswith("_noise")}
    return copy.deepcopy(estimator).set_params(**given_noise, epsilon=NO_PRIVACY)


def membership_scores(model: FactorModel, users: Ratings) -> Doubles:
    """How well the model fits each user's own ratings, given all of these: the larger, the better.

    Minus the mean squared error; in implicit feedback, how far the user's items score above the mean of all items.
    """
    user_side, item_side = model.two_sides(users)
    rows = users.rows
    scores = np.einsum("nk,nk->n", user_side[rows], item_side[users.indices], dtype=np.float64)
    if users.values is None:
        fits = scores - (user_side @ item_side.mean(axis=0))[rows]
    else:
        fits = -((scores - users.values) ** 2)
    return np.bincount(rows, fits, users.n_users) / np.maximum(np.diff(users.indptr), 1)


def count_correct_guesses(scores: Doubles, is_in: NDArray[np.bool_], each: int) -> int:
    """Correct guesses, if the `each` highest scores are guessed to be in and the `each` lowest to be out.

    Examples
    --------
    >>> count_correct_guesses(np.array([0.1, 0.9, 0.3, 0.8]), np.array([False, True, True, False]), each=1)
    2
    """
    order = np.argsort(scores, kind="stable")
    return int(np.sum(is_in[order[len(order) - each :]]) + np.sum(~is_in[order[:each]]))


def roc(scores: Doubles, is_in: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Members and others among the highest 0, 1, 2, ... scores.

    Examples
    --------
    >>> [counts.tolist() for counts in roc(np.array([0.1, 0.9, 0.3]), np.array([False, True, False]))]
    [[0, 1, 1, 1], [0, 0, 1, 2]]
    """
    falling = is_in[np.argsort(-scores, kind="stable")]
    members = np.concatenate([[0], np.cumsum(falling)])
    return members, np.arange(len(falling) + 1) - members
