"""Alternating least squares without privacy: the reference for everything else."""

from collections.abc import Iterator
from typing import Any

from dpals.data.population import Population
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.methods.als_in_blocks import InBlocks
from dpals.methods.als_in_memory import InMemory
from dpals.methods.als_settings import Settings, Training, choose, choose_for_lists
from dpals.methods.base.estimator import Estimator
from dpals.methods.base.parameters import COUNT, NOT_NEGATIVE, WHOLE, Within, attribute, parameter
from dpals.methods.paper_settings import reference_settings
from dpals.model.factor_model import FactorModel
from dpals.release.passes import Engine

_RANK, _RANK_FOR_LISTS, _RIDGE, _BIAS_RIDGE = 32, 64, 12.0, 5.0


class ALS(Estimator):
    """Matrix factorisation by alternating least squares, for ratings and for implicit feedback. Not private.

    Minimises, in the notation of the paper's appendix,

        |P(M - U V^T)|^2 + lambda_0 |U V^T|^2 + lambda sum_i n_i^nu / Z |U_i|^2 + lambda sum_j n_j^mu / Z' |V_j|^2

    where n_i and n_j are the numbers of ratings of user i and item j, and Z and Z' the means of n_i^nu and n_j^mu.

    Without a ridge, ratings of any scale and shape will do: the ridges are chosen by how well short trainings predict a
    tenth of the ratings, which they are not given. That takes up to twice as long as the training itself. For implicit
    feedback it is by how many held-out items are in users' lists of 20, which takes longer. With a ridge, nothing is
    chosen.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=1000, n_items=200, mean_ratings=30, seed=1)
    >>> model = dpals.ALS(rank=4, steps=5).fit(ratings)
    >>> model.item_factors_.shape
    (200, 4)
    """

    rank: int | None = parameter(
        "Length of the vectors: by default 32, and 64 for implicit feedback; at most as many as there are items.",
        Within(low=1, closed=True, whole=True, optional=True),
        default=None,
        kw_only=False,
    )
    steps: int = parameter("How often users and items are solved for.", COUNT, default=15, kw_only=False)
    ridge: float | None = parameter(
        "lambda: by default chosen by what predicts best what is held out.", Within(optional=True), default=None
    )
    user_exponent: float = parameter("nu: more ridge for users with many ratings.", NOT_NEGATIVE, default=0.7)
    item_exponent: float = parameter("mu: more ridge for items with many ratings.", NOT_NEGATIVE, default=0.7)
    unseen_weight: float | None = parameter(
        "lambda_0: penalty on predictions for all pairs. By default 0 for ratings. For implicit feedback it is chosen "
        "with the ridge, and 0.1 if the ridge is given.",
        Within(closed=True, optional=True),
        default=None,
    )
    biases: bool | None = parameter(
        "Whether items and users have biases beside their vectors. By default for ratings, not for implicit feedback.",
        default=None,
    )
    bias_ridge: float | None = parameter(
        "Ridge of the biases: by default chosen where `ridge` is chosen, and otherwise 5.",
        Within(optional=True),
        default=None,
    )
    seed: int = parameter("Chooses the random item factors that training starts from.", WHOLE, default=0)
    rank_: int = attribute("Length of the vectors.")
    ridge_: float = attribute("lambda, given or chosen.")
    unseen_weight_: float = attribute("lambda_0, given or chosen.")
    bias_ridge_: float | None = attribute("Ridge of the biases, given or chosen; None without biases.")

    @classmethod
    def from_paper(cls, name: str, **changes: Any) -> "ALS":
        """The settings of the paper's table that are not private, for ``ml-10m-top400``, ``ml-10m`` or ``ml-20m``.

        Examples
        --------
        >>> ALS.from_paper("ml-10m").rank
        128
        """
        return cls(**{**reference_settings(name), "biases": False, **changes})

    def _check(self, ratings: Population) -> None:
        if self.rank is not None and self.rank > ratings.n_items:
            raise InputError(f"rank {self.rank} is more than the number of items, {ratings.n_items}")

    def _train(self, ratings: Ratings) -> FactorModel:
        return self._trained_on(InMemory(ratings), ratings)

    def _train_in_blocks(self, population: Population, engine: Engine) -> FactorModel:
        return self._trained_on(InBlocks(population, engine), population)

    def _trained_on(self, training: Training, ratings: Population) -> FactorModel:
        settings = self._given(ratings)
        if self.ridge is None:
            settings = self._chosen(training, settings, ratings.rating_range)
        self.rank_, self.ridge_ = settings.rank, settings.ridge * settings.unit
        self.bias_ridge_, self.unseen_weight_ = settings.bias_ridge, settings.unseen_weight
        for number, latest in enumerate(self._models(training, settings), 1):
            self._after_step(number, self._n_steps(settings.rank), latest)
        return latest

    def _chosen(self, training: Training, first: Settings, rating_range: tuple[float, float] | None) -> Settings:
        """The settings with what predicts best what is held out, as far as the caller leaves it open."""
        if rating_range is None:
            return choose_for_lists(training, first, weight_is_free=self.unseen_weight is None)
        low, high = rating_range
        first = first._replace(unit=(high - low) / 4)
        return choose(training, first, rank_is_free=self.rank is None, bias_ridge_is_free=self.bias_ridge is None)

    def _given(self, ratings: Population) -> Settings:
        """The settings before anything is chosen."""
        biased = (not ratings.is_implicit) if self.biases is None else self.biases
        bias_ridge = _BIAS_RIDGE if self.bias_ridge is None else self.bias_ridge
        unseen_weight = 0.1 if ratings.is_implicit else 0.0
        return Settings(
            rank=self._default_rank(ratings) if self.rank is None else self.rank,
            steps=self.steps,
            ridge=_RIDGE if self.ridge is None else self.ridge,
            bias_ridge=bias_ridge if biased else None,
            user_exponent=self.user_exponent,
            item_exponent=self.item_exponent,
            unseen_weight=unseen_weight if self.unseen_weight is None else self.unseen_weight,
            seed=self.seed,
        )

    def _default_rank(self, ratings: Population) -> int:
        return min(_RANK_FOR_LISTS if ratings.is_implicit else _RANK, ratings.n_items)

    def _models(self, training: Training, settings: Settings) -> Iterator[FactorModel]:
        """The model after each step."""
        return training.models(settings)

    def _n_steps(self, rank: int) -> int:  # noqa: ARG002, methods whose stages depend on it need it
        return self.steps
