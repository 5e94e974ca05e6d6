"""What the items that users rated say about them, whatever the ratings, and how their vectors depend on it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import remembered
from dpals.data.ratings import Ratings
from dpals.kernels.rows import row_norms
from dpals.private.user_vectors import SHORT_HISTORY, LeastSquaresProblem, expected_vectors, histories_of
from dpals.release.contribution import Contribution, Pattern

Doubles = NDArray[np.float64]

_JUST_BELOW = 1 - 1e-9  # so that rounding on the mechanism's grid does not scale a user down once more


class Histories(NamedTuple):
    """Features of the items, of which a user's history is a sum, and the largest squared norm of a history."""

    features: Doubles
    bound: float


@remembered
def histories(ratings: Ratings, public: Histories) -> Doubles:
    """The `histories_of` the users. Longer ones are scaled down to the bound."""
    found = histories_of(ratings, public.features)
    longest = np.sqrt(public.bound) * _JUST_BELOW
    result: Doubles = found * (longest / np.maximum(row_norms(found), longest))[:, None]
    return result


def _weights(ratings: Ratings) -> Doubles:
    """How much a user counts, from 0 to 1. A history of one item says no more than the item itself."""
    counts = np.diff(ratings.indptr)
    result: Doubles = np.maximum(counts - 1, 0) / (counts + SHORT_HISTORY)
    return result


def history_gram_contribution(ratings: Ratings, public: Histories) -> Contribution:
    """The user's history and weight, for the Gram matrix. Norm at most the bound."""
    return Contribution(Pattern.one_item(ratings.n_users), _weights(ratings), histories(ratings, public))


class HistoryFit(NamedTuple):
    """What is needed to see how users' vectors depend on their histories.

    `bound` is that of a user's norms of vector and history together, and `units` are those of the vector's coordinates.
    """

    histories: Histories
    bound: float
    units: Doubles

    @property
    def length(self) -> int:
        """Of a history."""
        return int(self.histories.features.shape[1])


def history_fit_contribution(
    ratings: Ratings, problem: LeastSquaresProblem, solved: NDArray[np.float32], public: HistoryFit
) -> Contribution:
    """Each coordinate of the user's history times the user's vector less what was expected. Norm at most the bound."""
    known, expected = histories(ratings, public.histories), expected_vectors(ratings, problem)
    vectors = (solved if expected is None else solved - expected) / public.units
    weights, largest = _weights(ratings), public.bound * _JUST_BELOW
    scales = largest / np.maximum(weights * row_norms(known) * row_norms(vectors), largest)
    coefficients = known * (weights * scales)[:, None]
    n_users, length = known.shape
    coordinates = np.tile(np.arange(length, dtype=np.int32), n_users)
    pattern = Pattern(length * np.arange(n_users + 1), coordinates, length)
    return Contribution(pattern, coefficients.ravel(), vectors)
