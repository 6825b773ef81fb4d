"""A limit of time: what is kept for the end, who must go, and what is left out of the report."""

import re
import sys
import time
from threading import Event

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import empirisk as er
from empirisk.league import Listener
from empirisk.league.candidates import everyone as candidates
from empirisk.league.contest.budget import OVER, SLOW, TimeBudget
from empirisk.league.contest.compiling import CompilationListener, listening_to_numba
from empirisk.league.contest.fold import was_cut
from empirisk.league.records import CandidateResult, best_of
from empirisk.league.request import Request
from empirisk.league.rows.encoded_folds import sample
from empirisk.league.rows.split import plan
from empirisk.league.verdict import judge
from empirisk.linalg.threads import parallel_map
from empirisk.stop import Stopped, stopping

#: Run by `make test-all`.
pytestmark = pytest.mark.long


def table(rows=200):
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 3))
    return pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": np.where(X[:, 0] > 0, "yes", "no")})


def test_time_is_kept_for_the_refit_and_the_files():
    clock = TimeBudget(100.0, learned=True)
    assert 93 < clock.left <= 94
    clock.keep(encoding=4.0, fit=10.0)
    clock.begin_turn(waiting=0)
    assert 69 < clock.left <= 70
    clock.keep(encoding=1.0)
    assert clock.refit == 2.5
    clock.keep(encoding=4.0, fit=10.0, predicting=500.0)
    assert clock.refit == 40.0


def test_more_is_kept_where_others_use_the_machine():
    def kept(work, **others):
        return TimeBudget(100.0, time.perf_counter() - 20.0, time.process_time() - work, **others).writing

    assert kept(20.0) == pytest.approx(2.0, abs=0.1)
    assert kept(10.0) == pytest.approx(4.0, abs=0.2)
    assert kept(0.0) == 10.0


def test_the_scores_of_the_test_are_counted():
    clock = TimeBudget(100.0, time.perf_counter() - 20.0, time.process_time() - 10.0, tested=60_000, scoring=1e-4)
    clock.keep(encoding=0.0)
    assert clock.refit == pytest.approx(12.6, abs=0.5)
    clock.keep(encoding=0.0, share=0.5)
    assert clock.refit == pytest.approx(6.6, abs=0.5)


def test_one_thread_may_take_longer_than_several_show():
    """Work on several threads hides how long one of them takes."""
    clock = TimeBudget(100.0, time.perf_counter() - 20.0, time.process_time() - 20.0, pace=4.0)
    assert clock.slowness == 4.0
    assert clock.files == pytest.approx(4.0)


def test_processors_are_judged_by_what_they_do_now():
    clock = TimeBudget(100.0, time.perf_counter() - 20.0, time.process_time() - 4.0)
    assert clock.slowness == pytest.approx(5.0, abs=0.2)
    clock.look_again(pace=7.0)  # others have come
    assert clock.slowness == 7.0
    clock.look_again(pace=1.0)  # they have gone, perhaps for a while
    assert clock.slowness == pytest.approx(2.5, abs=0.2)


