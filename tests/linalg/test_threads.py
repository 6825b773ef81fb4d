"""The pools: results in order, errors passed on, nested calls, settings copied, forks survived, BLAS given back."""

import multiprocessing
import subprocess
import sys
import threading
from contextvars import ContextVar
from time import perf_counter, sleep

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import empirisk as er
from empirisk.linalg import blas_threads as holding
from empirisk.linalg import threads as pools
from empirisk.linalg.threads import call_with_deadline, ordered_map, parallel_map, run_shares, single_threaded_blas
from empirisk.settings import config, settings
from empirisk.stop import Stopped


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_stand_in_the_order_of_the_tasks(threads):
    with config(threads=threads):
        assert parallel_map(lambda task: task**2, range(20)) == [task**2 for task in range(20)]
        assert parallel_map(lambda task: task, []) == []
        np.testing.assert_array_equal(parallel_map(lambda task: task, np.arange(3)), [0, 1, 2])


@pytest.mark.parametrize("threads", [1, 3])
def test_an_exception_of_any_task_reaches_the_caller(threads):
    def fail(task):
        if task == 7:
            raise ValueError("seven")
        return task

    with config(threads=threads), pytest.raises(ValueError, match="seven"):
        parallel_map(fail, range(20))


def test_calls_inside_calls_do_not_wait_for_each_other():
    def inner(task):
        return sum(parallel_map(lambda other: task * other, range(10)))

    with config(threads=2):
        assert parallel_map(inner, range(10)) == [45 * task for task in range(10)]


@pytest.mark.parametrize("known", [True, False], ids=["by its libraries", "by documented limits"])
def test_blas_has_one_thread_inside_and_its_own_number_after(monkeypatch, known):
    monkeypatch.setattr(holding, "internals_known", lambda *_: known)
    before = blas_threads()
    with single_threaded_blas():
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before


@pytest.mark.parametrize("count", [1, 2, 5])
def test_shares_run_at_the_same_time(count):
    barrier = threading.Barrier(count, timeout=20)
    with config(threads=1):  # however many threads are allowed: they may wait for each other
        run_shares(lambda share: barrier.wait(), count)


def test_the_pool_works_on_after_an_error():
    def share(k):
        if k == 1:
            raise RuntimeError("share 1")

    for _ in range(3):
        with pytest.raises(RuntimeError, match="share 1"):
            run_shares(share, 3)
    with config(threads=3):
        assert parallel_map(abs, [-1, -2, -3]) == [1, 2, 3]


def test_contexts_are_copied_and_shares_work_alone():
    variable = ContextVar("variable", default=0)
    variable.set(7)
    with config(threads=2, memory="3MB"):
        seen = parallel_map(lambda task: (variable.get(), settings().memory, settings().threads), range(6))
        assert settings().threads == 2
    assert set(seen) == {(7, 3_000_000, 1)}


def test_tasks_are_taken_as_they_are_needed():
    taken = []

    def tasks():
        for k in range(1000):
            taken.append(k)
            yield k

    with config(threads=2):
        results = ordered_map(lambda k: (sleep(0.001 * (k % 3)), k)[1], tasks())
        assert [next(results) for _ in range(20)] == list(range(20))
        results.close()
    assert len(taken) < 40


def test_the_first_result_is_awaited_and_then_the_clock_is_asked():
    with config(threads=2):
        found = list(ordered_map(lambda k: (sleep(0.3 if k else 0.0), k)[1], range(50), lambda: True))
    assert found[0] == 0
    assert len(found) < 5


def test_an_error_comes_in_its_turn():
    def task(k):
        if k == 3:
            raise RuntimeError("task 3")
        return k

    found = []
    with config(threads=2), pytest.raises(RuntimeError, match="task 3"):
        found.extend(result for result in ordered_map(task, range(50)) if found.append(result))
    assert found == [0, 1, 2]


def fit_again(X, y, queue):
    machine = er.Ridge(C="loo", features=er.kernels.Gaussian(2.0)).fit(X, y)
    queue.put(machine.predict(X[:5]))


def test_a_forked_child_has_threads_of_its_own():
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 3))
    y = X[:, 0] ** 2 + 0.1 * random.normal(size=600)
    context = multiprocessing.get_context("fork")
    with config(threads=2):
        with single_threaded_blas():  # as the child will have it
            expected = er.Ridge(C="loo", features=er.kernels.Gaussian(2.0)).fit(X, y).predict(X[:5])
        ended = threading.Event()
        busy = threading.Thread(target=lambda: parallel_map(lambda task: ended.wait(20), range(2)))
        busy.start()
        queue = context.SimpleQueue()
        with single_threaded_blas():  # the child is born while everybody is at work
            child = context.Process(target=fit_again, args=(X, y, queue))
            child.start()
        child.join(60)
        alive = child.is_alive()
        child.kill()
        ended.set()
        busy.join()
    assert not alive
    np.testing.assert_array_equal(queue.get(), expected)


