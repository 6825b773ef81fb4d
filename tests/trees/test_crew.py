"""Threads that work together: order, errors, laziness, and an end when told."""

from time import sleep

import pytest

from empirisk.settings import config
from empirisk.trees.crew import Crew, in_order

pytestmark = [pytest.mark.row("T5"), pytest.mark.row("T6"), pytest.mark.row("T8")]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_tasks(threads):
    crew = Crew(threads)
    assert crew.map(lambda k: k * k, range(13)) == [k * k for k in range(13)]
    assert crew.map(lambda k: -k, [4]) == [-4]
    assert crew.map(lambda k: k, []) == []
    crew.close()


@pytest.mark.parametrize("bad", [0, 1])
def test_an_error_reaches_the_caller_and_the_crew_works_on(bad):
    def task(k):
        if k == bad:
            raise RuntimeError(f"task {k}")
        return k

    crew = Crew(2)
    for _ in range(3):
        with pytest.raises(RuntimeError, match=f"task {bad}"):
            crew.map(task, range(2))
    assert crew.map(abs, [-1, -2, -3]) == [1, 2, 3]
    crew.close()


def test_tasks_are_taken_as_they_are_needed():
    taken = []

    def tasks():
        for k in range(1000):
            taken.append(k)
            yield k

    with config(threads=2):
        results = in_order(lambda k: (sleep(0.001 * (k % 3)), k)[1], tasks())
        assert [next(results) for _ in range(20)] == list(range(20))
        results.close()
    assert len(taken) < 40


def test_the_first_result_is_awaited_and_then_the_clock_is_asked():
    with config(threads=2):
        found = list(in_order(lambda k: (sleep(0.3 if k else 0.0), k)[1], range(50), lambda: True))
    assert found[0] == 0
    assert len(found) < 5
