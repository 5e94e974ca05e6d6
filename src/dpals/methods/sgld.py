"""Stochastic gradient Langevin dynamics: the noise that privacy needs, used to sample from a posterior."""

from typing import ClassVar

from dpals.data.ratings import Ratings
from dpals.methods.base.parameters import COUNT, POSITIVE, SHARE, WHOLE, OneOf, Within
from dpals.methods.shared.gradient_steps import Doubles, GradientMethod
from dpals.methods.shared.means import half_range, release_mean_and_number
from dpals.model.factor_model import FactorModel
from dpals.release.mechanism import Mechanism


class SGLD(GradientMethod):
    """Langevin dynamics on item factors and biases (Liu, Wang & Smola 2015), with every step paid for.

    Item factors move along the noisy gradient of the log posterior. Noise of a gradient is what makes it private, and
    it is also what makes the sequence a sample of the posterior, if steps are as long as the noise demands: so the
    budget and the temperature set the length of the steps. Each user's gradient is clipped as a whole and each step is
    a release. The original promises an epsilon for one sample of the posterior
    itself, as if the sequence had converged; that promise is not established, and not made here.

    Parameters
    ----------
    epsilon, delta
        The privacy budget.
    rank
        Length of the vectors.
    steps
        Number of releases.
    temperature
        1 samples the posterior; below, steps are shorter, and samples lie nearer its top.
    longest_step
        Steps are at most this long, in units of what Newton's method would take for an item that all users have: up to
        2 is stable whatever the data, and twice that where no item is with more than half of the users. With many users
        or a large budget there is less noise than such a step asks for: the samples are then colder than `temperature`
        says, and it is all but gradient descent with a prior.
    gradient_clip
        Largest norm of a user's gradient of half the squared error.
    noise_scale, taste_scale
        Standard deviations, before looking, of a rating around its prediction, in units of half the rating range, and
        of an item's factors and bias.
    average
        Share of the steps, the last ones, whose samples are averaged; 0 for the last one alone.
    user_bias_ridge
        Ridge of the users' biases.
    start_scale
        Standard deviation of the first, random factors.
    mean_share
        Share of the budget for the global mean.
    seed
        Chooses the random factors. It is public.
    insecure_seed
        Repeatable noise, for tests and simulated data: the model is then not private and says so.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    >>> model = dpals.SGLD(epsilon=5.0, delta=1e-5, rank=4, steps=5).fit(ratings)
    >>> model.privacy.epsilon <= 5.0
    True
    """

    constraints: ClassVar[dict[str, Within | OneOf]] = {
        "rank": COUNT,
        "steps": COUNT,
        "temperature": POSITIVE,
        "longest_step": POSITIVE,
        "gradient_clip": POSITIVE,
        "noise_scale": POSITIVE,
        "taste_scale": POSITIVE,
        "average": Within(high=1, closed=True),
        "user_bias_ridge": POSITIVE,
        "start_scale": POSITIVE,
        "mean_share": SHARE,
        "seed": WHOLE,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        rank: int = 4,
        steps: int = 20,
        temperature: float = 1.0,
        longest_step: float = 4.0,
        gradient_clip: float = 5.0,
        noise_scale: float = 0.35,
        taste_scale: float = 0.3,
        average: float = 0.5,
        user_bias_ridge: float = 5.0,
        start_scale: float = 0.1,
        mean_share: float = 0.01,
        seed: int = 0,
        insecure_seed: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rank = rank
        self.steps = steps
        self.temperature = temperature
        self.longest_step = longest_step
        self.gradient_clip = gradient_clip
        self.noise_scale = noise_scale
        self.taste_scale = taste_scale
        self.average = average
        self.user_bias_ridge = user_bias_ridge
        self.start_scale = start_scale
        self.mean_share = mean_share
        self.seed = seed
        self.insecure_seed = insecure_seed

    def _fit(self, ratings: Ratings, mechanism: Mechanism) -> FactorModel:
        mean_cost, rest = mechanism.budget.split(self.mean_share, 1 - self.mean_share)
        mean, n_users = release_mean_and_number(mechanism, ratings, mean_cost)
        variance = (self.noise_scale * half_range(ratings)) ** 2

        def move(gradients: Doubles, items: Doubles) -> Doubles:
            # A move of h / 2 times the gradient of the log posterior needs noise of variance h * temperature; what
            # the mechanism added to it is h / 2 * sigma / variance.
            length = 4 * self.temperature * (variance / mechanism.releases[-1].sigma) ** 2
            length = min(length, 2 * self.longest_step / (n_users / variance + 1 / self.taste_scale**2))
            result: Doubles = length / 2 * (gradients / variance - items / self.taste_scale**2)
            return result

        # Users' vectors have variance 1, so their ridge is the variance of a rating.
        return self._descend(ratings, mechanism, rest, mean, variance, move)
