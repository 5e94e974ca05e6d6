"""PooledDPALS: its parameters, and the choice between ratings and implicit feedback."""

from typing import Any

import numpy as np

from dpals.data.population import Population
from dpals.errors import InputError
from dpals.methods.base.estimator import PrivateEstimator
from dpals.methods.base.parameters import NOT_NEGATIVE, POSITIVE, SHARE, WHOLE, Within, attribute, parameter
from dpals.methods.pooled.budget import (
    BIAS_SHARE,
    CENTRE_SHARE,
    FIRST_SHARE,
    FIT_SHARE,
    HISTORY_SHARE,
    SCALE_SHARES,
    SQUARES_SHARE,
    Settings,
    Shares,
)
from dpals.methods.pooled.implicit import fit_implicit
from dpals.methods.pooled.learner import Expected
from dpals.methods.pooled.ratings import fit_ratings
from dpals.methods.pooled.releases import ItemStatistics
from dpals.model.factor_model import FactorModel
from dpals.release.mechanism import Mechanism

_DEFAULTS: dict[str, dict[str, Any]] = {
    "ratings": {"steps": 6, "clip": 0.6, "cooccurrence_share": 0.4},
    "implicit feedback": {"steps": 6, "clip": 0.5, "cooccurrence_share": 0.25},
}


class PooledDPALS(PrivateEstimator):
    """Private matrix completion in which items share statistics that none of them could pay for alone.

    Users fit their vectors to their own ratings. For each item they rated, they contribute residual times vector, with
    weights that favour rare items and one clip of the whole contribution. Every item's Gram matrix is taken to be its
    released weight times one matrix that all items share, so nearly all of the budget goes to the right-hand sides.
    Before that, a few rounds release which items occur together in users' histories, whatever the ratings: items that
    the same people rate tend to be liked by the same people. Releases add up: item factors and biases are the best
    estimate from everything released so far, given its noise. Little budget or little data gives a model close to
    users' means, never a wild one.

    For implicit feedback the model predicts the log odds that a user has an item, and a user's vector is the most
    likely one. The sums for an item are then over the vectors of the users who have it. Little budget gives popularity.

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
        "Number of releases of right-hand sides: by default 6.",
        Within(low=1, closed=True, whole=True, optional=True),
        default=None,
    )
    weight_exponent: float = parameter(
        "a: a rating's weight is in proportion to the popularity of its item to the power -a.",
        NOT_NEGATIVE,
        default=0.2,
    )
    clip: float | None = parameter(
        "Largest contribution of a user, in units of what a typical user has to contribute: by default 0.6 for ratings "
        "and 0.5 for implicit feedback.",
        Within(optional=True),
        default=None,
    )
    taste_scale: float = parameter(
        "For ratings: standard deviation, before looking, of what tastes explain. As for the next one, its unit is "
        "that of ratings around their predictions, which is learned.",
        POSITIVE,
        default=0.6,
    )
    bias_scale: float = parameter(
        "For ratings: standard deviation, before looking, of item biases.", POSITIVE, default=0.45
    )
    weight_share: float = parameter("Share of the budget for the items' popularity and weights.", SHARE, default=0.1)
    cooccurrence_share: float | None = parameter(
        "Share of the rest for who rates what with whom: by default 0.4 for ratings and 0.25 for implicit feedback. "
        "The steps get what is left.",
        Within(high=1, optional=True),
        default=None,
    )
    gram_share: float = parameter("Share of each step for what all items share.", SHARE, default=0.03)
    seed: int = parameter("Chooses where factors start. It is public.", WHOLE, default=0)
    rank_: int = attribute()
    steps_: int = attribute()
    clip_: float = attribute()
    cooccurrence_share_: float = attribute()
    report_: str = attribute(
        "What could be learned at this budget, in words. It comes from released numbers and is public."
    )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments; after `fit` with what was chosen in place of None."""
        parameters = super().get_params(deep)
        for name in ("rank", *_DEFAULTS["ratings"]):
            if parameters[name] is None:
                parameters[name] = getattr(self, f"{name}_", None)
        return parameters

    def _check(self, ratings: Population) -> None:
        if self.rank is not None and self.rank > ratings.n_items:
            raise InputError(f"rank {self.rank} is more than the number of items, {ratings.n_items:,}")
        before = FIRST_SHARE + sum(SCALE_SHARES) + SQUARES_SHARE + CENTRE_SHARE
        others = before, BIAS_SHARE + HISTORY_SHARE, FIT_SHARE + HISTORY_SHARE
        shares = self.weight_share, self.cooccurrence_share or 0.0, self.gram_share
        if any(share + other >= 1 for share, other in zip(shares, others, strict=True)):
            raise ValueError("weight_share, cooccurrence_share and gram_share must each leave something of the budget")

    def _fit(self, ratings: Population, mechanism: Mechanism) -> FactorModel:
        kind = "implicit feedback" if ratings.is_implicit else "ratings"
        for name, default in _DEFAULTS[kind].items():
            given = getattr(self, name)
            setattr(self, f"{name}_", default if given is None else given)
        settings = Settings(self.rank, self.steps_, self.weight_exponent, self.clip_, self._shares(kind), self.seed)
        if ratings.is_implicit:
            model, items = fit_implicit(ratings, settings, mechanism, self._after_step)
            learned, otherwise = "popularity", "All users are recommended the same items, in any order."
        else:
            expected = Expected(self.taste_scale, self.bias_scale)
            model, items = fit_ratings(ratings, settings, expected, mechanism, self._after_step)
            learned = "biases"
            otherwise = "Predictions are users' own means, drawn a little toward the global mean."
        self.rank_ = model.rank
        self.report_ = _report(model.rank, items, learned, otherwise)
        return model

    def _shares(self, kind: str) -> Shares:
        return Shares(
            first=FIRST_SHARE,
            weights=self.weight_share,
            cooccurrence=self.cooccurrence_share_,
            biases=BIAS_SHARE if kind == "ratings" else 0.0,  # offsets of implicit feedback come from popularity
            gram=self.gram_share,
            fit=FIT_SHARE if kind == "ratings" else 0.0,
            history=HISTORY_SHARE if kind == "ratings" else 0.0,
        )


def _report(rank: int, items: ItemStatistics, learned: str, otherwise: str) -> str:
    """What was learned; or, where weights may be noise alone, that nothing was and what the model does instead."""
    if not items.can_learn:
        return (
            f"Nothing could be learned about items: at this epsilon the noise hides which items users have. {otherwise}"
        )
    factors = f"{rank} factor{'' if rank == 1 else 's'}"
    return (
        f"Learned {learned} and {factors}; {np.mean(items.estimates.known):.0%} of the items have weight to learn from."
    )
