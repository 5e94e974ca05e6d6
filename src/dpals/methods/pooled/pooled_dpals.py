"""Our own method: pooled Gram matrices, one clip per user, many small steps whose evidence adds up."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.methods.base.estimator import PrivateEstimator
from dpals.methods.base.parameters import POSITIVE, SHARE, WHOLE, Within, attribute, parameter
from dpals.methods.pooled.budget import (
    BIAS_SHARE,
    FIRST_SHARE,
    GROWTH,
    StepCosts,
    first_shares,
    rises_above,
    split_rest,
    suitable_rank,
)
from dpals.methods.pooled.implicit import ChoiceSettings, train_choices
from dpals.methods.pooled.releases import (
    Catalogue,
    release_catalogue,
    release_features,
    release_step,
    release_weights,
)
from dpals.methods.shared.means import half_range, release_mean
from dpals.model.factor_model import FactorModel
from dpals.private.pooled import Participants
from dpals.private.user_vectors import LeastSquaresProblem
from dpals.public.evidence import Evidence
from dpals.public.pooled import add_moments, bias_guesses
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]

_START = 0.045  # root mean square of the first factors, as a share of half the rating range
_CONSTANT = 1.6  # the coordinate beside a user's vector that learns biases
_MORE_WEIGHT = 0.15  # share of the rest that goes to weights of items where there is nothing but biases to learn
DAMPING = 0.3  # where a step lies between Newton's method (0, unstable) and expectation maximisation (1, slow)
SETTLING = 0.4  # share of the steps, the first ones, in which users' vectors still change a lot
FADING = 0.5  # what evidence about factors is multiplied by before each of these steps
_STEPS = {"ratings": 10, "choices": 4}
_WEIGHT_EXPONENT = {"ratings": 0.3, "choices": 0.15}


@dataclass(eq=False)
class Progress:
    """The model in training, and the evidence behind it. Everything in it is public."""

    mean: float
    factors: Doubles
    biases: Doubles
    about_factors: Evidence
    about_biases: Evidence
    prior: Doubles
    features: Doubles


class PooledDPALS(PrivateEstimator):
    """Private matrix completion in which items share what their own data could not pay for.

    Users fit their vectors to their own ratings, and each adds to every item residual times vector, with weights
    that favour rare items and one clip of the whole contribution. Every item's Gram matrix is taken as its
    released weight times one matrix that all items share, so that nearly all of the budget goes to the right-hand
    sides. Before that, some rounds tell what kind of people rate each item, whatever they think of it: items that
    the same people rate tend to be liked by the same people. Releases add up: item factors and biases are the best
    guess from all that was released, given how much noise it carries. Little budget or little data gives a model
    close to users' means, never a wild one.

    For implicit feedback the model is of the log odds that a user has an item, and a user's vector the most likely
    one. What is summed for an item are then the vectors of the people who have it. Little budget gives popularity.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    >>> model = dpals.PooledDPALS(epsilon=1.0, delta=1e-5).fit(ratings)
    >>> model.privacy.epsilon <= 1.0
    True
    """

    adaptive_costs = True
    rank: int | None = parameter(
        "Length of the vectors. By default it is chosen from the released weights of the items, after the budget: "
        "`get_params` then shows the choice. 0 is a model of biases alone, or of popularity.",
        Within(low=0, closed=True, whole=True, optional=True),
        default=None,
    )
    steps: int | None = parameter(
        "Number of releases of right-hand sides: by default 10 for ratings and 4 for implicit feedback.",
        Within(low=1, closed=True, whole=True, optional=True),
        default=None,
    )
    weight_exponent: float | None = parameter(
        "a: a rating's weight is in proportion to the popularity of its item to the power -a. By default 0.3 for "
        "ratings and 0.15 for implicit feedback.",
        Within(closed=True, optional=True),
        default=None,
    )
    clip: float = parameter(
        "Largest contribution of a user, in units of what a typical user has to contribute.", POSITIVE, default=0.5
    )
    noise_scale: float = parameter(
        "For ratings: standard deviation, before looking, of a rating around its prediction. As for the next two, its "
        "unit is half the rating range.",
        POSITIVE,
        default=0.33,
    )
    taste_scale: float = parameter(
        "For ratings: standard deviation, before looking, of what tastes explain.", POSITIVE, default=0.1
    )
    bias_scale: float = parameter(
        "For ratings: standard deviation, before looking, of item biases.", POSITIVE, default=0.25
    )
    user_bias_ridge: float = parameter(
        "For ratings: how many ratings' worth of evidence a user's own bias starts with.", POSITIVE, default=3.0
    )
    weight_share: float = parameter("Share of the budget for the items' popularity and weights.", SHARE, default=0.1)
    cooccurrence_share: float = parameter(
        "Share of the rest for who rates what with whom. The steps get what is left.", SHARE, default=0.25
    )
    gram_share: float = parameter("Share of each step for what all items share.", SHARE, default=0.03)
    seed: int = parameter("Chooses where factors start. It is public.", WHOLE, default=0)
    rank_: int = attribute()
    steps_: int = attribute()
    weight_exponent_: float = attribute()
    report_: str = attribute(
        "What could be learned at this budget, in words. It comes from released numbers and is public."
    )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments; after `fit` with what was chosen in place of None."""
        parameters = super().get_params(deep)
        for name in ("rank", "steps", "weight_exponent"):
            if parameters[name] is None:
                parameters[name] = getattr(self, f"{name}_", None)
        return parameters

    def _check(self, ratings: Ratings) -> None:
        if self.rank is not None and self.rank > ratings.n_items:
            raise InputError(f"rank {self.rank} is more than the number of items, {ratings.n_items:,}")
        if FIRST_SHARE + self.weight_share >= 1 or self.cooccurrence_share + BIAS_SHARE >= 1:
            raise ValueError("weight_share and cooccurrence_share must each leave something of the budget")

    def _fit(self, ratings: Ratings, mechanism: Mechanism) -> FactorModel:
        kind = "choices" if ratings.is_implicit else "ratings"
        self.steps_ = _STEPS[kind] if self.steps is None else self.steps
        self.weight_exponent_ = _WEIGHT_EXPONENT[kind] if self.weight_exponent is None else self.weight_exponent
        return self._fit_choices(ratings, mechanism) if ratings.is_implicit else self._fit_ratings(ratings, mechanism)

    def _fit_choices(self, ratings: Ratings, mechanism: Mechanism) -> FactorModel:
        settings = ChoiceSettings(
            rank=self.rank,
            steps=self.steps_,
            growth=GROWTH,
            weight_exponent=self.weight_exponent_,
            clip=self.clip,
            activity_share=FIRST_SHARE,
            weight_share=self.weight_share,
            company_share=self.cooccurrence_share,
            gram_share=self.gram_share,
            seed=self.seed,
        )
        model, weights = train_choices(ratings, settings, mechanism, self._after_step)
        self.rank_ = model.rank
        self.report_ = _report(
            model.rank, weights, "popularity", "All users are recommended the same items, in any order."
        )
        return model

    def _fit_ratings(self, ratings: Ratings, mechanism: Mechanism) -> FactorModel:
        mean_cost, *weight_costs, rest = mechanism.budget.split(*first_shares(FIRST_SHARE, self.weight_share))
        mean = release_mean(mechanism, ratings, mean_cost)
        known, people = release_catalogue(ratings, self.weight_exponent_, mechanism, weight_costs)
        n_items, rank = ratings.n_items, self.rank
        if rank is None:
            rank = min(suitable_rank(known.weights, known.weight_noise, mechanism.budget), n_items)
        if rank == 0:
            more, rest = int(_MORE_WEIGHT * rest), rest - int(_MORE_WEIGHT * rest)
            known = release_weights(people, known, mechanism, more)
        # Without weights nothing counts as evidence, and the model stays at users' means.
        weights = np.maximum(known.weights, 0.0) * rises_above(known.weights, known.weight_noise)
        costs = split_rest(rest, rank, self.steps_, GROWTH, self.cooccurrence_share, BIAS_SHARE, self.gram_share)

        features, _ = release_features(people, weights, -(-3 * rank // 2), self.seed, mechanism, costs.company)
        scale = half_range(ratings)
        progress = Progress(
            mean=mean,
            factors=np.zeros((n_items, 0)),
            biases=np.zeros(n_items),
            about_factors=Evidence.none(weights, 0),
            about_biases=Evidence.none(weights, 1),
            prior=np.zeros((0, 0)),
            features=features,
        )
        self._step(people, known, progress, mechanism, costs.biases, "biases alone")
        progress.factors = _START * scale * features[:, :rank]
        progress.about_factors = Evidence.none(weights, rank)
        progress.prior = np.eye(rank) * (self.taste_scale * scale) ** 2 / max(rank, 1)
        for number, cost in enumerate(costs.steps, 1):
            if number <= SETTLING * self.steps_:
                progress.about_factors.fade(FADING)
            self._step(people, known, progress, mechanism, cost, f"step {number}")
            self._after_step(number, self.steps_, self._model(ratings, progress))
        self.rank_ = rank
        self.report_ = _report(
            rank, weights, "biases", "Predictions are users' own means, drawn a little toward the global mean."
        )
        return self._model(ratings, progress)

    def _step(
        self,
        people: Participants,
        known: Catalogue,
        progress: Progress,
        mechanism: Mechanism,
        cost: StepCosts,
        name: str,
    ) -> None:
        """Release residual times vector for every item, and learn from it."""
        rank = progress.factors.shape[1]
        problem = self._model(people.ratings, progress).user_problem()
        assert isinstance(problem, LeastSquaresProblem)
        scale = self.clip * self.noise_scale * half_range(people.ratings)
        sums = release_step(people, problem, rank, _CONSTANT, scale, known.breadth, mechanism, cost, name)
        moments, pooled, noise = sums.moments, sums.pooled, sums.noise
        self._learn_biases(progress, known, moments[:, rank], pooled.scale * _CONSTANT, noise, people.ratings)
        if rank:
            add_moments(progress.about_factors, moments[:, :rank], progress.factors, pooled, noise, DAMPING)
            basis = pooled.whitening()
            progress.factors = progress.about_factors.posterior(progress.prior, progress.features) @ basis
            progress.about_factors.turn(basis)
            progress.prior = basis @ progress.prior @ basis

    def _learn_biases(
        self,
        progress: Progress,
        known: Catalogue,
        moments: Doubles,
        response: float,
        noise: float,
        ratings: Ratings,
    ) -> None:
        variance = (self.bias_scale * half_range(ratings)) ** 2
        evidence = progress.about_biases
        observed = moments + evidence.weights * response * progress.biases
        evidence.add(observed[:, None], np.array([[response]]), noise)
        progress.biases = bias_guesses(evidence, known.popularity, variance, known.weight_noise)

    def _model(self, ratings: Ratings, progress: Progress) -> FactorModel:
        return FactorModel(
            items=ratings.items,
            item_factors=progress.factors.astype(np.float32),
            item_biases=progress.biases.astype(np.float32),
            global_mean=progress.mean,
            user_ridge=(self.noise_scale * half_range(ratings)) ** 2,
            user_bias_ridge=self.user_bias_ridge,
            rating_range=ratings.rating_range,
        )


def _report(rank: int, weights: Doubles, simplest: str, otherwise: str) -> str:
    if not weights.any():
        return (
            f"Nothing could be learned about items: at this epsilon the noise hides which items users have. {otherwise}"
        )
    factors = f"{rank} factor{'' if rank == 1 else 's'}"
    return f"Learned {simplest} and {factors}; {np.mean(weights > 0):.0%} of the items have weight to learn from."
