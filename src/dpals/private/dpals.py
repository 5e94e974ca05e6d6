"""What users contribute to DPALS: counts of the items, and the sums of an item step."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import remembered
from dpals.data.ratings import Ratings
from dpals.private.clipping import clip_rows
from dpals.private.means import clipped_entries, pattern_of
from dpals.private.sampling import adaptive_weights, least_counted, on_items, uniform_sample
from dpals.private.user_vectors import LeastSquaresProblem
from dpals.release.contribution import Contribution, Pattern

Doubles = NDArray[np.float64]


class Sampling(NamedTuple):
    """Which of a user's ratings take part in training, and how they weigh: public.

    Parameters
    ----------
    frequent
        Items that are trained on.
    rule
        ``adaptive``: at most `at_most`, those of the items with the lowest counts; ``uniform``: as many, by a hash;
        ``weights``: all, with weights in proportion to counts^-exponent.
    counts
        Of the frequent items, released.
    """

    frequent: NDArray[np.bool_]
    rule: Literal["adaptive", "uniform", "weights"]
    counts: Doubles
    at_most: int = 0
    seed: int = 0
    exponent: float = 0.0


class Sample(NamedTuple):
    """The ratings that take part, with a weight for each."""

    ratings: Ratings
    weights: Doubles


class UniformSampling(NamedTuple):
    """At most so many ratings of each user, chosen by a hash with this seed."""

    at_most: int
    seed: int


class ItemStep(NamedTuple):
    """What users must know in one item step: which ratings take part, their own problem, and all bounds."""

    sampling: Sampling
    problem: LeastSquaresProblem
    row_clip: float
    mean: float
    entry_clip: float
    with_unseen: bool


@remembered
def sample(ratings: Ratings, public: Sampling) -> Sample:
    """The ratings of frequent items that take part in training."""
    trained = on_items(ratings, public.frequent)
    if public.rule == "weights":
        return Sample(trained, adaptive_weights(trained, public.counts, public.exponent))
    if public.rule == "adaptive":
        chosen = least_counted(trained, public.counts, public.at_most)
    else:
        chosen = uniform_sample(trained, public.at_most, public.seed)
    return Sample(chosen, np.ones(chosen.n_ratings))


def uniform_count_contribution(ratings: Ratings, public: UniformSampling) -> Contribution:
    """1 for each rating of a uniform sample. Norm at most the root of their number."""
    return _counts(uniform_sample(ratings, *public))


def sample_count_contribution(ratings: Ratings, public: Sampling) -> Contribution:
    """1 for each rating that takes part in training."""
    return _counts(sample(ratings, public).ratings)


def item_step_contributions(ratings: Ratings, public: ItemStep) -> tuple[Contribution, ...]:
    """The users' clipped vectors for the Gram matrices, the same times clipped ratings, and, if asked for, all users.

    A user's vector comes from all of the user's ratings; only those of the sample contribute.
    """
    users = clip_rows(public.problem.solve(ratings), public.row_clip)
    chosen, weights = sample(ratings, public.sampling)
    pattern, values = pattern_of(chosen), clipped_entries(chosen, public.mean, public.entry_clip)
    sums = Contribution(pattern, weights, users), Contribution(pattern, weights * values, users)
    if not public.with_unseen:
        return sums
    return *sums, Contribution(Pattern.one_item(len(users)), np.ones(len(users)), users)


def _counts(ratings: Ratings) -> Contribution:
    return Contribution(pattern_of(ratings), np.ones(ratings.n_ratings))
