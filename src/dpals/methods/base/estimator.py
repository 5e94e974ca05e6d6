"""What every method shares: how it is fitted, its model, and, if it is private, the mechanism and the ledger."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, Self, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpals import __version__
from dpals.data.population import Population, user_ids
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.ledger.checkpoint import Checkpoint, remove_checkpoint
from dpals.ledger.ledger import Ledger
from dpals.methods.base.options import Callback, Options, Request, unwatched, watched
from dpals.methods.base.parameters import Parameters, attribute, parameter
from dpals.methods.base.settings import settings_of
from dpals.model.factor_model import FactorModel
from dpals.model.history import ColumnNames
from dpals.release.accounting import Budget
from dpals.release.mechanism import Mechanism
from dpals.release.passes import Engine
from dpals.statement.record import Statement

_LARGEST_RATING = 1e15  # sums of squares stay far from the largest number in single precision


class Estimator(Parameters):
    """Base of all methods. Subclasses declare their arguments with `parameter`; `fit` sets ``model_``."""

    model_: FactorModel = attribute()
    in_memory_only = False
    """Whether the method needs the whole matrix of ratings at once, and cannot take users in blocks."""
    _after_step = staticmethod(unwatched)

    def fit(self, ratings: Population, *, options: Options | None = None, callbacks: Sequence[Callback] = ()) -> Self:
        """Train on ratings, without privacy.

        Parameters
        ----------
        ratings
            What to learn from.
        options
            Threads and progress.
        callbacks
            Called after each step with a `Step`.
        """
        return self._fit_as_asked(ratings, Request.of(options, callbacks))

    def _fit_as_asked(self, ratings: Population, request: Request) -> Self:
        """What `fit` of every method does."""
        self._check_request(request)
        self.check(ratings)
        check_blocks = getattr(request.options.engine, "check", None)
        if check_blocks is not None:
            check_blocks(ratings.blocks)
        try:
            model = self._trained(ratings, request)
        finally:
            if isinstance(ratings, Ratings):
                ratings.memory.clear()
        self.model_ = replace(model, settings=settings_of(self))
        return self

    def check(self, ratings: Population) -> None:
        """Raise if the arguments or the ratings do not suit the method. `fit` does so before anything is spent."""
        if not hasattr(ratings, "blocks"):
            raise InputError(f"fit takes a dpals.Ratings, not a {type(ratings).__name__}: see Ratings.from_frame")
        if self.in_memory_only and not isinstance(ratings, Ratings):
            raise InputError(
                f"{type(self).__name__} needs all ratings in memory and cannot be trained on blocks: read them with "
                "dpals.read_ratings, or choose another method"
            )
        if ratings.rating_range is not None and max(map(abs, ratings.rating_range)) > _LARGEST_RATING:
            raise InputError(
                f"methods train on ratings between -{_LARGEST_RATING:g} and {_LARGEST_RATING:g}, and the declared "
                f"range is {ratings.rating_range}: declare a narrower one"
            )
        self.check_parameters()
        self._check(ratings)

    def _check(self, ratings: Population) -> None:
        """What `check` looks at besides the type and the values of single arguments."""

    def _check_request(self, request: Request) -> None:
        """Raise if the method cannot be fitted as it was asked to."""
        if request.options.checkpoint is not None:
            raise ValueError(f"{type(self).__name__} releases nothing that a checkpoint could keep: leave it out")

    def _trained(self, ratings: Population, request: Request) -> FactorModel:
        """The model, trained as asked. Everything was checked."""
        with self._watched(request):
            if isinstance(ratings, Ratings):
                return self._train(ratings)
            return self._train_in_blocks(ratings, request.options.engine)

    def _train(self, ratings: Ratings) -> FactorModel:
        raise NotImplementedError

    def _train_in_blocks(self, population: Population, engine: Engine) -> FactorModel:
        raise NotImplementedError

    @contextmanager
    def _watched(self, request: Request, stated: Callable[[FactorModel], FactorModel] | None = None) -> Iterator[None]:
        """While training, methods call ``_after_step`` with the step, the number of steps and the model so far."""
        with watched(request, stated) as after_step:
            self._after_step = after_step
            try:
                yield
            finally:
                del self._after_step

    def __getattr__(self, name: str) -> Any:
        if name == "model_":
            raise AttributeError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return object.__getattribute__(self, name)  # for the message of whatever raised

    @property
    def item_factors_(self) -> NDArray[np.float32]:
        """One row per item of the catalogue; publishable."""
        return self.model_.item_factors

    def predict(self, history: Any, users: ArrayLike, items: ArrayLike) -> NDArray[np.float32]:
        """Ratings that users would give to items: see `FactorModel.predict`."""
        return self.model_.predict(history, users, items)

    @overload
    def recommend(
        self, history: Ratings, k: int = 20, exclude_seen: bool = True
    ) -> tuple[NDArray[Any], NDArray[np.float32]]: ...
    @overload
    def recommend(self, history: Any, k: int = 20, exclude_seen: bool = True) -> Any: ...
    def recommend(self, history: Any, k: int = 20, exclude_seen: bool = True) -> Any:
        """The best items for each user: see `FactorModel.recommend`."""
        return self.model_.recommend(history, k, exclude_seen)

    def similar_items(self, item: Any, k: int = 10) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The most similar items: see `FactorModel.similar_items`."""
        return self.model_.similar_items(item, k)

    def history(self, data: Any, **columns: Unpack[ColumnNames]) -> Ratings:
        """The users' own ratings as the model needs them: see `FactorModel.history`."""
        return self.model_.history(data, **columns)

    def read_history(self, path: str | os.PathLike[str], **columns: Unpack[ColumnNames]) -> Ratings:
        """The same from a file: see `FactorModel.read_history`."""
        return self.model_.read_history(path, **columns)

    def search_vectors(self, history: Any) -> NDArray[np.float32]:
        """One row per user for a search in exported arrays: see `FactorModel.search_vectors`."""
        return self.model_.search_vectors(history)

    @overload
    def export(self, format: Literal["arrays"]) -> tuple[NDArray[Any], NDArray[np.float32]]: ...
    @overload
    def export(self, format: Literal["parquet"], path: str | os.PathLike[str]) -> None: ...
    def export(self, format: Any, path: Any = None) -> Any:
        """What is known about the items, for other programs: see `FactorModel.export`."""
        return self.model_.export(format) if path is None else self.model_.export(format, path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a folder, for `dpals.load`."""
        self.model_.save(path)


class PrivateEstimator(Estimator):
    """Base of the private methods: `_fit` does the work with a mechanism that holds the whole budget."""

    epsilon: float = parameter(
        "The privacy budget, together with `delta`. Smaller is more private.",
        default=1.0,
        kw_only=False,
    )
    delta: float = parameter(
        "The delta of the guarantee. Choose it well below 1 over the number of users.", default=1e-5, kw_only=False
    )
    insecure_seed: int | None = parameter(
        "Repeatable noise, for tests and simulated data: the model is then not private and says so.",
        default=None,
        last=True,
    )
    adaptive_costs = False
    """Whether the cost of a release depends on earlier releases. The whole budget then counts as spent."""
    mechanism_class = Mechanism
    """What `fit` makes its mechanism with. An audit replaces it by one that records every release."""

    def fit(
        self,
        ratings: Population,
        *,
        ledger: Ledger | None = None,
        dataset: str = "ratings",
        options: Options | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Train on ratings, within the budget.

        Parameters
        ----------
        ratings
            The private data: `Ratings`, or users in blocks. A population of your own must have no user in two blocks.
        ledger
            Where to record what is spent; in memory if not given, so that nobody knows the total of several runs.
            The run reserves its whole budget before it spends anything, and is refused if the data set's budget is
            too small. What is left is given back when the run ends, also if it fails, unless it can be resumed.
        dataset
            The name of the data in the ledger.
        options
            Threads, progress, an engine, and a checkpoint from which an interrupted training resumes.
        callbacks
            Called after each step with a `Step`.
        """
        return self._fit_as_asked(ratings, Request.of(options, callbacks, ledger, dataset))

    def _check_request(self, request: Request) -> None:
        """A private method can be fitted in every way."""

    def _trained(self, ratings: Population, request: Request) -> FactorModel:
        budget, ledger, dataset = self._budget(ratings), request.ledger, request.dataset
        note_users(ledger, dataset, ratings)
        with self._kept(request.options, ratings, dataset) as checkpoint:
            recorded = budget, ledger or Ledger(), dataset, self.insecure_seed, checkpoint
            mechanism = self.mechanism_class(*recorded, adaptive=self.adaptive_costs, engine=request.options.engine)

            def stated(model: FactorModel) -> FactorModel:
                return model.with_privacy(Statement.of(mechanism, tuple(ratings.public_facts())))

            with mechanism, self._watched(request, stated):
                model = self._fit(ratings, mechanism)
            return stated(model)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a folder, for `dpals.load`, and remove the checkpoint, which is not needed any more."""
        super().save(path)
        if "_checkpoint" in vars(self):
            remove_checkpoint(*self._checkpoint)
            del self._checkpoint

    @contextmanager
    def _kept(self, options: Options, ratings: Population, dataset: str) -> Iterator[Checkpoint | None]:
        """The checkpoint of this training, if one is wanted. `save` removes it."""
        vars(self).pop("_checkpoint", None)
        if options.checkpoint is None:
            yield None
            return
        training = {
            "method": type(self).__name__,
            **{name: repr(getattr(self, name)) for name in self._parameter_names()},
            "the data set's name": dataset,
            "the catalogue": hashlib.sha256(repr(ratings.items.tolist()).encode()).hexdigest(),
            "the rating range": repr(ratings.rating_range),
            "the version of dpals": __version__,
        }
        with Checkpoint(os.fspath(options.checkpoint), training) as checkpoint:
            self._checkpoint = checkpoint.folder.absolute(), checkpoint.run
            yield checkpoint

    @property
    def privacy(self) -> Statement:
        """What was promised and spent."""
        if self.model_.privacy is None:
            raise AttributeError("this model was trained without privacy, so there is no statement")
        return self.model_.privacy

    def _budget(self, ratings: Population) -> Budget:  # noqa: ARG002, methods that are given their noise need it
        if self.epsilon is None:
            raise ValueError(f"{type(self).__name__} needs an epsilon")
        return Budget(self.epsilon, self.delta)

    def _fit(self, ratings: Population, mechanism: Mechanism) -> FactorModel:
        raise NotImplementedError


def note_users(ledger: Ledger | None, dataset: str, ratings: Population) -> None:
    """Let the ledger warn if it knows the users under another name. Rows that are only numbered have no ids."""
    if ledger is not None and not ratings.anonymous:
        ledger.note_users(dataset, user_ids(ratings))


def needs_ratings(estimator: Estimator, ratings: Population) -> None:
    """Raise if the data is implicit feedback."""
    if ratings.is_implicit:
        raise InputError(f"{type(estimator).__name__} needs ratings; this data is implicit feedback")
