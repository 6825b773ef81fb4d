"""A limit of time: what is kept for the end, who must go, and what is left out of the report."""

import time

import numpy as np
import polars as pl
import pytest

import empirisk as er
from empirisk.league import judge
from empirisk.league.clock import Clock, Slow, Stopped
from empirisk.league.split import Wishes, plan
from empirisk.linalg.threads import in_threads


def table(rows=200):
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 3))
    return pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": np.where(X[:, 0] > 0, "yes", "no")})


def test_time_is_kept_for_the_refit_and_the_files():
    clock = Clock.of(100.0, time.perf_counter())
    assert 96 < clock.left <= 97
    clock.keep(encoding=4.0, fit=10.0)
    clock.begin_turn(waiting=0)
    assert 71 < clock.left <= 72
    clock.keep(encoding=1.0)
    assert clock.refit == 25.0
    clock.keep(encoding=4.0, fit=10.0, predicting=5.0)
    assert clock.refit == 40.0


def test_more_is_kept_where_others_use_the_machine():
    begin = time.perf_counter() - 8.0
    assert Clock.of(100.0, begin, work=8.0).writing == pytest.approx(3.0, abs=0.1)
    assert Clock.of(100.0, begin, work=4.0).writing == pytest.approx(6.0, abs=0.1)
    assert Clock.of(100.0, begin, work=0.0).writing == 15.0
    assert Clock.of(100.0, begin, work=8.0, tested=60_000).writing == pytest.approx(6.0, abs=0.1)


def test_a_short_limit_leaves_most_of_itself_to_the_contest():
    assert Clock.of(3.0, time.perf_counter()).left > 1.9


def test_without_a_limit_nothing_ends():
    clock = Clock.of(None, time.perf_counter())
    clock.keep(encoding=1e6, fit=1e6)
    clock.begin_turn(waiting=3)
    clock.check(expected=1e9)
    assert clock.rest == np.inf


def test_a_match_that_would_end_too_late_does_not_begin():
    clock = Clock.of(100.0, time.perf_counter())
    clock.begin_turn(waiting=0)
    clock.check(expected=80.0)
    with pytest.raises(Slow):
        clock.check(expected=99.0)
    with pytest.raises(Stopped):
        Clock(end=time.perf_counter()).check()


def test_predictions_end_with_the_time(monkeypatch):
    """Predictions run in pieces, and no piece begins once the turn is over."""
    pieces = []

    def predict(machine, X):
        in_threads(lambda piece: (time.sleep(0.01), pieces.append(piece)), range(100_000))

    monkeypatch.setattr(er.KNNClassifier, "predict", predict)
    found = er.learn(table(), "y", machines=["neighbours", "centroid"], time=5.0)
    assert 0 < len(pieces) < 10_000
    assert found.winner == "centroid"
    standing = next(one for one in found.standings if one.name == "neighbours")
    assert len(standing.scores) == 0
    assert standing.state in ("out", "stopped")


def test_there_is_a_result_however_short_the_time(tmp_path):
    found = er.learn(table(), "y", time=0.001, out=tmp_path / "soon")
    assert found.winner == "baseline"
    assert found.importances == []
    assert found.curve is None
    assert found.warnings[-1] == "The time given left no room for importances and the learning curve."
    assert sorted(path.name for path in tmp_path.iterdir()) == ["soon.model", "soon.report.html"]


def test_looking_at_the_winner_takes_no_longer_than_it_may():
    found = plan(table(3000), Wishes("y"))
    metric = judge.metric_for(None, found.classes, False)
    pipeline = found.pipeline(er.KNNClassifier(k=5)).fit(found.frame[found.train], found.y[found.train])
    assert judge.importances(found, pipeline, metric, 0, seconds=-1.0) == []
    assert judge.importances(found, pipeline, metric, 0)[0][0] == "a"

    class Winner:
        machine = er.NearestCentroid()

    assert judge.curve(found, Winner, metric, 0, once=1.0, seconds=2.0) is None
    assert judge.curve(found, Winner, metric, 0, once=1.0, seconds=-2.0) is None
    short = judge.curve(found, Winner, metric, 0, once=1.0, seconds=4.0)
    assert short is not None
    assert short.validation.shape == (4, 2)
