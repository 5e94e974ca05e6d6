"""How many threads kernels use where their caller does not say."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from threadpoolctl import threadpool_limits

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
        with threadpool_limits(threads, user_api="blas"):
            yield
    finally:
        _LIMIT.reset(token)
