"""Rows shared among threads; how many threads kernels use by default, and how many BLAS does: one.

How BLAS splits a product among threads changes its last bits, and these may turn an eigenvector. So while anything in
this library computes, BLAS has one thread. The kernels, whose bits are the same for any number of threads, have as many
as they are given.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

_RANGES_PER_THREAD = 32  # at most
_ENTRIES_PER_RANGE = 2**12  # at least, if there are two ranges for each thread
_LIMIT: ContextVar[int | None] = ContextVar("threads", default=None)


def in_threads(work: Callable[[int, int], Any], pointers: NDArray[np.int64], threads: int | None = None) -> list[Any]:
    """Call work(start, stop) on ranges of rows with about the same number of entries.

    There are more ranges than threads, so that one slow thread does not keep the others waiting for long.
    """
    threads = thread_count(threads)
    ranges = threads * int(np.clip(pointers[-1] // _ENTRIES_PER_RANGE // threads, 2, _RANGES_PER_THREAD))
    return list(map_ranges(work, balanced_ranges(pointers, ranges), threads))


def balanced_ranges(pointers: NDArray[np.int64], parts: int, longest: int | None = None) -> list[tuple[int, int]]:
    """About `parts` ranges of rows with about the same number of entries, each of at most `longest` rows.

    Examples
    --------
    >>> balanced_ranges(np.array([0, 90, 95, 100, 100]), parts=2), balanced_ranges(np.arange(5), 1, longest=3)
    ([(0, 1), (1, 4)], [(0, 3), (3, 4)])
    """
    goals = np.linspace(0, pointers[-1], parts + 1)[1:-1]
    edges = {0, len(pointers) - 1, *np.searchsorted(pointers, goals).tolist()}
    if longest is not None:
        edges.update(range(0, len(pointers) - 1, longest))
    return list(pairwise(sorted(edges)))


def map_ranges(work: Callable[[int, int], Any], ranges: Sequence[tuple[int, int]], threads: int) -> Iterator[Any]:
    """work(start, stop) of each range, in the order of the ranges. It may not share out work among threads itself.

    When this ends, by an error as well, no thread works on the ranges any more.
    """
    if threads == 1:
        yield from (work(*ends) for ends in ranges)
        return
    calls = [_pool(threads, os.getpid()).submit(work, *ends) for ends in ranges]
    try:
        for call in calls:
            yield call.result()
    finally:
        for call in calls:
            call.cancel()
        wait(calls)


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:  # noqa: ARG001, threads do not survive a fork
    """Threads that are started once for a process: starting them takes longer than small work does."""
    return ThreadPoolExecutor(threads)


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
    """Limit kernels to this number of threads, if one is given, and BLAS to one in any case."""
    token = _LIMIT.set(threads or _LIMIT.get())
    try:
        with single_threaded_blas():
            yield
    finally:
        _LIMIT.reset(token)


class _Limit:
    """How many contexts want BLAS to have one thread, and what to restore after the last of them.

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
    """threadpoolctl lets only the thread that set a number first change it, and silently ignores all others."""
    for library in _libraries():
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


@cache
def _libraries() -> list[Any]:
    """The BLAS libraries of this process. They are looked up once: that takes longer than a small product."""
    import scipy.linalg  # noqa: F401, SciPy may bring a BLAS of its own, which is found only once it is loaded

    return ThreadpoolController().select(user_api="blas").lib_controllers  # type: ignore[no-any-return]
