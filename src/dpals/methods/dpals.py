"""Private alternating least squares: Algorithms 1 and 2 of the paper and its heuristics, errors corrected."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpals.data.population import Population
from dpals.errors import InputError
from dpals.kernels.item_solve import solve_psd
from dpals.methods.base.estimator import PrivateEstimator
from dpals.methods.base.parameters import COUNT, NOT_NEGATIVE, POSITIVE, SHARE, WHOLE, Within, parameter
from dpals.methods.paper_settings import private_settings
from dpals.methods.shared.covariance import LARGEST_COVARIANCE
from dpals.methods.shared.means import release_mean
from dpals.methods.shared.power_iteration import noisy_power_iteration, private_pca
from dpals.model.factor_model import FactorModel
from dpals.private.covariance import SampledRows
from dpals.private.dpals import (
    ItemStep,
    Sampling,
    UniformSampling,
    item_step_contributions,
    sample_count_contribution,
    uniform_count_contribution,
)
from dpals.private.user_vectors import LeastSquaresProblem
from dpals.public.initial_factors import random_factors
from dpals.public.item_step import count_ridges, frequent_size, most_frequent, orthonormalised, projected, unpacked
from dpals.release.accounting import COST_BITS, Budget, mu_of
from dpals.release.accounting import epsilon as epsilon_of
from dpals.release.contribution import Query
from dpals.release.mechanism import Mechanism

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Costs:
    """What a release of each kind costs: before training counts, a mean and a start; in each step three sums."""

    counts: int
    mean: int
    start: int
    gram: int
    moment: int
    unseen: int


class DPALS(PrivateEstimator):
    """Private alternating least squares (Chien et al. 2021).

    Each step solves for every user's vector from the user's own ratings and the public item factors, clips it,
    publishes for every item a noisy Gram matrix and a noisy right-hand side through the mechanism, and solves for the
    item factors. Pre-processing, paid for as well: noisy counts decide which items are frequent enough to train
    on and which of a user's ratings take part.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    >>> model = dpals.DPALS(epsilon=5.0, delta=1e-5, rank=4).fit(ratings)
    >>> model.item_factors_.shape
    (100, 4)
    """

    epsilon: float | None = parameter(  # type: ignore[assignment]
        "The privacy budget. None to give the noise scales below, in which case the statement says what they cost.",
        default=1.0,
        kw_only=False,
    )
    rank: int = parameter("r, length of the vectors.", COUNT, default=16)
    steps: int = parameter("T, number of item updates.", COUNT, default=2)
    ridge: float = parameter("lambda of the items.", POSITIVE, default=80.0)
    user_ridge: float | None = parameter(
        "lambda of the users; None for the same as the items'.", Within(optional=True), default=5.0
    )
    user_exponent: float = parameter(
        "nu: a user with n ratings has the ridge lambda (n / typical_count)^nu.", NOT_NEGATIVE, default=1.0
    )
    item_exponent: float = parameter(
        "mu: an item with released count c has the ridge lambda c^mu over the mean of these powers.",
        NOT_NEGATIVE,
        default=0.5,
    )
    typical_count: float = parameter(
        "A public guess at how many ratings a user has (Z of the paper, which would leak).", POSITIVE, default=100.0
    )
    unseen_weight: float | None = parameter(
        "lambda_0: penalty on predictions for all pairs. By default 0.1 for implicit feedback and 0 for ratings.",
        Within(closed=True, optional=True),
        default=None,
    )
    row_clip: float = parameter("Gamma_u: longest user vector in the item step.", POSITIVE, default=0.7)
    entry_clip: float | None = parameter(
        "Gamma_M: largest centred rating in the item step; half the rating range if not given.",
        Within(optional=True),
        default=None,
    )
    ratings_per_user: int = parameter("k: how many of a user's ratings take part in the item step.", COUNT, default=50)
    sampling: Literal["adaptive", "uniform"] = parameter(
        "Which ones: ``adaptive``, those of the least counted frequent items, or ``uniform``.", default="adaptive"
    )
    frequent_fraction: float = parameter(
        "beta: share of the items, by released counts, that is trained on. The others are predicted by the user's own "
        "mean.",
        Within(low=1e-9, high=1, closed=True),
        default=0.25,
    )
    noise_ratio: float = parameter(
        "sigma_G / sigma_g: how much more noise the Gram matrices get, in units of their bounds.",
        POSITIVE,
        default=2.0,
    )
    count_share: float = parameter(
        "Share of the budget for the counts, both together, if they are needed.", SHARE, default=0.1
    )
    mean_share: float = parameter("Share of the budget for the global mean, if it is needed.", SHARE, default=0.005)
    unseen_share: float = parameter(
        "Share of a step's cost for the sum of all users' matrices (K of the paper), if it is needed.",
        SHARE,
        default=0.05,
    )
    gram_noise: float | None = parameter(
        "sigma_G, with ``epsilon=None``. As for the next two, its unit is the bound of one rating, as in the paper.",
        Within(optional=True),
        default=None,
    )
    moment_noise: float | None = parameter("sigma_g, with ``epsilon=None``.", Within(optional=True), default=None)
    count_noise: float | None = parameter("sigma_p, with ``epsilon=None``.", Within(optional=True), default=None)
    centre: bool = parameter("Whether to subtract a released global mean from ratings.", default=True)
    project: bool = parameter(
        "Whether to project noisy Gram matrices onto the positive semi-definite cone. Without it results are bad.",
        default=True,
    )
    orthonormal: bool = parameter(
        "Whether to make the item factors orthonormal after each step, as in the theory.", default=False
    )
    start: Literal["random", "power", "pca"] = parameter(
        "Where item factors start: ``random``; ``power``, by noisy power iteration (Algorithm 3); or ``pca``, by "
        "private PCA, for small catalogues.",
        default="random",
    )
    start_share: float = parameter("Share of the budget for a start that is not random.", SHARE, default=0.2)
    start_scale: float = parameter(
        "Root mean square of the item factors that training starts from. User vectors are in inverse proportion to it, "
        "and should come out near row_clip.",
        POSITIVE,
        default=0.3,
    )
    seed: int = parameter("Chooses these factors and the uniform sample. It is public.", WHOLE, default=0)

    def _check(self, ratings: Population) -> None:
        trained = frequent_size(ratings.n_items, self.frequent_fraction)
        if self.rank > (ratings.n_items if self.start == "random" else trained):
            raise InputError(f"rank {self.rank} is more than the number of items to train on")
        if self.start == "pca" and trained > LARGEST_COVARIANCE:
            raise InputError(f"private PCA publishes a matrix of items by items: {trained} items are too many")
        if self.epsilon is None:
            noises = (self.gram_noise, self.moment_noise, self.count_noise)
            if None in noises or self.start != "random":
                raise ValueError("epsilon=None needs gram_noise, moment_noise and count_noise, and a random start")
        if self.count_share + self.mean_share + self.start_share >= 1:
            raise ValueError("count_share, mean_share and start_share must leave something of the budget")

    def _fit(self, ratings: Population, mechanism: Mechanism) -> FactorModel:
        costs = self._costs(ratings, mechanism.budget)
        mean = release_mean(mechanism, ratings, costs.mean) if costs.mean else 0.0
        counts, frequent = self._frequent(ratings, mechanism, costs)
        sampling = self._sampling(frequent, counts[frequent])
        ridges = self._ridges(ratings, sampling, mechanism, costs)
        factors = np.zeros((ratings.n_items, self.rank))
        factors[frequent] = self.start_scale * self._start(ratings, frequent, mean, mechanism, costs)
        model = self._model(ratings, factors, frequent, mean)
        for step in range(1, self.steps + 1):
            problem = model.user_problem()
            assert isinstance(problem, LeastSquaresProblem)
            public = ItemStep(sampling, problem, self.row_clip, mean, self._entry_clip(ratings), costs.unseen > 0)
            factors[frequent] = self._item_step(ratings, public, ridges, mechanism, costs, step)
            model = self._model(ratings, factors, frequent, mean)
            self._after_step(step, self.steps, model)
        return model

    def _frequent(self, ratings: Population, mechanism: Mechanism, costs: Costs) -> tuple[Doubles, NDArray[np.bool_]]:
        """Released counts of all items, and which items are frequent."""
        if not costs.counts or (self.frequent_fraction == 1 and self.sampling == "uniform"):
            return np.ones(ratings.n_items), np.ones(ratings.n_items, bool)
        uniform = UniformSampling(self.ratings_per_user, self.seed)
        queries = [(Query("item counts", ratings.n_items, self._weight_norm()), costs.counts)]
        counts = mechanism.release_together(ratings, uniform_count_contribution, uniform, queries)[0][:, 0]
        return counts, most_frequent(counts, self.frequent_fraction)

    def _sampling(self, frequent: NDArray[np.bool_], counts: Doubles) -> Sampling:
        """Which ratings take part: at most k for each user."""
        return Sampling(frequent, self.sampling, counts, self.ratings_per_user, self.seed)

    def _ridges(self, ratings: Population, sampling: Sampling, mechanism: Mechanism, costs: Costs) -> Doubles:
        """The ridge of each frequent item, from how many of the ratings that take part are its own."""
        counts = sampling.counts
        if costs.counts and self.item_exponent != 0:
            query = Query("counts of the sampled ratings", len(counts), self._weight_norm())
            released = mechanism.release_together(ratings, sample_count_contribution, sampling, [(query, costs.counts)])
            counts = released[0][:, 0]
        return count_ridges(self.ridge, counts, self.item_exponent)

    def _item_step(
        self, ratings: Population, public: ItemStep, ridges: Doubles, mechanism: Mechanism, costs: Costs, step: int
    ) -> Doubles:
        """New factors of the frequent items, from sums over users that went through the mechanism."""
        rank, n_items, norm = self.rank, len(ridges), self._weight_norm()
        vector, entry = self.row_clip, public.entry_clip
        gram_query = Query(f"Gram matrices, step {step}", n_items, norm * vector**2, "symmetric", rank, norm)
        moment_query = Query(
            f"right-hand sides, step {step}", n_items, norm * vector * entry, "vector", rank, norm * entry
        )
        queries = [(gram_query, costs.gram), (moment_query, costs.moment)]
        if public.with_unseen:
            query = Query(f"sum of all users, step {step}", 1, vector**2, "symmetric", rank)
            queries.append((query, costs.unseen))
        gram, moment, *all_users = mechanism.release_together(ratings, item_step_contributions, public, queries)
        everyone = None
        if all_users:
            everyone = self._unseen_weight(ratings) * projected(unpacked(all_users[0][0], rank))
        factors = solve_psd(gram, moment, ridges, everyone, project=self.project)
        return orthonormalised(factors) if self.orthonormal else factors

    def _model(self, ratings: Population, factors: Doubles, frequent: NDArray[np.bool_], mean: float) -> FactorModel:
        return FactorModel(
            items=ratings.items,
            item_factors=factors.astype(np.float32),
            item_biases=np.zeros(ratings.n_items, np.float32),
            global_mean=mean,
            user_ridge=(self.user_ridge or self.ridge) / self.typical_count**self.user_exponent,
            user_exponent=self.user_exponent,
            unseen_weight=self._unseen_weight(ratings),
            is_trained=frequent.copy(),
            rating_range=ratings.rating_range,
        )

    def _unseen_weight(self, ratings: Population) -> float:
        if self.unseen_weight is None:
            return 0.1 if ratings.is_implicit else 0.0
        return self.unseen_weight

    def _entry_clip(self, ratings: Population) -> float:
        if ratings.rating_range is None:
            return 1.0
        low, high = ratings.rating_range
        return (high - low) / 2 if self.entry_clip is None else self.entry_clip

    def _releases(self, ratings: Population) -> tuple[int, bool, bool]:
        """How many counts are released, whether the mean is, and whether the sum of all users is."""
        first = self.frequent_fraction < 1 or self.sampling == "adaptive"
        second = self.item_exponent != 0
        return first + second, self.centre and not ratings.is_implicit, self._unseen_weight(ratings) > 0

    def _budget(self, ratings: Population) -> Budget:
        if self.epsilon is not None:
            return Budget(self.epsilon, self.delta)
        costs, n_counts = self._costs_of_noise(ratings), self._releases(ratings)[0]
        total = n_counts * costs.counts + costs.mean + self.steps * (costs.gram + costs.moment + costs.unseen)
        return Budget(epsilon_of(mu_of(total), self.delta) * (1 + 1e-9), self.delta)

    def _costs(self, ratings: Population, budget: Budget) -> Costs:
        if self.epsilon is None:
            return self._costs_of_noise(ratings)
        n_counts, with_mean, with_unseen = self._releases(ratings)
        shares = (
            self.count_share if n_counts else 0.0,
            self.mean_share if with_mean else 0.0,
            0.0 if self.start == "random" else self.start_share,
        )
        counts, mean, start, training = budget.split(*shares, 1 - sum(shares))
        step = training // self.steps
        unseen = int(step * self.unseen_share) if with_unseen else 0
        gram = int((step - unseen) / (1 + self.noise_ratio**2))
        return Costs(counts // max(n_counts, 1), mean, start, gram, step - unseen - gram, unseen)

    def _costs_of_noise(self, ratings: Population) -> Costs:
        """Costs of the noise scales given: a release with sigma per rating, of k ratings, costs k / sigma^2."""
        n_counts, with_mean, with_unseen = self._releases(ratings)
        k, norm = 2**COST_BITS, self._weight_norm() ** 2
        gram, moment, count = (
            0.0 if sigma is None else 1 / sigma**2 for sigma in (self.gram_noise, self.moment_noise, self.count_noise)
        )
        return Costs(
            counts=int(k * norm * count) if n_counts else 0,
            mean=int(k * count) if with_mean else 0,
            start=0,
            gram=int(k * norm * gram),
            moment=int(k * norm * moment),
            unseen=int(k * gram) if with_unseen else 0,
        )

    def _weight_norm(self) -> float:
        """Largest root of the sum of a user's squared weights in the item step."""
        return float(np.sqrt(self.ratings_per_user))

    def _start(
        self, ratings: Population, frequent: NDArray[np.bool_], mean: float, mechanism: Mechanism, costs: Costs
    ) -> Doubles:
        """Factors of the frequent items, of mean square 1."""
        n_items = int(frequent.sum())
        if self.start == "random":
            return random_factors(n_items, self.rank, self.seed)
        rows = SampledRows(frequent, self.ratings_per_user, mean, self._entry_clip(ratings), self.seed)
        if self.start == "power":
            factors = noisy_power_iteration(ratings, mechanism, costs.start, rows, rank=self.rank, steps=2)
        else:
            factors = private_pca(ratings, mechanism, costs.start, rows, rank=self.rank)
        scaled: Doubles = factors * np.sqrt(n_items)
        return scaled

    @classmethod
    def from_paper(cls, name: str, epsilon: float, **changes: Any) -> "DPALS":
        """The settings of one column of the paper's table of optimal parameters.

        The noise is that of the table. What it costs, with exact accounting and the errors of the paper
        corrected, is in the statement after fitting, and is not quite the epsilon of the column.

        Parameters
        ----------
        name
            ``ml-10m-top400``, ``ml-10m`` or ``ml-20m``.
        epsilon
            The column.
        changes
            Other arguments of `DPALS`.

        Examples
        --------
        >>> DPALS.from_paper("ml-10m", epsilon=5).gram_noise
        27.8
        """
        return cls(None, **{**private_settings(name, epsilon), **changes})
