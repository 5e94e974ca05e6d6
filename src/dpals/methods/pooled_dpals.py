"""Our own method: pooled Gram matrices, one clip per user, many small steps whose evidence adds up."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpals.errors import InputError
from dpals.methods.biases import release_mean
from dpals.methods.constraints import check_arguments
from dpals.methods.estimator import PrivateEstimator
from dpals.methods.pooled_settings import CONSTRAINTS, StepCosts, rises_above, split_rest, suitable_rank
from dpals.model import FactorModel
from dpals.private.centering import offer_of_weights
from dpals.private.pooled import Bounds, Participants
from dpals.public.evidence import Evidence
from dpals.public.item_step import unpacked
from dpals.public.pooled import PooledGram, add_moments, bias_guesses, inverse_root, shared_features
from dpals.public.starting_points import random_factors
from dpals.ratings import Ratings
from dpals.release.contribution import Query
from dpals.release.mechanism import Door

Doubles = NDArray[np.float64]

_WIDEST = 20.0  # users whose weights add up to more count as this in pooled sums; about 400 ratings
_CONSTANT = 0.7  # the coordinate beside a user's vector that learns biases; vectors have unit variance
_START = 0.045  # root mean square of the first factors, as a share of half the rating range


@dataclass(frozen=True, eq=False)
class Catalogue:
    """What was released before the first step: all that the steps know about the items and users at large."""

    mean: float
    popularity: Doubles
    weights: Doubles
    weight_noise: float
    breadth: float


@dataclass(eq=False)
class Progress:
    """The model in training, and the evidence behind it. Everything in it is public."""

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

    Parameters
    ----------
    epsilon, delta
        The privacy budget.
    rank
        Length of the vectors. By default it is chosen from the released weights of the items, after the budget:
        `get_params` then shows the choice. 0 is a model of biases alone.
    steps
        Number of releases of right-hand sides.
    growth
        Each step may cost so many times what the one before cost: early ones only need to find the direction.
    weight_exponent
        a: a rating's weight is in proportion to the popularity of its item to the power -a.
    clip
        Largest contribution of a user, in units of what a typical user has to offer.
    noise_scale, taste_scale, bias_scale
        What is expected before looking, as standard deviations in units of half the rating range: of a rating
        around its prediction, of what tastes explain, and of item biases.
    user_bias_ridge
        Ratings worth of evidence that a user's own bias starts with.
    caution
        Where a step lies between Newton's method (0, unstable) and expectation maximisation (1, slow).
    fading, settling
        In the first `settling` of the steps the evidence about factors is multiplied by `fading` before each
        step, because users' vectors still change a lot.
    mean_share, weight_share
        Shares of the budget for the global mean, and for the items' popularity and weights.
    company_share, bias_share
        Shares of the rest for who rates what with whom, and for a first round of biases. The steps get what is left.
    gram_share
        Share of each step for what all items share.
    seed
        Chooses where factors start. It is public.
    insecure_seed
        Repeatable noise, for tests and simulated data: the model is then not private and says so.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    >>> model = dpals.PooledDPALS(epsilon=1.0, delta=1e-5).fit(ratings)
    >>> model.privacy.epsilon <= 1.0
    True
    """

    adaptive_costs = True
    rank_: int
    report_: str
    """What could be learned at this budget, in words. It comes from released numbers and is public."""

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        *,
        rank: int | None = None,
        steps: int = 10,
        growth: float = 1.15,
        weight_exponent: float = 0.3,
        clip: float = 0.5,
        noise_scale: float = 0.33,
        taste_scale: float = 0.2,
        bias_scale: float = 0.25,
        user_bias_ridge: float = 3.0,
        caution: float = 0.3,
        fading: float = 0.5,
        settling: float = 0.4,
        mean_share: float = 0.005,
        weight_share: float = 0.1,
        bias_share: float = 0.04,
        company_share: float = 0.25,
        gram_share: float = 0.03,
        seed: int = 0,
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rank = rank
        self.steps = steps
        self.growth = growth
        self.weight_exponent = weight_exponent
        self.clip = clip
        self.noise_scale = noise_scale
        self.taste_scale = taste_scale
        self.bias_scale = bias_scale
        self.user_bias_ridge = user_bias_ridge
        self.caution = caution
        self.fading = fading
        self.settling = settling
        self.mean_share = mean_share
        self.weight_share = weight_share
        self.bias_share = bias_share
        self.company_share = company_share
        self.gram_share = gram_share
        self.seed = seed
        self.insecure_seed = insecure_seed

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments; after `fit` with the rank that was chosen in place of None."""
        parameters = super().get_params(deep)
        if self.rank is None:
            parameters["rank"] = getattr(self, "rank_", None)
        return parameters

    def _check(self, ratings: Ratings) -> None:
        check_arguments(self, CONSTRAINTS)
        if ratings.rating_range is None:
            raise InputError("PooledDPALS needs ratings; this data is implicit feedback: use DPALS")
        if self.rank is not None and self.rank > ratings.n_items:
            raise InputError(f"rank {self.rank} is more than the number of items, {ratings.n_items:,}")
        if self.mean_share + self.weight_share >= 1 or self.company_share + self.bias_share >= 1:
            raise ValueError(
                "mean_share and weight_share, and company_share and bias_share, must each leave something of the budget"
            )

    def _fit(self, ratings: Ratings, door: Door) -> FactorModel:
        known, people, rest = self._catalogue(ratings, door)
        n_items, rank = ratings.n_items, self.rank
        if rank is None:
            rank = min(suitable_rank(known.weights, known.weight_noise, door.budget), n_items)
        can_learn = rises_above(known.weights, known.weight_noise)
        # Without weights nothing counts as evidence, and the model stays at users' means.
        weights = np.maximum(known.weights, 0.0) * can_learn
        costs = split_rest(rest, rank, self.steps, self.growth, self.company_share, self.bias_share, self.gram_share)

        features = self._features(people, weights, rank, door, costs.company)
        half_range = _half_range(ratings)
        progress = Progress(
            factors=np.zeros((n_items, 0)),
            biases=np.zeros(n_items),
            about_factors=Evidence.none(weights, 0),
            about_biases=Evidence.none(weights, 1),
            prior=np.zeros((0, 0)),
            features=features,
        )
        self._step(people, known, progress, door, costs.biases, "biases alone")
        progress.factors = _START * half_range * features[:, :rank]
        progress.about_factors = Evidence.none(weights, rank)
        progress.prior = np.eye(rank) * (self.taste_scale * half_range) ** 2 / max(rank, 1)
        for number, cost in enumerate(costs.steps, 1):
            if number <= self.settling * self.steps:
                progress.about_factors.fade(self.fading)
            self._step(people, known, progress, door, cost, f"step {number}")
        self.rank_ = rank
        self.report_ = _report(rank, weights, can_learn)
        return self._model(ratings, progress, known.mean)

    def _catalogue(self, ratings: Ratings, door: Door) -> tuple[Catalogue, Participants, int]:
        """What is known before training proper, the users with the weights that follow, and the rest of the budget."""
        parts = (0.46 * self.weight_share, 0.46 * self.weight_share, 0.08 * self.weight_share)
        shares = (self.mean_share, *parts, 1 - self.mean_share - self.weight_share)
        mean_cost, popularity_cost, weight_cost, breadth_cost, rest = door.budget.split(*shares)
        mean = release_mean(door, ratings, mean_cost)
        query = Query("popularity of the items", ratings.n_items, 1.0)
        released = door.release(query, offer_of_weights(ratings), popularity_cost)[:, 0]
        popularity = np.maximum(released, door.releases[-1].sigma)
        people = Participants.of(ratings, popularity**-self.weight_exponent, _WIDEST)

        query = Query("weights of the items", ratings.n_items, 1.0)
        weights = door.release(query, people.offer_of_weights(), weight_cost)[:, 0]
        weight_noise = door.releases[-1].sigma
        query = Query("breadth of all users", 1, 1.0)
        breadth = door.release(query, people.offer_of_breadths(), breadth_cost)[0, 0]
        breadth = max(float(breadth), door.releases[-1].sigma)
        return Catalogue(mean, popularity, weights, weight_noise, breadth), people, rest

    def _features(
        self, people: Participants, weights: Doubles, rank: int, door: Door, costs: tuple[StepCosts, ...]
    ) -> Doubles:
        """What kind of people rate an item, whatever they think of it: one row of features per item.

        Items that the same people rate tend to be liked by the same people. This is a subspace iteration, from
        random features, on who rated what.
        """
        n_items, size = len(weights), -(-3 * rank // 2)
        features = random_factors(n_items, size, self.seed)
        for number, cost in enumerate(costs, 1):
            centred = features - weights @ features / max(float(weights.sum()), 1e-9)
            centred *= (weights > 0)[:, None]
            bound = float(size)  # features have variance 1 where they are known, and a user's weights length 1
            query = Query(f"spread of company, round {number}", 1, bound, "symmetric", size)
            spread = door.release(query, people.offer_of_spread(people.company(centred), bound), cost.gram)[0]
            # Turned on the public side: a product over all users could round one user's row by who else is there.
            whitened = people.company(centred @ inverse_root(unpacked(spread, size)))
            query = Query(f"company of the items, round {number}", n_items, 1.0, "vector", size)
            moments = door.release(query, people.offer_of_directions(whitened), cost.moments)
            features = shared_features(moments, weights, door.releases[-1].sigma)
        return features

    def _step(
        self, people: Participants, known: Catalogue, progress: Progress, door: Door, cost: StepCosts, name: str
    ) -> None:
        """Release residual times vector for every item, and learn from it."""
        half_range, rank = _half_range(people.ratings), progress.factors.shape[1]
        # A user's vector has unit variance in each direction, of which about half is known to the user.
        length = np.sqrt(rank / 2 + _CONSTANT**2)
        bounds = Bounds(
            moments=self.clip * length * self.noise_scale * half_range,
            gram=length**2 / 2,
            covariance=0.3 * np.sqrt(rank),
        )
        problem = self._model(people.ratings, progress, known.mean).user_problem()
        offers = people.step_offers(problem, rank, _CONSTANT, bounds)

        query = Query(f"Gram matrix of all users, {name}", 1, bounds.gram, "symmetric", rank + 1)
        gram = door.release(query, offers.gram, cost.gram)[0]
        covariance = np.zeros(0)
        if rank:
            query = Query(f"uncertainty of all users, {name}", 1, bounds.covariance, "vector", rank * (rank + 1) // 2)
            covariance = door.release(query, offers.covariance, cost.covariance)[0]
        pooled = PooledGram.of(gram, covariance, known.breadth, _CONSTANT)
        query = Query(
            f"right-hand sides, {name}",
            len(known.weights),
            bounds.moments,
            "vector",
            rank + 1,
            coefficient_norm=bounds.moments / length,
        )
        moments = door.release(query, offers.moments, cost.moments)
        noise = door.releases[-1].sigma
        self._learn_biases(progress, known, moments[:, rank], pooled.scale * _CONSTANT, noise, half_range)
        if rank:
            add_moments(progress.about_factors, moments[:, :rank], progress.factors, pooled, noise, self.caution)
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
        half_range: float,
    ) -> None:
        variance = (self.bias_scale * half_range) ** 2
        evidence = progress.about_biases
        observed = moments + evidence.weights * response * progress.biases
        evidence.add(observed[:, None], np.array([[response]]), noise)
        progress.biases = bias_guesses(evidence, known.popularity, variance, known.weight_noise)

    def _model(self, ratings: Ratings, progress: Progress, mean: float) -> FactorModel:
        return FactorModel(
            items=ratings.items,
            item_factors=progress.factors.astype(np.float32),
            item_biases=progress.biases.astype(np.float32),
            global_mean=mean,
            user_ridge=(self.noise_scale * _half_range(ratings)) ** 2,
            user_bias_ridge=self.user_bias_ridge,
            rating_range=ratings.rating_range,
        )


def _report(rank: int, weights: Doubles, can_learn: bool) -> str:
    if not can_learn:
        return (
            "Nothing could be learned about items: at this epsilon the noise hides which items are rated at all. "
            "Predictions are users' own means, drawn a little toward the global mean."
        )
    return f"Learned biases and {rank} factors; {np.mean(weights > 0):.0%} of the items have weight to learn from."


def _half_range(ratings: Ratings) -> float:
    assert ratings.rating_range is not None
    low, high = ratings.rating_range
    return (high - low) / 2
