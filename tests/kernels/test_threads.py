import os
import threading

import pytest
from threadpoolctl import threadpool_info

from dpals.kernels.threads import limited_threads, thread_count


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_all_cores_by_default():
    assert thread_count() == os.cpu_count()
    with limited_threads(None):
        assert thread_count() == os.cpu_count()


def test_a_limit_holds_inside():
    with limited_threads(1):
        assert thread_count() == 1
        assert blas_threads() <= {1}
        with limited_threads(3):
            assert thread_count() == 3
        assert thread_count() == 1
    assert thread_count() == os.cpu_count()


def fail_with_one_thread():
    with limited_threads(1):
        raise RuntimeError


def test_a_limit_ends_with_an_error():
    with pytest.raises(RuntimeError):
        fail_with_one_thread()
    assert thread_count() == os.cpu_count()


def test_a_limit_is_not_that_of_other_threads():
    seen = []
    with limited_threads(1):
        other = threading.Thread(target=lambda: seen.append(thread_count()))
        other.start()
        other.join()
    assert seen == [os.cpu_count()]
