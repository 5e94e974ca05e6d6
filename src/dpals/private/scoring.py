"""How well a model serves each user, from the user's own ratings: what users contribute to its score.

A user's gain lies between -1/2 and 1/2. The same users count for every candidate, so shifting all gains makes no
difference between candidates; 1/2 is the smallest possible bound. Each gain depends on one user's ratings and the model
alone, to the last bit.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import remembered
from dpals.data.ratings import Ratings
from dpals.kernels.hits import count_hits
from dpals.kernels.rows import entry_products, row_sums
from dpals.private.frank_wolfe import FrankWolfeProblem
from dpals.private.means import user_means
from dpals.private.sampling import Split, split_parts
from dpals.private.user_vectors import LeastSquaresProblem, LogisticProblem
from dpals.release.contribution import Contribution, Pattern

Floats = NDArray[np.float32]

LARGEST_GAIN = 0.5
PLACES = 20
"""How many recommendations count, in implicit feedback."""


class Serving(NamedTuple):
    """What a model serves users with: the problem whose solution is a user's vector, and the item side of scores."""

    problem: LeastSquaresProblem | LogisticProblem | FrankWolfeProblem
    global_mean: float
    items: Floats

    def search_vectors(self, ratings: Ratings) -> Floats:
        """One row per user, whose inner product with a row of `items` is the score: see `FactorModel`."""
        ones = np.ones(ratings.n_users, np.float32)
        return np.column_stack([self.problem.solve(ratings), ones, user_means(ratings, self.global_mean)])


class ScoredSplit(NamedTuple):
    """A model, and how each user's ratings are split into those it is given and those it has to predict."""

    model: Serving
    split: Split


known_and_hidden = remembered(split_parts)
"""The two parts of a split, which all tries of a search share."""


def known_part(ratings: Ratings, public: Split) -> Ratings:
    """The ratings that a model is given."""
    return known_and_hidden(ratings, public)[0]


def score_contribution(ratings: Ratings, public: ScoredSplit) -> Contribution:
    """Each user's gain on the ratings held back; 0 for users without any."""
    known, hidden = known_and_hidden(ratings, public.split)
    return gain_contribution(public.model, known, hidden)


def gain_contribution(model: Serving, known: Ratings, hidden: Ratings) -> Contribution:
    """Each user's gain; 0 for users without hidden ratings.

    For ratings it is 1/2 less the mean squared error on the hidden ratings, in units of the squared half range and at
    most 1. For implicit feedback it is the share of the hidden items among the first recommendations, less 1/2.

    Parameters
    ----------
    model
        How the model serves users.
    known, hidden
        The users' ratings that the model was given, and those that it has to predict.
    """
    counts = np.diff(hidden.indptr)
    if hidden.values is None or hidden.rating_range is None:
        gains = 1 - misses(model, known, hidden)
    else:
        low, high = hidden.rating_range
        errors = squared_errors(model, known, hidden) / ((high - low) / 2) ** 2
        gains = 1 - np.minimum(errors / np.maximum(counts, 1), 1)
    return Contribution(Pattern.one_item(len(counts)), np.where(counts > 0, gains - LARGEST_GAIN, 0.0))


def misses(model: Serving, known: Ratings, hidden: Ratings) -> NDArray[np.float64]:
    """For each user the share of the hidden items that are not among the first recommendations; 1 for users without."""
    targets, seen = (hidden.indptr, hidden.indices), (known.indptr, known.indices)
    hits = count_hits(model.search_vectors(known), model.items, PLACES, targets, seen)
    result: NDArray[np.float64] = 1 - hits / np.clip(np.diff(hidden.indptr), 1, PLACES)
    return result


def squared_errors(model: Serving, known: Ratings, hidden: Ratings) -> NDArray[np.float64]:
    """For each user the sum of the squared errors on the hidden ratings, predicted from those known."""
    assert hidden.values is not None
    assert hidden.rating_range is not None
    predicted = entry_products(hidden.indptr, hidden.indices, model.search_vectors(known), model.items)
    errors = np.clip(predicted, *hidden.rating_range).astype(np.float64) - hidden.values
    return row_sums(hidden.indptr, errors**2)
