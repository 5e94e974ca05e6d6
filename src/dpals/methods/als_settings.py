"""What ALS is trained with, and how ridges and rank are chosen where the caller gives none.

A rule gives the ridge to begin with. Short trainings with ridges around it then predict ratings they are not given.
Everything is in units of the data, so ratings on another scale give the same predictions on that scale. Nothing here is
private.
"""

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import Population
from dpals.data.ratings import Ratings
from dpals.model.factor_model import FactorModel
from dpals.private.sampling import Split, share_of_users

_FIRST_RIDGE = 0.6  # in units of the norm of the noise; what is best for ratings of many shapes lies around it
_RIDGE_RATIO, _BIAS_RIDGE_RATIO, _RANK_RATIO = 0.75, 0.5, 0.6
_LIST_RATIO = 0.4  # of ridges and weights of what was not seen
_STEPS, _RANK_STEPS = 4, 8  # of trials; lower ranks are worse at first
_RANK_MATTERS = 0.9  # only where factors take off more of the error of biases does the ridge not make up for the rank
_MOST_TRIALS = 6
_LEAST_GAIN = 3e-4  # of the error, relative, for which trials go on
_LONGEST_STEP = 1 / 64
_LEAST_RIDGE = 3e-4  # in units of the first; equations in single precision need some
_FEWEST_RATINGS, _ENOUGH_RATINGS = 20, 2_000  # to choose anything; to choose by one split
_MOST_SPLITS = 5
_HELD_OUT = 0.1
SCORED_LISTS = 8_000
"""Users, about, whose lists are looked at: all items are ranked for each of them."""
_LEAST_KNOWN = 4  # items of these users: from fewer, hardly more can be found than what is popular
_SPLIT_SEED = 0x414C53  # splits of a caller, who has other seeds, must be independent of this one


class Settings(NamedTuple):
    """What a training is given, in the notation of `ALS`."""

    rank: int
    steps: int
    ridge: float
    bias_ridge: float | None
    """None for a model without biases."""
    user_exponent: float
    item_exponent: float
    unseen_weight: float
    seed: int
    unit: float = 1.0
    """What ratings, less their mean, are divided by for training. The ridge is for these."""

    def model(
        self,
        population: Population,
        factors: NDArray[np.float32],
        item_biases: NDArray[np.float32],
        mean: float,
        user_ridge: float,
    ) -> FactorModel:
        """The model with factors and item biases that were found for ratings divided by the unit."""
        return FactorModel(
            items=population.items,
            item_factors=factors.copy(),  # a model makes its arrays read-only
            item_biases=item_biases * np.float32(self.unit),
            global_mean=mean,
            user_ridge=user_ridge,
            user_exponent=self.user_exponent,
            user_bias_ridge=self.bias_ridge,
            unseen_weight=self.unseen_weight,
            rating_range=population.rating_range,
        )


class Errors(NamedTuple):
    """Of predictions: the sum of their squares, or of the shares of users' items that lists miss, and the number."""

    total: float
    number: int


class Training(Protocol):
    """Ratings, in memory or in blocks, that models can be trained on."""

    @property
    def n_ratings(self) -> int: ...
    @property
    def mean_counts(self) -> tuple[float, float]:
        """The mean numbers of ratings of the users, and of the items, that have any."""
        ...

    def models(self, settings: Settings) -> Iterator[FactorModel]:
        """The model after each step."""
        ...

    def split(self, split: Split) -> "tuple[Training, Callable[[FactorModel], Errors]]":
        """The first part, to train on, and what a model that is given it makes of the second."""
        ...


