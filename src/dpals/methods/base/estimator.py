"""What every estimator shares: parameters in the manner of scikit-learn, the model, the mechanism."""

import hashlib
import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpals import __version__
from dpals.data.ratings import Ratings
from dpals.errors import InputError
from dpals.ledger.checkpoint import Checkpoint, remove_checkpoint
from dpals.ledger.ledger import Ledger
from dpals.methods.base.options import AfterStep, Callback, Options, checked, unwatched, watched
from dpals.methods.base.settings import settings_of
from dpals.model.factor_model import FactorModel
from dpals.model.history import ColumnNames
from dpals.release.accounting import Budget
from dpals.release.mechanism import Mechanism
from dpals.statement.record import Statement


class Estimator:
    """Base of all methods. ``__init__`` of a subclass only stores its arguments; `fit` sets ``model_``."""

    model_: FactorModel
    _after_step: AfterStep = staticmethod(unwatched)

    def fit(self, ratings: Ratings, *, options: Options | None = None, callbacks: Sequence[Callback] = ()) -> Self:
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
        options = checked(options, callbacks)
        if options.checkpoint is not None:
            raise ValueError(f"{type(self).__name__} releases nothing that a checkpoint could keep: leave it out")
        self.check(ratings)
        with self._watched(options, callbacks):
            self.model_ = self._with_settings(self._train(ratings))
        return self

    def check(self, ratings: Ratings) -> None:
        """Raise where the arguments or the ratings do not fit the method. `fit` does so before anything is spent."""
        if not isinstance(ratings, Ratings):
            raise InputError(f"fit takes a dpals.Ratings, not a {type(ratings).__name__}: see Ratings.from_frame")
        self._check(ratings)

    def _check(self, ratings: Ratings) -> None:
        """What `check` looks at besides the type."""

    def _train(self, ratings: Ratings) -> FactorModel:
        raise NotImplementedError

    def _with_settings(self, model: FactorModel) -> FactorModel:
        """The same model, which says what method trained it and with what arguments."""
        return replace(model, settings=settings_of(self))

    @contextmanager
    def _watched(
        self,
        options: Options,
        callbacks: Sequence[Callback],
        stated: Callable[[FactorModel], FactorModel] | None = None,
    ) -> Iterator[None]:
        """While training, methods call ``_after_step`` with the step, the number of steps and the model so far."""
        with watched(options, callbacks, stated) as after_step:
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

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, scikit-learn passes it
        """The constructor's arguments and their values."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **parameters: Any) -> Self:
        """Change constructor arguments by name."""
        for name, value in parameters.items():
            if name not in self._parameter_names():
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}: {self._parameter_names()}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({arguments})"


class PrivateEstimator(Estimator):
    """Base of the private methods: `_fit` does the work with a mechanism that holds the whole budget."""

    epsilon: float | None
    delta: float
    insecure_seed: int | None
    _checkpoint: tuple[Path, str] | None = None
    """Folder and run of the checkpoint that `save` removes."""
    adaptive_costs = False
    """Whether what a release costs depends on earlier ones. The whole budget then counts as spent."""
    mechanism_class: type[Mechanism] = Mechanism
    """What `fit` makes its mechanism with. An audit puts a double in its place that records what goes through."""

    def fit(
        self,
        ratings: Ratings,
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
            The private data.
        ledger
            Where to record what is spent; in memory if not given, so that nobody knows the total of several runs.
            The run reserves its whole budget before it spends anything, and is refused where the data set's is too
            small. What is left is given back when the run ends, with an error as well unless it can be resumed.
        dataset
            The name of the data in the ledger.
        options
            Threads, progress, and a checkpoint to go on from after a crash.
        callbacks
            Called after each step with a `Step`.
        """
        options = checked(options, callbacks)
        self.check(ratings)
        budget = self._budget(ratings)
        note_population(ledger, dataset, ratings)
        with self._kept(options, ratings, dataset) as checkpoint:
            recorded = budget, ledger or Ledger(), dataset, self.insecure_seed, checkpoint
            mechanism = self.mechanism_class(*recorded, adaptive=self.adaptive_costs)

            def stated(model: FactorModel) -> FactorModel:
                return model.with_privacy(Statement.of(mechanism, tuple(ratings.public_facts())))

            with mechanism, self._watched(options, callbacks, stated):
                model = self._fit(ratings, mechanism)
            self.model_ = self._with_settings(stated(model))
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a folder, for `dpals.load`, and remove the checkpoint, which is not needed any more."""
        super().save(path)
        if self._checkpoint is not None:
            remove_checkpoint(*self._checkpoint)
            self._checkpoint = None

    @contextmanager
    def _kept(self, options: Options, ratings: Ratings, dataset: str) -> Iterator[Checkpoint | None]:
        """The checkpoint of this training, where one is wanted."""
        self._checkpoint = None
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

    def _budget(self, ratings: Ratings) -> Budget:  # noqa: ARG002, methods that are given their noise need it
        if self.epsilon is None:
            raise ValueError(f"{type(self).__name__} needs an epsilon")
        return Budget(self.epsilon, self.delta)

    def _fit(self, ratings: Ratings, mechanism: Mechanism) -> FactorModel:
        raise NotImplementedError


def note_population(ledger: Ledger | None, dataset: str, ratings: Ratings) -> None:
    """Let the ledger warn where the people are known under another name. Rows that are only numbered have no ids."""
    if ledger is None:
        return
    if not isinstance(ledger, Ledger):
        raise InputError(f"ledger must be a dpals.Ledger, for example dpals.Ledger('ledger.db'), not {ledger!r}")
    if not ratings.anonymous:
        ledger.note_users(dataset, ratings.users.tolist())


def needs_ratings(estimator: Estimator, ratings: Ratings) -> None:
    """Raise where the data is implicit feedback."""
    if ratings.is_implicit:
        raise InputError(f"{type(estimator).__name__} needs ratings; this data is implicit feedback")
