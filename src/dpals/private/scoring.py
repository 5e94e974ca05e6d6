"""How well a model serves each user, from the user's own ratings: what users contribute to its score.

A user's gain lies between -1/2 and 1/2. The same users count for every candidate, so shifting all gains makes no
difference between candidates; 1/2 is the smallest possible bound. Each gain depends on one user's ratings and the model
alone, to the last bit.
"""

import numpy as np
from numpy.typing import NDArray

from dpals.data.ratings import Ratings
from dpals.kernels.hits import count_hits
from dpals.kernels.rows import entry_products, row_sums
from dpals.release.contribution import Contribution, Pattern

LARGEST_GAIN = 0.5
PLACES = 20
"""How many recommendations count, in implicit feedback."""


def score_contribution(
    users: NDArray[np.float32], items: NDArray[np.float32], known: Ratings, hidden: Ratings
) -> Contribution:
    """Each user's gain; 0 for users without hidden ratings.

    For ratings it is 1/2 less the mean squared error on the hidden ratings, in units of the squared half range and at
    most 1. For implicit feedback it is the share of the hidden items among the first recommendations, less 1/2.

    Parameters
    ----------
    users, items
        The two sides of the model, for the known ratings of the users.
    known, hidden
        The users' ratings that the model was given, and those that it has to predict.
    """
    counts = np.diff(hidden.indptr)
    if hidden.values is None or hidden.rating_range is None:
        targets, seen = (hidden.indptr, hidden.indices), (known.indptr, known.indices)
        gains = count_hits(users, items, PLACES, targets, seen) / np.clip(counts, 1, PLACES)
    else:
        low, high = hidden.rating_range
        predicted = np.clip(entry_products(hidden.indptr, hidden.indices, users, items), low, high)
        errors = (predicted.astype(np.float64) - hidden.values) / ((high - low) / 2)
        gains = 1 - np.minimum(row_sums(hidden.indptr, errors**2) / np.maximum(counts, 1), 1)
    return Contribution(Pattern.one_item(len(counts)), np.where(counts > 0, gains - LARGEST_GAIN, 0.0))
