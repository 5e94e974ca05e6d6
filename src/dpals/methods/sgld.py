"""Stochastic gradient Langevin dynamics: the noise that privacy needs, used to sample from a posterior."""

from dpals.data.population import Population
from dpals.methods.base.parameters import FRACTION, POSITIVE, Within, parameter
from dpals.methods.shared.gradient_steps import Doubles, GradientMethod
from dpals.methods.shared.means import given_or, half_range
from dpals.model.factor_model import FactorModel
from dpals.release.mechanism import Mechanism


class SGLD(GradientMethod):
    """Langevin dynamics on item factors and biases (Liu, Wang & Smola 2015), with every step paid for.

    Item factors move along the noisy gradient of the log posterior. Noise of a gradient is what makes it private, and
    it is also what makes the sequence a sample of the posterior, if steps are as long as the noise demands: so the
    budget and the temperature set the length of the steps. Each user's gradient is clipped as a whole and each step is
    a release. The original promises an epsilon for one sample of the posterior itself, as if the sequence had
    converged; that promise is not established, and not made here.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    >>> model = dpals.SGLD(epsilon=5.0, delta=1e-5, rank=4, steps=5).fit(ratings)
    >>> model.privacy.epsilon <= 5.0
    True
    """

    average: float = parameter(
        "Share of the steps, the last ones, whose samples are averaged; 0 for only the last one.",
        FRACTION,
        default=0.5,
    )
    temperature: float = parameter(
        "1 samples the posterior; below, steps are shorter, and samples lie nearer its top.", POSITIVE, default=1.0
    )
    longest_step: float = parameter(
        "Steps are at most this long, in units of what Newton's method would take for an item that all users have: up "
        "to 2 is stable whatever the data, and twice that if no more than half of the users have any one item. With "
        "many users or a large budget there is less noise than such a step asks for: the samples are then colder than "
        "`temperature` says, and it is all but gradient descent with a prior.",
        POSITIVE,
        default=4.0,
    )
    noise_scale: float | None = parameter(
        "Standard deviation, before looking, of a rating around its prediction, in units of half the rating range; by "
        "default a unit, as for the clip.",
        Within(optional=True),
        default=None,
    )
    taste_scale: float | None = parameter(
        "Standard deviation, before looking, of an item's factors and bias: by default 0.3 units.",
        Within(optional=True),
        default=None,
    )

    def _fit(self, ratings: Population, mechanism: Mechanism) -> FactorModel:
        known = self._start(ratings, mechanism)
        noise = known.unit if self.noise_scale is None else self.noise_scale * half_range(ratings)
        variance, prior_variance = noise**2, given_or(self.taste_scale, 0.3 * known.unit) ** 2

        def move(gradients: Doubles, items: Doubles) -> Doubles:
            # A move of h / 2 times the gradient of the log posterior needs noise of variance h * temperature; what
            # the mechanism added to it is h / 2 * sigma / variance.
            length = 4 * self.temperature * (variance / mechanism.releases[-1].sigma) ** 2
            length = min(length, 2 * self.longest_step / (known.n_users / variance + 1 / prior_variance))
            result: Doubles = length / 2 * (gradients / variance - items / prior_variance)
            return result

        # Users' vectors have variance 1, so their ridge is the variance of a rating.
        return self._descend(ratings, mechanism, known, variance, move)
