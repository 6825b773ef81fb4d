"""Threads that work together: order and errors."""

import pytest

from empirisk.trees.crew import Crew

pytestmark = [pytest.mark.row("T5"), pytest.mark.row("T6"), pytest.mark.row("T8")]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_tasks(threads):
    crew = Crew(threads)
    assert crew.map(lambda k: k * k, range(13)) == [k * k for k in range(13)]
    assert crew.map(lambda k: -k, [4]) == [-4]
    assert crew.map(lambda k: k, []) == []


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
