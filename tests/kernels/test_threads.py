import itertools
import os
import threading

import numpy as np
import pytest
import scipy.linalg  # noqa: F401, brings a BLAS of its own
from threadpoolctl import threadpool_info, threadpool_limits

from dpals.kernels.threads import balanced_ranges, in_threads, limited_threads, single_threaded_blas, thread_count


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def three_blas_threads():
    """So many that none of them can be mistaken for a limit."""
    with threadpool_limits(3, user_api="blas"):
        assert blas_threads() == {3}
        yield


def test_all_cores_by_default():
    assert thread_count() == os.cpu_count()
    with limited_threads(None):
        assert thread_count() == os.cpu_count()


def test_a_limit_holds_inside():
    with limited_threads(1):
        assert thread_count() == 1
        with limited_threads(3):
            assert thread_count() == 3
        with limited_threads(None):
            assert thread_count() == 1
        assert thread_count() == 1
    assert thread_count() == os.cpu_count()


@pytest.mark.parametrize("threads", [None, 1, 2, 4])
def test_blas_has_one_thread_whatever_the_limit(threads):
    with limited_threads(threads):
        assert blas_threads() == {1}
    assert blas_threads() == {3}


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_contexts_may_end_in_any_order(order):
    contexts = [single_threaded_blas() for _ in range(3)]
    for context in contexts:
        context.__enter__()
    for number in order:
        assert blas_threads() == {1}
        contexts[number].__exit__(None, None, None)
    assert blas_threads() == {3}
    with single_threaded_blas():
        assert blas_threads() == {1}
    assert blas_threads() == {3}


def test_the_thread_that_trains_need_not_be_the_one_that_set_the_number():
    seen = []

    def train():
        with limited_threads(2):
            seen.append(blas_threads())
        seen.append(blas_threads())

    other = threading.Thread(target=train)
    other.start()
    other.join()
    assert seen == [{1}, {3}]


def test_two_trainings_may_overlap():
    """The first ends while the second goes on: the second keeps its one thread, and in the end nothing is left over."""
    entered, leave = threading.Event(), threading.Event()

    def second():
        with limited_threads(2):
            entered.set()
            leave.wait()

    other = threading.Thread(target=second)
    with limited_threads(1):
        other.start()
        entered.wait()
    try:
        assert blas_threads() == {1}
    finally:
        leave.set()
        other.join()
    assert blas_threads() == {3}


def fail_with_one_thread():
    with limited_threads(1):
        raise RuntimeError


def test_a_limit_ends_with_an_error():
    with pytest.raises(RuntimeError):
        fail_with_one_thread()
    assert thread_count() == os.cpu_count()
    assert blas_threads() == {3}


def test_a_limit_is_not_that_of_other_threads():
    seen = []
    with limited_threads(1):
        other = threading.Thread(target=lambda: seen.append(thread_count()))
        other.start()
        other.join()
    assert seen == [os.cpu_count()]


LENGTHS = np.random.default_rng(0).integers(0, 9, 1_000) ** 3
POINTERS = np.r_[0, np.cumsum(LENGTHS)]


@pytest.mark.parametrize("threads", [None, 1, 3])
def test_ranges_cover_every_row_once(threads: int | None) -> None:
    for pointers in (POINTERS, np.zeros(4, np.int64), np.zeros(1, np.int64)):
        ranges = in_threads(lambda start, stop: (start, stop), pointers, threads)
        assert [row for start, stop in ranges for row in range(start, stop)] == list(range(len(pointers) - 1))


@pytest.mark.parametrize("parts", [1, 2, 7, 50])
def test_ranges_have_about_the_same_number_of_entries(parts: int) -> None:
    ranges = balanced_ranges(POINTERS, parts)
    assert len(ranges) == parts
    entries = np.array([POINTERS[stop] - POINTERS[start] for start, stop in ranges])
    assert np.abs(entries - POINTERS[-1] / parts).max() <= LENGTHS.max()


def test_no_range_is_longer_than_allowed() -> None:
    for longest in (1, 7, 400, 10_000):
        ranges = balanced_ranges(POINTERS, 3, longest=longest)
        assert max(stop - start for start, stop in ranges) <= longest
        assert [row for start, stop in ranges for row in range(start, stop)] == list(range(len(LENGTHS)))