def test_every_thread_can_hold_blas():
    found = []

    def hold():
        with single_threaded_blas():
            found.append(blas_threads())

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()  # with a library that never has more than one thread, {1, 2}
        assert 2 in before
        hold()
        other = threading.Thread(target=hold)
        other.start()
        other.join()
        assert blas_threads() == before
    assert found == [{1}, {1}]


def test_two_budgets_at_once_give_the_bits_of_each_alone():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 4))
    y = X[:, 0] * X[:, 1] + 0.1 * random.normal(size=400) > 0
    budgets = [{"threads": 1, "memory": "1GB"}, {"threads": 3, "memory": "400KB"}]
    start = threading.Barrier(2, timeout=20)
    found: dict = {}

    def work(name, budget, wait):
        with er.config(**budget):
            if wait:
                start.wait()
            for _ in range(3):
                machine = er.SVM(C=3.0, features=er.kernels.Gaussian(1.0)).fit(X, y)
                logistic = er.LogisticRegression(features=er.kernels.Gaussian(1.0)).fit(X, y)
            assert settings().threads == budget["threads"]
            found[name] = [fitted.decision_function(X[:50]) for fitted in (machine, logistic)]

    before = settings()
    for number, budget in enumerate(budgets):
        work(("alone", number), budget, False)
    threads = [
        threading.Thread(target=work, args=(("together", number), budget, True))
        for number, budget in enumerate(budgets)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert settings() == before
    for number in range(2):
        for alone, beside in zip(found["alone", number], found["together", number], strict=True):
            np.testing.assert_array_equal(alone, beside)


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_workers_of_joblib_fit_after_threads_have_worked(backend):
    from joblib import Parallel, delayed

    X = np.random.default_rng(0).normal(size=(300, 3))
    y = X[:, 0] > 0
    with config(threads=2):
        expected = er.SVM(features=er.kernels.Gaussian()).fit(X, y).dual_coef_
        found = Parallel(n_jobs=2, backend=backend)(delayed(_coefficients)(X, y) for _ in range(2))
    for coefficients in found:
        np.testing.assert_array_equal(coefficients, expected)


def _coefficients(X, y):
    return er.SVM(features=er.kernels.Gaussian()).fit(X, y).dual_coef_


def test_no_more_threads_work_than_there_are_cores(monkeypatch):
    monkeypatch.setattr(pools, "CORES", 2)
    met = threading.Barrier(2)
    seen = set()

    def meet(_):
        met.wait(timeout=60)  # two work at the same time
        seen.add(threading.get_ident())

    with er.config(threads=16):
        assert pools.workers() == 2
        parallel_map(meet, range(8))
    assert len(seen) == 2


def test_what_is_not_done_in_time_is_left_behind():
    free, done = threading.Event(), threading.Event()
    end = perf_counter() + 0.2
    with pytest.raises(Stopped):
        call_with_deadline(lambda: end, lambda: done.set() if free.wait(60.0) else None)
    assert not done.is_set()
    free.set()
    assert done.wait(60.0)
    with pytest.raises(ZeroDivisionError):
        call_with_deadline(lambda: perf_counter() + 9.0, lambda: 1 / 0)


LEAVES = {
    "a call": "interruptible_call(work, 10_000)",
    "late work": "call_with_deadline(lambda: 0.0, work)",
    "a task": "next(iter(ordered_map(lambda task: task and work(), range(2))))",
}
SCRIPT = """
import os, sys, threading
from contextlib import suppress
from empirisk.linalg.threads import call_with_deadline, interruptible_call, ordered_map
from empirisk.stop import Stopped, stopping
from empirisk.settings import config

ending = threading.Event()

def work():
    ending.wait(60.0)
    print("work", flush=True)

with config(threads=2), suppress(Stopped), stopping(lambda: {flag}):
    {leave}
print("end", flush=True)
if os.fork() == 0:
    print("child", flush=True)
    sys.exit()
os.wait()
print("parent", flush=True)
ending.set()
"""


@pytest.mark.parametrize("leave", LEAVES)
def test_a_process_ends_after_the_work_that_it_left_behind(leave):
    """BLAS that works while a process ends may crash it. A forked child has left nothing."""
    script = SCRIPT.format(leave=LEAVES[leave], flag=leave == "a call")
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["end", "child", "parent", "work"]
