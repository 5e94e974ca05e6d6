"""How many threads kernels use where their caller does not say, and how many BLAS does: one.

How BLAS splits a product among threads changes its last bits, and from these an eigenvector may turn. So while
anything of this library computes, BLAS has one thread, and the kernels, whose bits are the same for any number of
threads, have as many as they are given.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

_LIMIT: ContextVar[int | None] = ContextVar("threads", default=None)


def thread_count(asked: int | None = None) -> int:
    """As many as asked for, or as the limit allows, or as there are cores.

    Examples
    --------
    >>> with limited_threads(1):
    ...     thread_count(), thread_count(3)
    (1, 3)
    """
    return asked or _LIMIT.get() or os.cpu_count() or 1


@contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """Let kernels use so many threads, where a number is given, and BLAS one, whatever the number."""
    token = _LIMIT.set(threads or _LIMIT.get())
    try:
        with single_threaded_blas():
            yield
    finally:
        _LIMIT.reset(token)


class _Limit:
    """How many contexts want BLAS to have one thread, and what is to be restored after the last of them.

    BLAS has one number of threads for the whole process. Contexts may overlap in any order, in one thread or several:
    if each restored what it found, one that ends early would free BLAS under the others, and one that ends late would
    leave it limited for good.
    """

    def __init__(self) -> None:
        self.lock, self.contexts = Lock(), 0
        self.before: list[int | None] = []

    def enter(self) -> None:
        with self.lock:
            if self.contexts == 0:
                self.before = [library.get_num_threads() for library in _libraries()]
            _set_threads([1] * len(_libraries()))
            self.contexts += 1

    def leave(self) -> None:
        with self.lock:
            self.contexts -= 1
            if self.contexts == 0:
                _set_threads(self.before)
                _take_control()


_BLAS = _Limit()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """BLAS has one thread, in all of the process, until the last of these contexts ends."""
    _BLAS.enter()
    try:
        yield
    finally:
        _BLAS.leave()


def _set_threads(numbers: Sequence[int | None]) -> None:
    _take_control()
    for library, number in zip(_libraries(), numbers, strict=True):
        if number is not None:
            library.set_num_threads(number)


def _take_control() -> None:
    """threadpoolctl lets the first thread that sets a number set others, and silently does nothing for the rest."""
    for library in _libraries():
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


@cache
def _libraries() -> list[Any]:
    """What there is of BLAS. It is looked for once: that takes longer than a small product."""
    import scipy.linalg  # noqa: F401, SciPy may bring a BLAS of its own, which is found only once it is loaded

    return ThreadpoolController().select(user_api="blas").lib_controllers  # type: ignore[no-any-return]
