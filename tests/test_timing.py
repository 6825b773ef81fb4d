import math

import pytest

from benchmarks import problems
from benchmarks.timing import Comparison, Timing, compare

#: Run by `make test-all`.
pytestmark = pytest.mark.long


def timings(**objectives):
    return {name: Timing(first=1.0, seconds=[1.0], objective=value) for name, value in objectives.items()}


def test_contestants_run_in_turns_after_one_warm_up(capsys):
    calls = []
    contestants = {name: lambda name=name: calls.append(name) for name in ("empirisk", "rival")}
    comparison = compare("turns", contestants, repeats=2)
    assert calls == ["empirisk", "rival"] * 3
    assert [len(timing.seconds) for timing in comparison.timings.values()] == [2, 2]
    assert capsys.readouterr().out.startswith("turns")


def test_the_ratio_is_to_the_fastest_rival_by_medians():
    seconds = {"empirisk": [2.0, 1.0, 9.0], "slow": [8.0], "fast": [3.0]}
    timings = {name: Timing(first=0.0, seconds=values) for name, values in seconds.items()}
    assert Comparison("p", timings, 1e-6).ratio == pytest.approx(1.5)
    assert timings["empirisk"].fastest == 1.0


def test_a_worse_objective_is_flagged():
    assert Comparison("p", timings(empirisk=1.0, rival=1.0 + 1e-7), 1e-6).flags == []
    assert Comparison("p", timings(empirisk=1.01, rival=1.0), 1e-6).flags == ["empirisk objective worse by 1e-02"]
    assert Comparison("p", timings(empirisk=-2.0, rival=-1.0), 1e-6).flags == ["rival objective worse by 5e-01"]
    assert len(Comparison("p", timings(empirisk=1.0, rival=math.nan), 1e-6).flags) == 1
    assert "! rival" in Comparison("p", timings(empirisk=1.0, rival=2.0), 1e-6).row()


def test_grading_is_off_the_clock_and_returned_values_count():
    graded = compare("p", {"empirisk": lambda: 3, "rival": lambda: 4}, 1, objective=lambda result: result / 2)
    assert [timing.objective for timing in graded.timings.values()] == [1.5, 2.0]
    plain = compare("p", {"empirisk": lambda: 3.0, "rival": lambda: None}, 1)
    assert [timing.objective for timing in plain.timings.values()] == [3.0, None]


def test_problems_are_repeatable_and_graded_on_our_scale():
    data = problems.tall_regression(n=50, d=3)
    assert (data.X == problems.tall_regression(n=50, d=3).X).all()
    w = data.X[0]
    expected = 0.5 * w @ w + 0.3 * sum((y - x @ w - 1.0) ** 2 for x, y in zip(data.X, data.y, strict=True))
    assert problems.objective(data, "squared", "l2", 0.3)((w, 1.0)) == pytest.approx(expected)
