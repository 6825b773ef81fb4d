"""A run that was killed goes on where it was, and ends as if nothing had happened."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import empirisk as er
from empirisk.runs.journal import Journal, fingerprint, freeze, pack, thaw, unpack

#: Run by `make test-all`.
pytestmark = pytest.mark.long


class Slow(ClassifierMixin, BaseEstimator):
    """Predicts by one column; takes its time where the environment says so."""

    def __init__(self, column=0, random_state=None):
        self.column = column
        self.random_state = random_state

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.noise_ = np.random.default_rng(self.random_state).normal()
        time.sleep(float(os.environ.get("SECONDS_A_FIT", "0")))
        return self

    def predict(self, X):
        return self.classes_[(X[:, self.column] > 0.1 * self.noise_).astype(int)]


X = np.random.default_rng(0).normal(size=(60, 6))
Y = np.where(X[:, 3] + 0.3 * X[:, 0] > 0, "b", "a")

SCRIPT = """
import sys
import empirisk as er
from tests.runs.test_journal import run
er.config(threads=2)
run(sys.argv[1], sys.argv[2])
"""


def run(kind, journal):
    """A search or an evaluation, which the environment can slow down."""
    machine = Slow()
    space = {"column": [0, 1, 2, 3, 4, 5]}
    if kind == "search":
        return er.selection.search(machine, space, X, Y, cv=3, journal=journal)
    return er.evaluate(er.selection.Search(machine, space, cv=2), X, Y, cv=4, journal=journal)


def killed(kind, path):
    """Start the run in its own process, kill it once two pieces are done, and tear the last line."""
    command = [sys.executable, "-c", SCRIPT, kind, str(path)]
    process = subprocess.Popen(command, env=os.environ | {"SECONDS_A_FIT": "0.2"})
    while not path.exists() or path.read_bytes().count(b"\n") < 3:
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with path.open("ab") as file:
        file.write(b'{"key": "half a li')


@pytest.mark.row("V2")
def test_a_killed_search_resumes_to_the_same_result(tmp_path):
    path = tmp_path / "search.journal"
    killed("search", path)
    done = path.read_bytes().count(b"\n") - 1
    assert 2 <= done < 18
    resumed, whole = run("search", path), run("search", None)
    assert resumed.best_params_ == whole.best_params_ == {"column": 3}
    for name in ("mean_test_score", "std_test_score", "rank_test_score"):
        np.testing.assert_array_equal(resumed.cv_results_[name], whole.cv_results_[name])
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))
    assert path.read_bytes().count(b"\n") == 1 + 18
    before = path.read_bytes()
    run("search", path)  # everything is known
    assert path.read_bytes() == before


@pytest.mark.row("V2")
def test_a_killed_evaluation_resumes_to_the_same_result(tmp_path):
    path = tmp_path / "evaluate.journal"
    killed("evaluate", path)
    resumed, whole = run("evaluate", path), run("evaluate", None)
    np.testing.assert_array_equal(resumed.predictions, whole.predictions)
    assert resumed.parameters == whole.parameters
    for name, score in whole.scores.items():
        assert resumed.scores[name].value == score.value
        assert resumed.scores[name].interval == score.interval
    assert sorted(json.loads(line)["key"] for line in path.read_text().splitlines()[1:]) == list("0123")


ENDLESS = """
import sys
import numpy as np
import empirisk as er

random = np.random.default_rng(0)
X = random.normal(size=(2000, 5))
y = np.where(random.random(2000) < 0.5, "a", "b")
endless = er.SVM(C=1e6, features=er.kernels.Gaussian(3.0), tol=0.0, max_iter=10**9)
er.config(threads=int(sys.argv[1]))
if sys.argv[3] == "search":
    space = [{"C": [1e-6], "features": [None], "tol": [0.1]}, {"C": [1e6]}]
    er.selection.search(endless, space, X, y, cv=2, journal=sys.argv[2])
else:
    search = er.selection.Search(endless, {"C": [1e6]}, cv=2)
    er.evaluate(search, X, y, cv=2, journal=sys.argv[2], scoring="accuracy")
"""


@pytest.mark.row("V2")
@pytest.mark.parametrize(("threads", "kind"), [(1, "search"), (2, "search"), (2, "nested")])
def test_ctrl_c_ends_fits_in_every_thread(threads, kind, tmp_path):
    """Fits without an end are ended, none of them passes for a finished one, and the journal is whole."""
    path = tmp_path / "journal"
    command = [sys.executable, "-c", ENDLESS, str(threads), str(path), kind]
    finished = 2 if kind == "search" else 0
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not path.exists() or path.read_bytes().count(b"\n") < 1 + finished:
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(1.0)  # into the fits that never end
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert said.rstrip().splitlines()[-1].startswith("empirisk.errors.Interrupted: Search was interrupted")
    assert "ConvergenceWarning" not in said
    lines = path.read_text().splitlines()
    assert len(lines) == 1 + finished
    assert all(json.loads(line) for line in lines)


def test_a_foreign_journal_is_refused(tmp_path):
    path = tmp_path / "journal"
    er.evaluate(er.Ridge(), X, X[:, 0], journal=path)
    with pytest.raises(er.errors.EmpiriskError, match="was written for other data, other parameters"):
        er.evaluate(er.Ridge(C=2.0), X, X[:, 0], journal=path)
    with pytest.raises(er.errors.EmpiriskError, match="was written for other data"):
        er.evaluate(er.Ridge(), X, X[:, 1], journal=path)
    text = tmp_path / "notes.txt"
    text.write_text("milk, bread\n")
    with pytest.raises(er.errors.EmpiriskError, match="cannot be read at line 1; give another path, or delete"):
        er.evaluate(er.Ridge(), X, X[:, 0], journal=text)
    text.write_text('{"kind": "list"}\n')
    with pytest.raises(er.errors.EmpiriskError, match="is no journal of Empirisk"):
        er.evaluate(er.Ridge(), X, X[:, 0], journal=text)
    with pytest.raises(er.errors.EmpiriskError, match="give evaluate"):
        er.evaluate(er.selection.Search(er.Ridge(), {"C": [1.0]}, journal=path), X, X[:, 0])


def test_a_header_cut_short_starts_afresh(tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(b'{"kind": "empi')
    er.evaluate(er.Ridge(), X, X[:, 0], journal=path)
    assert len(path.read_text().splitlines()) == 6


def test_what_is_packed_comes_back_to_the_last_bit():
    for array in (np.array([0.1, np.nan, -0.0, np.inf]), np.arange(6, dtype=np.int32).reshape(2, 3)):
        again = unpack(json.loads(json.dumps(pack(array))))
        assert again.dtype == array.dtype
        assert again.tobytes() == array.tobytes()
    part = er.losses.Hinge()
    for value in (None, 1, 0.1, "text", [1, [2.5]], {"a": True}, part):
        assert repr(thaw(json.loads(json.dumps(freeze(value))), [part])) == repr(value)


def test_fingerprints_tell_data_and_parameters_apart(tmp_path):
    things = [1, 1.5, "1", X, X + 1, X.astype(np.float32), [X], er.Ridge(), er.Ridge(C=3.0), er.Lasso(), {"C": [1]}]
    assert len({fingerprint(thing) for thing in things}) == len(things)
    notes = Journal(tmp_path / "j", lambda: "mark")
    notes.add("a", [0.1])
    assert Journal(tmp_path / "j", lambda: "mark").done == {"a": [0.1]}