def choose(training: Training, first: Settings, *, rank_is_free: bool, bias_ridge_is_free: bool) -> Settings:
    """Settings with the ridges and the rank, and in the unit, that predict best what was held out.

    First models of biases alone are tried. The error of the best is the unit: it estimates the noise of the ratings.
    A matrix of such noise has a spectral norm of about the root of the mean number of entries in a row plus that in a
    column, and the ridge takes off singular values: so a share of this is the first ridge, around which others are
    tried. Then come lower ranks. What is not free is as in `first`, and so is the unit if there is nothing to learn it
    from.
    """
    first = first._replace(ridge=_FIRST_RIDGE * sum(map(math.sqrt, training.mean_counts)))
    if training.n_ratings < _FEWEST_RATINGS:
        return first
    error = _trials(training)
    biases = first._replace(rank=0, steps=_STEPS)
    if biases.bias_ridge is not None and bias_ridge_is_free:
        biases = _best(error, biases, "bias_ridge", _BIAS_RIDGE_RATIO)
    unit = error(biases)
    if unit == 0:  # ratings are constant
        return first
    least = _LEAST_RIDGE * first.ridge
    chosen = _best(error, biases._replace(rank=first.rank, unit=unit), "ridge", _RIDGE_RATIO, least)
    if rank_is_free and error(chosen) < _RANK_MATTERS * unit:
        lower = _best_rank(error, chosen._replace(steps=_RANK_STEPS))
        if lower.rank < chosen.rank:
            chosen = _best(error, lower, "ridge", _RIDGE_RATIO, least)
    return chosen._replace(steps=first.steps)


def choose_for_lists(training: Training, first: Settings, *, weight_is_free: bool) -> Settings:
    """Settings with the ridge, and the weight of what was not seen, whose lists find most of what was held out."""
    if training.n_ratings < _FEWEST_RATINGS:
        return first
    error = _trials(training)
    both = "ridge unseen_weight" if weight_is_free else "ridge"
    chosen = _best(error, first._replace(steps=_STEPS), both, _LIST_RATIO)
    if weight_is_free:
        chosen = _best(error, chosen, "ridge", _LIST_RATIO)
        chosen = _best(error, chosen, "unseen_weight", _LIST_RATIO)
    return chosen._replace(steps=first.steps)


def with_lists(known: Ratings, hidden: Ratings, share: float) -> tuple[Ratings, Ratings]:
    """The same of the users whose lists are looked at: a share of those with enough known items and some hidden."""
    asked = share_of_users(known, share) & (np.diff(known.indptr) >= _LEAST_KNOWN) & (np.diff(hidden.indptr) > 0)
    return known.take_users(asked), hidden.take_users(asked)


def _trials(training: Training) -> Callable[[Settings], float]:
    """From settings to the root of the mean error on a tenth that is held out; on several, if ratings are few."""
    number = min(max(_ENOUGH_RATINGS // training.n_ratings, 1), _MOST_SPLITS)
    parts = [training.split(Split((1 - _HELD_OUT, _HELD_OUT), _SPLIT_SEED + k)) for k in range(number)]

    @cache
    def error(settings: Settings) -> float:
        found = []
        for known, errors_of in parts:
            *_, model = known.models(settings)
            found.append(errors_of(model))
        return math.sqrt(sum(errors.total for errors in found) / max(sum(errors.number for errors in found), 1))

    return error


def _best(
    error: Callable[[Settings], float], settings: Settings, names: str, ratio: float, least: float = 0.0
) -> Settings:
    """One number, or several, changed for the smallest error: down in steps of a ratio while that helps, or else up.

    Steps downward are longer where the error falls fast, as it does if ratings have little noise.
    """
    first, step = settings, ratio
    for _ in range(_MOST_TRIALS - 1):
        changed = settings._replace(**{name: max(getattr(settings, name) * step, least) for name in names.split()})
        gain = _gain(error, settings, changed)
        if gain > _LEAST_GAIN:
            settings, step = changed, step if step > 1 else max(min(ratio, (1 - gain) ** 8), _LONGEST_STEP)
        elif step < ratio:
            step = min(math.sqrt(step), ratio)
        elif step == ratio and settings == first:
            step = 1 / ratio
        else:
            break
    return settings


def _best_rank(error: Callable[[Settings], float], settings: Settings) -> Settings:
    """The rank goes down while that helps."""
    while settings.rank > 1:
        lower = settings._replace(rank=int(settings.rank * _RANK_RATIO))
        if _gain(error, settings, lower) <= _LEAST_GAIN:
            break
        settings = lower
    return settings


def _gain(error: Callable[[Settings], float], settings: Settings, changed: Settings) -> float:
    """How much of the error a change takes away."""
    before = error(settings)
    return 1 - error(changed) / before if before else 0.0
