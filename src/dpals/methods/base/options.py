"""How to train, as far as that changes neither the result nor its privacy; and what callbacks get after each step."""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from dpals.engines.local import LocalEngine
from dpals.errors import InputError
from dpals.kernels.threads import limited_threads
from dpals.ledger.ledger import Ledger
from dpals.model.factor_model import FactorModel
from dpals.release.passes import Engine
from dpals.system.progress import progress_bar

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    """What a fit may be told besides its hyper-parameters.

    Parameters
    ----------
    threads
        How many to use; all cores by default. They change no bit of the result: BLAS has one thread while a method
        trains, in the whole process.
    progress
        Whether to show a bar with the time that is left, where the output is a terminal.
    checkpoint
        A folder in which released statistics are kept until the model is saved. If training is interrupted, the same
        call resumes it: what was released before is not released or paid for again.
    engine
        What runs over the blocks of users: this machine by default, or a cluster (`dpals.spark.Engine`). Every engine
        gives the same bits.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=500, n_items=100, mean_ratings=25, seed=1)
    >>> dpals.ALS(rank=2, steps=2).fit(ratings, options=dpals.Options(threads=1)).model_.rank
    2
    """

    threads: int | None = None
    progress: bool = False
    checkpoint: str | os.PathLike[str] | None = None
    engine: Engine = field(default_factory=LocalEngine)

    def __post_init__(self) -> None:
        if self.threads is not None and (type(self.threads) is not int or self.threads < 1):
            raise InputError(f"threads must be a whole number from 1 on, not {self.threads!r}")
        if not callable(getattr(self.engine, "run", None)):
            raise InputError(f"engine must have a method run, like dpals.spark.Engine(session), not be {self.engine!r}")


@dataclass(frozen=True)
class Step:
    """What a callback gets after each step of training.

    Attributes
    ----------
    number, total
        The step that was taken, from 1 on, and how many there will be.
    model
        The model so far. Of a private method it comes from released statistics alone, with a statement of what was
        spent by then.

    Examples
    --------
    >>> import dpals
    >>> ratings = dpals.simulate.movielens_like(n_users=500, n_items=100, mean_ratings=25, seed=1)
    >>> fitted = dpals.ALS(rank=2, steps=2).fit(ratings, callbacks=[lambda step: print(step.number, step.total)])
    1 2
    2 2
    """

    number: int
    total: int
    model: FactorModel


Callback = Callable[[Step], None]
AfterStep = Callable[[int, int, FactorModel | Callable[[], FactorModel]], None]
"""What methods call: the number of the step, how many there are, and the model so far, or a function that makes it."""


def unwatched(number: int, total: int, model: FactorModel | Callable[[], FactorModel], /) -> None:
    """Do nothing: there are no callbacks."""


@dataclass(frozen=True)
class Request:
    """What `fit` was asked for besides the data: how to train, and for private methods where to record it."""

    options: Options
    callbacks: Sequence[Callback]
    ledger: Ledger | None
    dataset: str

    @classmethod
    def of(
        cls,
        options: Options | None,
        callbacks: Sequence[Callback],
        ledger: Ledger | None = None,
        dataset: str = "ratings",
    ) -> "Request":
        """The request, with the usual options if none are given; an error if something else was given."""
        if options is not None and not isinstance(options, Options):
            raise InputError(f"options must be dpals.Options, for example dpals.Options(threads=1), not {options!r}")
        if not isinstance(callbacks, Sequence) or not all(map(callable, callbacks)):
            raise InputError(f"callbacks must be a list of functions of a dpals.Step, not {callbacks!r}")
        if ledger is not None and not isinstance(ledger, Ledger):
            raise InputError(f"ledger must be a dpals.Ledger, for example dpals.Ledger('ledger.db'), not {ledger!r}")
        return cls(options or Options(), callbacks, ledger, dataset)


@contextmanager
def watched(request: Request, stated: Callable[[FactorModel], FactorModel] | None = None) -> Iterator[AfterStep]:
    """What to call after each step, while threads are limited, BLAS to one, and a bar is shown if so asked.

    `stated` gives the model so far a statement of what was spent, if the method is private.
    """
    options, callbacks = request.options, request.callbacks
    with limited_threads(options.threads), progress_bar("Training", options.progress) as advance:

        def after_step(number: int, total: int, model: FactorModel | Callable[[], FactorModel]) -> None:
            logger.info("step %d of %d", number, total)
            advance(number, total)
            if callbacks:
                made = model if isinstance(model, FactorModel) else model()
                step = Step(number, total, made if stated is None else stated(made))
                for callback in callbacks:
                    callback(step)

        yield after_step
