"""How many threads kernels use where their caller does not say."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
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
    """Let kernels and BLAS use so many threads; None changes nothing."""
    if threads is None:
        yield
        return
    token = _LIMIT.set(threads)
    try:
        with limited_blas(threads):
            yield
    finally:
        _LIMIT.reset(token)


def limited_blas(threads: int) -> Any:
    """A context in which BLAS uses so many threads."""
    return _controller().limit(limits=threads, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    """Finds the libraries once: looking for them takes longer than a small product."""
    return ThreadpoolController()
