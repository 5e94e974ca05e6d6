"""Global mean, item biases and user offsets: the simplest useful private model."""

from dpals.data.population import Population
from dpals.methods.base.estimator import PrivateEstimator, needs_ratings
from dpals.methods.base.parameters import COUNT, POSITIVE, parameter
from dpals.methods.pooled.pooled_dpals import PooledDPALS
from dpals.model.factor_model import FactorModel
from dpals.release.mechanism import Mechanism


class PrivateBiases(PrivateEstimator):
    """Predicts global mean + item bias + the user's own offset: what `PooledDPALS` is without factors.

    The global mean comes from per-user means, which costs next to nothing. Item biases come from the users'
    residuals, weighted so that everyone spends the same and shrunk by how much noise they carry. Offsets are
    computed from a user's own ratings when they are needed and belong to that user.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    >>> model = dpals.PrivateBiases(epsilon=1.0, delta=1e-5).fit(ratings)
    >>> model.predict(ratings, users=[0, 0], items=[3, 4]).shape
    (2,)
    >>> model.privacy.epsilon <= 1.0
    True
    """

    adaptive_costs = True
    steps: int = parameter("How often item biases are refined on the residuals of the model so far.", COUNT, default=6)
    bias_scale: float = parameter(
        "Standard deviation of item biases that is expected before looking, in units of that of ratings around their "
        "predictions, which is learned.",
        POSITIVE,
        default=0.45,
    )

    def _check(self, ratings: Population) -> None:
        needs_ratings(self, ratings)

    def _fit(self, ratings: Population, mechanism: Mechanism) -> FactorModel:
        pooled = PooledDPALS(rank=0, steps=self.steps, bias_scale=self.bias_scale)
        pooled._after_step = self._after_step
        return pooled._fit(ratings, mechanism)
