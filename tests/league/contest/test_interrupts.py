"""Ctrl-C: the first finishes with what is done, the second ends all; no fit that was cut is the model, or scored."""

import itertools
import signal
import threading
import time

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.learn import Screen
from empirisk.cli.main import app
from empirisk.league import Listener
from empirisk.league.candidates import everyone as candidates
from empirisk.league.candidates.everyone import Candidate
from empirisk.league.contest.fold import was_cut

#: Run by `make test-all`.
pytestmark = pytest.mark.long

FOLDS = 5


def press(times=1):
    for _ in range(times):
        signal.raise_signal(signal.SIGINT)


def table(rows=200):
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 3))
    return pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": np.where(X[:, 0] > 0, "yes", "no")})


@pytest.fixture
def learn(monkeypatch, tmp_path):
    """Learn with one machine, and with Ctrl-C, or another request to stop, in one of its fits."""
    players = (candidates.CLASSIFIERS[0], Candidate("pressed", "Pressed", lambda size: [er.LogisticRegression()]))
    monkeypatch.setattr(candidates, "CLASSIFIERS", players)
    whole = er.LogisticRegression.fit

    def run(at, times=1, ask=press, jobs=1):
        fits = itertools.count(1)

        def fit(machine, X, y, sample_weight=None):
            if next(fits) == at:
                ask(times)
            return whole(machine, X, y, sample_weight)

        monkeypatch.setattr(er.LogisticRegression, "fit", fit)
        return er.learn(table(), "y", out=tmp_path / "it", jobs=jobs)

    return run


def written(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".journal")


def test_a_fit_of_the_contest_that_was_cut_has_no_score(learn, tmp_path):
    found = learn(at=3)
    standing = next(one for one in found.standings if one.name == "pressed")
    assert (standing.state, standing.remark, len(standing.scores)) == ("stopped", "interrupted", 2)
    assert found.winner == "baseline"
    assert found.warnings[-1] == "Ctrl-C left no room for importances, effects and the learning curve. [ER033]"
    assert written(tmp_path) == ["it.model", "it.report.html"]


def test_one_of_several_fits_that_were_cut_has_no_score(learn):
    found = learn(at=2, jobs=2, ask=lambda times: (press(times), time.sleep(0.3)))
    standing = next(one for one in found.standings if one.name == "pressed")
    assert (standing.state, standing.remark) == ("stopped", "interrupted")
    assert len(standing.scores) <= 2
    assert found.winner == "baseline"


def test_the_final_fit_is_whole_after_the_first(learn, tmp_path):
    found = learn(at=FOLDS + 1)
    assert found.winner == "pressed"
    assert found.model.machine.stopped_ == "converged"
    assert found.importances == []
    assert found.curve is None
    assert written(tmp_path) == ["it.model", "it.report.html"]


@pytest.mark.parametrize("at", [3, FOLDS + 1])
def test_a_callable_ends_it_as_one_ctrl_c_does(learn, tmp_path, at):
    asked = threading.Event()
    with er.config(stop=asked.is_set):  # and goes on asking for it
        found = learn(at, ask=lambda times: asked.set())
    assert found.winner == ("baseline" if at == 3 else "pressed")
    assert found.warnings[-1] == "Ctrl-C left no room for importances, effects and the learning curve. [ER033]"
    assert written(tmp_path) == ["it.model", "it.report.html"]


@pytest.mark.parametrize("at", [3, FOLDS + 1])
def test_the_second_writes_nothing(learn, tmp_path, at):
    with pytest.raises(KeyboardInterrupt):
        learn(at, times=2)
    assert written(tmp_path) == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_between_fits(tmp_path):
    class Impatient(Listener):
        said = ""

        def played(self, standing):
            if standing.name == "centroid" and standing.state == "done":
                press()

        def stopped(self, reason):
            self.said = reason

    impatient = Impatient()
    found = er.learn(table(), "y", machines=["centroid", "logistic"], listener=impatient, out=tmp_path / "it")
    assert impatient.said == "interrupted"
    assert {one.name: one.state for one in found.standings} == {
        "baseline": "done",
        "centroid": "done",
        "logistic": "stopped",
    }


def test_before_anything_is_done_there_is_nothing_to_finish(tmp_path):
    class Hasty(Listener):
        def played(self, standing):
            press()

    with pytest.raises(KeyboardInterrupt):
        er.learn(table(), "y", listener=Hasty(), out=tmp_path / "it")
    assert written(tmp_path) == []


def test_a_second_ends_the_command_with_130(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Screen, "chosen", lambda screen, standing: press(2))
    result = CliRunner().invoke(app, ["learn", "iris", "--machines", "centroid"])
    assert result.exit_code == 130
    assert written(tmp_path) == []


@pytest.mark.parametrize(
    "machine",
    [er.ForestClassifier(300), er.BoostingClassifier(n_estimators=300), er.LogisticRegression(C=1e6, tol=1e-12)],
    ids=lambda machine: type(machine).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_why_a_fit_ended_is_a_value(machine):
    X, y = table(2000).select("a", "b", "c").to_numpy(), table(2000)["y"].to_numpy()
    assert was_cut(machine.set_params(max_time=1e-9).fit(X, y))
    assert not was_cut(machine.set_params(max_time=None).fit(X[:50], y[:50]))
