"""Hyper-parameters chosen under privacy: the best of a secret number of random candidates."""

import copy
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from dpals.data.population import PartOfPopulation, Population
from dpals.kernels.threads import limited_threads
from dpals.ledger.entries import SEEDED
from dpals.ledger.ledger import Ledger
from dpals.methods.base.estimator import PrivateEstimator, note_users
from dpals.methods.base.options import Request
from dpals.methods.base.parameters import WHOLE, OneOf, Parameters, Within, attribute, parameter
from dpals.methods.means import means_model
from dpals.model.factor_model import FactorModel
from dpals.private.sampling import Split
from dpals.private.scoring import LARGEST_GAIN, ScoredSplit, known_part, score_contribution
from dpals.release.accounting import Budget, Release, cost_of, mu_of
from dpals.release.contribution import Query
from dpals.release.selection import DISTRIBUTIONS, Selection, TriesDistribution, best_of, tries_distribution
from dpals.release.selection import epsilon as epsilon_of_selection
from dpals.release.selection import mu as mu_of_a_try
from dpals.statement.record import Statement, dataset_totals

SET_BY_SEARCH = ("epsilon", "delta", "insecure_seed")

Try = tuple[dict[str, Any], FactorModel, tuple[Release, ...]]
"""What one try leaves: its hyper-parameters, its model and the record of its releases."""


class Grid(Parameters):
    """A method, and the values of its arguments to choose from."""

    estimator: PrivateEstimator = parameter(
        "A private method. Its arguments are those of every candidate, but for those in the grid and epsilon, delta "
        "and insecure_seed, which the search sets.",
        kw_only=False,
    )
    grid: Mapping[str, Sequence[Any]] = parameter(
        "For some arguments of the method, the values to choose from. Every combination is equally likely in each try.",
        kw_only=False,
    )

    def _candidates(self) -> list[dict[str, Any]]:
        """Every combination of values in the grid."""
        if not isinstance(self.grid, Mapping) or not self.grid:
            raise ValueError(f"the grid must say which arguments to choose and from what values, got {self.grid!r}")
        for name, values in self.grid.items():
            if name in SET_BY_SEARCH:
                raise ValueError(f"{name} is set by the search and cannot be chosen from a grid")
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise ValueError(f"the grid must have a list of values for {name}, got {values!r}")
        return [dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())]