class Loaded:
    """A machine that others use: a second of a processor takes five, and time passes only where a test says so."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        modules = ("time", "empirisk.league.run", "empirisk.league.verdict.refit", "empirisk.linalg.threads")
        for name in modules:
            monkeypatch.setattr(sys.modules[name], "perf_counter", lambda: self.now)
        for name in modules[:2]:
            monkeypatch.setattr(sys.modules[name], "process_time", lambda: self.now / 5)
        self.patch = monkeypatch.setattr

    def reading_takes(self, seconds):
        def slowly(*given):
            self.now += seconds
            return plan(*given)

        self.patch(sys.modules["empirisk.league.run"], "plan", slowly)

    def fits_take(self, seconds_of_rows):
        whole = er.LogisticRegression.fit

        def slowly(machine, X, y, sample_weight=None):
            fitted = whole(machine, X, y, sample_weight)  # ends at once where loops are compiled elsewhere
            seconds = seconds_of_rows(X.shape[0])
            self.now += min(seconds, machine.max_time or np.inf)
            if seconds > (machine.max_time or np.inf):
                raise Stopped
            return fitted

        self.patch(er.LogisticRegression, "fit", slowly)


@pytest.fixture
def loaded(monkeypatch):
    with er.config(threads=1):  # the time that passes belongs to one fit
        yield Loaded(monkeypatch)


def test_a_machine_that_learns_plays_even_where_reading_took_all_of_the_time(loaded):
    loaded.reading_takes(29.9)
    loaded.fits_take(lambda rows: rows / 1000)
    found = er.learn(table(4000), "y", time=30.0, machines=["centroid", "logistic"])
    assert found.winner == "logistic"
    assert loaded.now < 33


def test_the_first_machine_that_learns_has_the_time_it_needs(loaded):
    """It takes more than half of what is left, which is the share of a turn otherwise."""
    loaded.reading_takes(20.0)
    loaded.fits_take(lambda rows: 4.0)
    found = er.learn(table(400), "y", time=30.0, machines=["centroid", "logistic"])
    assert found.winner == "logistic"
    assert loaded.now <= 30


def test_more_rows_come_before_pictures(loaded):
    loaded.reading_takes(20.0)
    loaded.fits_take(lambda rows: rows / 4000)
    found = er.learn(table(30_000), "y", time=30.0, machines=["centroid", "logistic"])
    assert found.winner == "logistic"
    assert found.train_rows > 4000
    assert loaded.now <= 30


def test_where_a_turn_is_too_short_for_all_rows_fewer_are_played(loaded):
    heard = Heard()
    loaded.fits_take(lambda rows: rows / 400)
    er.learn(table(30_000), "y", time=60.0, machines=["centroid", "logistic"], listener=heard)
    rows = [one.rows for one in heard.played_so_far if one.name == "logistic"]
    assert rows[0] == 2500
    assert 3750 < max(rows) < 10_000


def test_nothing_is_left_out_for_processors_that_were_busy_once(loaded, monkeypatch):
    """They are looked at again before rows of the test, training rows or parts of the report are left out."""
    loaded.reading_takes(22.0)
    monkeypatch.setattr("empirisk.league.run.pace_now", lambda: 8.0)
    monkeypatch.setattr("empirisk.league.contest.budget.pace_now", lambda: 1.0)
    found = er.learn(table(4000), "y", time=30.0, machines=["centroid", "logistic"])
    assert (found.train_rows, len(found.test.truth)) == (3200, 800)
    assert not [line for line in found.warnings if "ER033" in line]


def test_pictures_are_drawn_where_processors_are_free_again(loaded, monkeypatch, tmp_path):
    for place in ("run", "contest.budget"):
        monkeypatch.setattr(f"empirisk.league.{place}.pace_now", lambda: 1.0)

    def slowly(*_):
        loaded.now += 17.5
        return

    loaded.reading_takes(8.0)
    monkeypatch.setattr("empirisk.league.verdict.judge.curve", slowly)
    er.learn(table(400), "y", time=30.0, machines=["centroid", "logistic"], out=tmp_path / "it")
    page = (tmp_path / "it.report.html").read_text()
    assert "no room for" in page  # the learning curve
    assert "<svg" in page
    assert " pictures: " not in page


def test_few_rows_come_first_where_reading_many_took_long(loaded):
    heard = Heard()
    loaded.reading_takes(24.0)
    er.learn(table(30_000), "y", time=30.0, machines=["logistic"], listener=heard)
    rows = [one.rows for one in heard.played_so_far]
    assert rows[0] == 500


def test_a_fit_without_an_eye_on_the_clock_is_left_behind(monkeypatch):
    free, done = Event(), Event()

    def deaf(machine, X, y, sample_weight=None):
        free.wait(60.0)  # as for a compiler
        done.set()

    monkeypatch.setattr(er.LogisticRegression, "fit", deaf)
    found = er.learn(table(), "y", time=3.0, machines=["logistic", "centroid"])
    assert found.winner == "baseline"
    assert {one.name: one.remark for one in found.standings}["logistic"] == "the time is over"
    assert not done.is_set()
    free.set()
    assert done.wait(60.0)


def test_a_short_limit_leaves_most_of_itself_to_the_contest():
    assert TimeBudget(3.0).left > 1.9


def test_without_a_limit_nothing_ends():
    clock = TimeBudget()
    clock.keep(encoding=1e6, fit=1e6)
    clock.begin_turn(waiting=3)
    assert clock.refusal(expected=1e9) == ""
    assert clock.rest == np.inf
    assert not clock.over


def test_a_match_that_would_end_too_late_does_not_begin():
    clock = TimeBudget(100.0)
    clock.begin_turn(waiting=0)
    assert clock.refusal(expected=80.0) == ""
    assert clock.refusal(expected=99.0) == SLOW
    assert TimeBudget(0.0).refusal() == OVER


def test_no_picture_is_drawn_once_the_time_is_over(tmp_path):
    er.learn(table(), "y", machines=["centroid"], time=1e-3, out=tmp_path / "late")
    page = (tmp_path / "late.report.html").read_text()
    assert re.search(r"The time given left no room for \d+ pictures", page)
    assert page.count("<svg") <= 3  # sparks in the table of columns
    er.learn(table(), "y", machines=["centroid"], time=1e3, out=tmp_path / "soon")
    assert " pictures: " not in (tmp_path / "soon.report.html").read_text()


def test_predictions_end_with_the_time(monkeypatch):
    """Predictions run in pieces, and no piece begins once the turn is over."""
    pieces = []

    def predict(machine, X):
        parallel_map(lambda piece: (time.sleep(0.01), pieces.append(piece)), range(100_000))

    monkeypatch.setattr(er.KNNClassifier, "predict", predict)
    found = er.learn(table(), "y", machines=["neighbours", "centroid"], time=5.0)
    assert 0 < len(pieces) < 10_000
    assert found.winner == "centroid"
    standing = next(one for one in found.standings if one.name == "neighbours")
    assert len(standing.scores) == 0
    assert standing.state in ("late", "stopped")


def test_there_is_a_result_however_short_the_time(tmp_path):
    found = er.learn(table(), "y", time=0.001, out=tmp_path / "soon")
    assert found.winner == "baseline"
    assert {one.name for one in found.standings} == {player.name for player in candidates.CLASSIFIERS}
    assert all(one.remark == "the time is over before its turn" for one in found.standings[2:])
    assert found.importances == []
    assert found.curve is None
    assert found.warnings[-1] == "The time given left no room for importances, effects and the learning curve. [ER033]"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["soon.model", "soon.report.html"]


def test_looking_at_the_winner_takes_no_longer_than_it_may():
    found = plan(Request(table(3000), "y"))
    metric = judge.metric_for(None, found.classes, False)
    pipeline = found.pipeline(er.KNNClassifier(n_neighbors=5)).fit(found.frame[found.train], found.y[found.train])
    assert judge.importances(found, pipeline, metric, 0, seconds=-1.0) == []
    assert judge.importances(found, pipeline, metric, 0)[0][0] == "a"

    class Winner:
        machine = er.NearestCentroid()

    assert judge.curve(found, Winner, metric, 0, once=1.0, seconds=2.0) is None
    assert judge.curve(found, Winner, metric, 0, once=1.0, seconds=-2.0) is None
    short = judge.curve(found, Winner, metric, 0, once=1.0, seconds=4.0)
    assert short is not None
    assert short.validation.shape == (4, 2)


class Heard(Listener):
    """Notes what is done, and how everyone stood each time."""

    def __init__(self):
        self.steps, self.played_so_far = [], []

    def doing(self, what):
        self.steps.append(what)

    def played(self, standing):
        self.played_so_far.append(standing)


@pytest.fixture
def small_rounds(monkeypatch):
    monkeypatch.setattr("empirisk.league.contest.schedule.FIRST_ROWS", 50)


def test_with_a_limit_the_strong_and_cheap_come_first_on_few_rows(small_rounds):
    heard = Heard()
    found = er.learn(table(1000), "y", time=60.0, machines=["centroid", "logistic", "boosting"], listener=heard)
    first = [step for step in heard.steps if "50 rows" in step and "compiling" not in step]
    assert [step.split(",")[0] for step in first] == [
        "Always the most frequent class",
        "Logistic regression",
        "Gradient boosting",
        "Nearest centroid",
    ]
    rows = [one.rows for one in heard.played_so_far if one.name == "logistic"]
    assert rows == sorted(rows)
    assert {50, 200, 640} == set(rows)
    assert {one.state for one in found.standings} == {"done"}
    assert found.model.description["rows"] == 800


def test_a_sample_has_its_share_of_every_class():
    y = np.array(["a"] * 900 + ["b"] * 90 + ["c"] * 10)
    rows = sample(y, 100, 0, np.arange(1000))
    assert dict(zip(*np.unique(y[rows], return_counts=True), strict=True)) == {"a": 90, "b": 9, "c": 5}
    assert np.array_equal(rows, sample(y, 100, 0, np.arange(1000)))
    assert len(sample(np.arange(1000.0), 100, 0, np.arange(1000))) == 100


def test_the_best_is_found_on_the_folds_that_both_have_played():
    easy = CandidateResult("easy", "", 1, scores=np.array([0.9]), state="tried")
    hard = CandidateResult("hard", "", 2, scores=np.array([0.95, 0.5, 0.6]), state="done")
    assert best_of([easy, hard]) is hard


def test_a_fit_that_would_come_too_late_is_not_the_model(monkeypatch, small_rounds):
    """Where the refit takes too long, what was fitted for the winner in the contest is the model, and that is said."""
    whole = er.LogisticRegression.fit

    def fit(machine, X, y, sample_weight=None):
        if X.shape[0] > 40:
            parallel_map(lambda piece: time.sleep(0.01), range(100_000))
        return whole(machine, X, y, sample_weight)

    monkeypatch.setattr(er.LogisticRegression, "fit", fit)
    monkeypatch.setattr("empirisk.league.contest.schedule.FIRST_ROWS", 40)
    begin = time.perf_counter()
    found = er.learn(table(500), "y", time=4.0, machines=["logistic"])
    assert found.winner == "logistic"
    assert not was_cut(found.model.machine)
    assert found.model.machine.max_time is None
    assert found.model.description["rows"] == 40
    assert "The model learned from 40 of 400 training rows: give more time for all of them. [ER033]" in found.warnings
    assert time.perf_counter() - begin < 60  # and not the thousand seconds that one fit would take


def test_what_is_compiled_is_said_timed_and_given_up_in_time():
    from numba import njit

    @njit
    def inner(x):
        return x + 1

    @njit
    def outer(x):
        return 2 * inner(x)

    said, budget = [], TimeBudget(100.0, 0.0, 0.0, now=lambda: 10.0, worked=lambda: 10.0)
    budget.begin_turn(9)
    left = budget.left
    listener = CompilationListener(lambda: said.append("compiling"), passed=budget.extend_turn)
    with listening_to_numba(listener) as compiling:
        with pytest.raises(Stopped), stopping(lambda: True):
            outer(1)
        assert outer(1) == 4
        before = compiling.seconds
        assert outer(2) == 6
        with pytest.raises(Stopped), listening_to_numba(CompilationListener(lambda: None, lambda: "it is too late")):
            outer(1.5)
    assert said == ["compiling"] * 3
    assert compiling.seconds >= before > 0
    assert budget.left == pytest.approx(left + compiling.seconds)  # no turn is shorter for what is done once
    budget.extend_turn(1000.0)
    assert budget.turn == budget.deadline - 25.0  # but compiling leaves time to others


def test_a_turn_goes_on_while_its_loops_are_compiled():
    from numba import njit

    @njit
    def inner(x):
        return x + 3

    @njit
    def outer(x):
        return 2 * inner(x)

    clock = iter(np.arange(10.0, 90.0, 3.0))
    budget = TimeBudget(100.0, 0.0, 0.0, turn=11.0, now=lambda: 10.0, worked=lambda: 10.0)
    late = lambda: next(clock) >= budget.turn  # noqa: E731  every function takes three seconds
    listener = CompilationListener(lambda: None, passed=lambda seconds: budget.extend_turn(3.0))
    with listening_to_numba(listener), stopping(late):
        assert outer(1) == 8


def test_exact_distances_of_sparse_rows_end_with_the_time():
    """Rows whose nearest ones are not certain are compared one by one, and the flag is looked at before each."""
    random = np.random.default_rng(0)
    X = sparse.csr_array((random.random((200, 40)) < 0.1).astype(float))  # equal distances abound
    machine = er.KNNClassifier(n_neighbors=15).fit(X, random.integers(0, 2, 200))
    looks = iter(range(1000))
    with pytest.raises(Stopped), stopping(lambda: next(looks) > 3):
        machine.predict(X)
