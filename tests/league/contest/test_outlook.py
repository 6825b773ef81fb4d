"""What more time would gain, by how the best score has risen so far."""

import numpy as np
import pytest

from empirisk.league.contest.outlook import gain, sentence


def test_it_is_not_known_before_the_time_has_doubled():
    assert gain([]) is None
    assert gain([(10.0, 0.5), (15.0, 0.6)]) is None
    assert sentence([(10.0, 0.5)], "accuracy", 1.0) == ""


@pytest.mark.parametrize("power", [0.3, 0.6, 1.0])
def test_a_score_that_rises_as_a_power_of_the_time_gains_no_more_than_said(power):
    """a - b t^-power, as learning curves do: each doubling gains less than the one before."""
    curve = [(t, 0.9 - 0.3 * t**-power) for t in np.linspace(1, 60, 600)]
    likely, low, high = gain(curve, more=60.0)
    true = 0.3 * (60.0**-power - 120.0**-power)
    assert 0 < true <= low <= likely <= high
    assert low < 2**1.01 * true  # the doubling before gained 2^power times as much


def test_steps_lie_between_what_is_said():
    random = np.random.default_rng(0)
    inside = []
    for _ in range(200):
        times = np.sort(random.uniform(1, 120, 60))
        scores = np.maximum.accumulate(0.9 - 0.3 * times**-0.5 + random.normal(0, 0.004, 60))
        half = times <= 60
        *_, high = gain([*zip(times[half], scores[half], strict=True)], more=60.0)
        inside.append(scores[-1] - scores[half][-1] <= high + 1e-12)
    assert np.mean(inside) > 0.9


def test_no_gain_is_said_as_none():
    flat = [(1.0, -0.5), (30.0, -0.5)]
    assert sentence(flat, "rmse", -1.0).startswith("Another 60 s would probably not lower the root mean squared error:")
    assert "between" not in sentence([(9.0, 0.5), (20.0, 0.6)], "accuracy", 1.0)  # one doubling was seen


def test_no_more_is_promised_than_the_last_doubling_gave_or_than_there_is():
    late = [(1.0, 0.6), (8.0, 0.6), (16.0, 0.9), (32.0, 0.9)]  # one machine was much better than those before it
    assert gain(late, more=32.0) == (0.0, 0.0, 0.3)
    assert "would probably not raise the accuracy" in sentence(late, "accuracy", 1.0)
    steep = [(1.0, 0.1), (2.0, 0.4), (4.0, 0.7), (8.0, 0.95)]
    assert gain(steep, more=8.0, top=1.0) == (0.05, 0.05, 0.05)
    assert gain([(t, -score) for t, score in [(1.0, 3.0), (2.0, 2.0), (4.0, 1.0)]], more=60.0, top=0.0)[2] == 1.0


def test_an_error_falls():
    curve = [(2.0**k, -(0.5 - 0.01 * k)) for k in range(7)]
    assert sentence(curve, "rmse", -1.0).startswith("Another 60 s would probably lower the root mean squared error by ")