class PrivateSearch(PrivateEstimator, Grid):
    """Random search over hyper-parameters that keeps its promise: choosing is paid for as well.

    A try draws a candidate from the grid, trains it on most of each user's ratings and releases how well it guesses
    the others. The model of the best try is the result. How many tries there are is random and stays secret: that is
    what makes the choice cheap. Neither this object nor the statement tells, and nothing of other tries is kept. Anyone
    who can see how long training takes can guess it, as the statement says.

    `fit` takes no callbacks, and of the options only threads and engine: the others would tell how many tries there
    were. The ledger has one entry, for the search as a whole, from before it begins. Nothing of it is given back.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=2000, n_items=100, mean_ratings=25, seed=1)
    >>> search = dpals.PrivateSearch(dpals.ItemMean(), {"bias_prior": [0.01, 0.25]}, epsilon=4.0, tries=5)
    >>> search.fit(ratings).privacy.epsilon <= 4.0
    True
    >>> sorted(search.best_params_)
    ['bias_prior']
    """

    epsilon: float = parameter(
        "The privacy budget of the whole search, of which each try gets what `dpals.release.selection` allows.",
        default=1.0,
        kw_only=False,
    )
    tries: float = parameter(
        "How many tries there are on average. The cost grows slowly with it, and training takes so many times as long.",
        Within(low=1.01, high=1e6, closed=True),
        default=10.0,
    )
    distribution: str = parameter(
        "Of the number of tries: ``geometric``; ``logarithmic``, which costs less for the same mean, but is often one "
        "try and sometimes very many; ``poisson``, which varies less, costs more and may be none at all. The result is "
        "then the middle of the rating range, or the order of the catalogue.",
        OneOf(DISTRIBUTIONS),
        default="geometric",
    )
    score_share: float = parameter(
        "Share of a try's cost for its score.", Within(low=0.001, high=0.999, closed=True), default=0.1
    )
    validation_fraction: float = parameter(
        "Share of each user's ratings that is held back for the score. The chosen model is not trained on them: that "
        "would cost as much again.",
        Within(low=0.001, high=0.999, closed=True),
        default=0.1,
    )
    seed: int = parameter("Chooses these ratings. It is public.", WHOLE, default=0)
    best_params_: dict[str, Any] | None = attribute("What was chosen from the grid; None if there was no try.")

    def _check_request(self, request: Request) -> None:
        if request.callbacks or request.options.progress or request.options.checkpoint is not None:
            raise ValueError("how many tries a search makes is secret: it takes no callbacks, progress or checkpoint")

    def _trained(self, ratings: Population, request: Request) -> FactorModel:
        """The model of the best try, with a statement of what the search as a whole promises."""
        ledger, dataset, engine = request.ledger, request.dataset, request.options.engine
        note_users(ledger, dataset, ratings)
        tries = tries_distribution(self.distribution, self.tries)
        whole = cost_of(mu_of_a_try(self.epsilon, self.delta, tries))
        training = Budget.of_cost(int(whole * (1 - self.score_share)))
        scoring = Budget.of_cost(whole - training.cost)
        candidates = self._candidates()
        split = Split((1 - self.validation_fraction, self.validation_fraction), self.seed)
        known = PartOfPopulation(ratings, known_part, split)

        def attempt(number: int, seed: int | None) -> tuple[float, Try]:
            mechanism = self.mechanism_class(training, insecure_seed=seed, quiet=True, engine=engine)
            model = self._with(candidates[number])._fit(known, mechanism)
            next_seed = None if seed is None else seed + 1
            judge = self.mechanism_class(scoring, insecure_seed=next_seed, quiet=True, engine=engine)
            query = Query("score on ratings held back", 1, LARGEST_GAIN)
            public = ScoredSplit(model.serving(), split)
            score = judge.release_together(ratings, score_contribution, public, [(query, scoring.cost)])[0][0, 0]
            return float(score), (candidates[number], model, (*mechanism.releases, *judge.releases))

        mu = mu_of(training.cost + scoring.cost)
        promised = min(self.epsilon, epsilon_of_selection(mu, self.delta, tries))  # both are true
        books = self._entered(ledger or Ledger(), dataset, promised)
        with limited_threads(request.options.threads):
            try:
                best = self.choose(tries, len(candidates), attempt)
            except Exception as problem:
                problem.add_note("The search as a whole stays in the ledger: it had begun.")
                raise
        self.best_params_, model, releases = best or (None, _without_data(ratings), ())
        statement = Statement(
            epsilon=promised,
            delta=self.delta,
            mu=None,
            releases=releases,
            assumptions=tuple(ratings.public_facts()),
            is_private=self.insecure_seed is None,
            dataset=dataset,
            selection=Selection(self.distribution, float(self.tries), mu),
            **dataset_totals(books, dataset, self.delta),
        )
        return model.with_privacy(statement)

    def choose(
        self, tries: TriesDistribution, n_candidates: int, attempt: Callable[[int, int | None], tuple[float, Try]]
    ) -> Try | None:
        """The best of a secret number of tries. Audits replace it to watch them."""
        return best_of(tries, n_candidates, attempt, self.insecure_seed)

    def _entered(self, ledger: Ledger, dataset: str, promised: float) -> Ledger:
        """The ledger, with an entry for the search as a whole."""
        seeded = "" if self.insecure_seed is None else SEEDED
        ledger.enter_search(dataset, f"search with {type(self.estimator).__name__}{seeded}", promised, self.delta)
        return ledger

    def _check(self, ratings: Population) -> None:
        Budget(self.epsilon, self.delta)
        if not isinstance(self.estimator, PrivateEstimator) or isinstance(self.estimator, PrivateSearch):
            raise TypeError(f"a private search needs a private method to choose for, not {self.estimator!r}")
        for candidate in self._candidates():
            self._with(candidate).check(ratings)

    def _with(self, candidate: dict[str, Any]) -> PrivateEstimator:
        """The method with the arguments of a candidate. It spends what its mechanism has, whatever its epsilon says."""
        return copy.copy(self.estimator).set_params(**candidate, epsilon=self.epsilon)


def _without_data(ratings: Population) -> FactorModel:
    """The model that needs no data."""
    return means_model(ratings, 0.0 if ratings.rating_range is None else sum(ratings.rating_range) / 2)
