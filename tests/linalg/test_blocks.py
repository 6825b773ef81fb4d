"""Threads over blocks: results in order, exceptions passed on, nested calls, and BLAS given back as it was."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from empirisk.linalg.blocks import in_threads, single_threaded_blas
from empirisk.settings import config


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_stand_in_the_order_of_the_tasks(threads):
    with config(threads=threads):
        assert in_threads(lambda task: task**2, range(20)) == [task**2 for task in range(20)]
        assert in_threads(lambda task: task, []) == []
        np.testing.assert_array_equal(in_threads(lambda task: task, np.arange(3)), [0, 1, 2])


@pytest.mark.parametrize("threads", [1, 3])
def test_an_exception_of_any_task_reaches_the_caller(threads):
    def fail(task):
        if task == 7:
            raise ValueError("seven")
        return task

    with config(threads=threads), pytest.raises(ValueError, match="seven"):
        in_threads(fail, range(20))


def test_calls_inside_calls_do_not_wait_for_each_other():
    def inner(task):
        return sum(in_threads(lambda other: task * other, range(10)))

    with config(threads=2):
        assert in_threads(inner, range(10)) == [45 * task for task in range(10)]


def test_blas_has_one_thread_inside_and_its_own_number_after():
    before = blas_threads()
    with single_threaded_blas():
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before
