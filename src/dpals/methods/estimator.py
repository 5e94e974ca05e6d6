"""What every private estimator shares: parameters, the budget, the door and the statement."""

import inspect
from typing import Any, Self

from dpals.errors import InputError
from dpals.ratings import Ratings
from dpals.release.accounting import Budget
from dpals.release.ledger import Ledger
from dpals.release.mechanism import Door
from dpals.release.statement import Statement


class PrivateEstimator:
    """Base of the private methods, in the manner of scikit-learn.

    ``__init__`` of a subclass only stores its arguments, among them ``epsilon``, ``delta`` and
    ``insecure_seed``; ``_fit`` does the work with a door that holds the whole budget.
    """

    epsilon: float
    delta: float
    insecure_seed: int | None
    privacy: Statement

    def fit(self, ratings: Ratings, *, ledger: Ledger | None = None, dataset: str = "ratings") -> Self:
        """Train on ratings, within the budget.

        Parameters
        ----------
        ratings
            The private data.
        ledger
            Where to record what is spent; in memory if not given.
        dataset
            The name of the data in the ledger.
        """
        budget = Budget(self.epsilon, self.delta)
        if not isinstance(ratings, Ratings):
            raise InputError(f"fit takes a dpals.Ratings, not a {type(ratings).__name__}: see Ratings.from_frame")
        self._check(ratings)
        door = Door(budget, ledger or Ledger(), dataset, self.insecure_seed)
        self._fit(ratings, door)
        self.privacy = Statement.of(door, tuple(ratings.public_facts()))
        return self

    def _check(self, ratings: Ratings) -> None:
        """Raise where the arguments or the ratings do not fit the method, before anything is spent."""
        raise NotImplementedError

    def _fit(self, ratings: Ratings, door: Door) -> None:
        raise NotImplementedError

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
