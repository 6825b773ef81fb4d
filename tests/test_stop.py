"""One way to stop: endings, deadlines, Ctrl-C and requests; every kind of estimator keeps its best point and raises."""

import os
import pickle
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from numba import njit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

import empirisk as er
from empirisk import stop
from empirisk.errors import EmpiriskError, Interrupted
from empirisk.stop import Deadline, Ending, InterruptCounter, Stopped, batch, interruptible, keeping, requested

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(300, 6))
CLASSES = (X[:, 0] * X[:, 1] + 0.3 * RANDOM.normal(size=300) > 0).astype(int)


def press():
    os.kill(os.getpid(), signal.SIGINT)


class After:
    """Says stop when it was asked some times."""

    def __init__(self, times):
        self.left = times

    def __call__(self):
        self.left -= 1
        return self.left < 0


# --- words ------------------------------------------------------------------------------------------------------------


def words():
    return {name: value for name, value in vars(Ending).items() if name.isupper()}


def test_endings_are_different_words():
    assert len(set(words().values())) == len(words())
    assert all(value == name.lower() for name, value in words().items())


def test_remedies_are_for_endings_and_are_told_with_them():
    assert set(stop.REMEDIES) | set(stop.FUNCTION_REMEDIES) | stop.CUT <= set(words().values())
    with pytest.warns(ConvergenceWarning, match=r"^It was cut; raise max_time\. \[ER002\]$") as told:
        assert stop.warn_of(Ending.MAX_TIME, "It was cut")
    assert told[0].filename == __file__
    with er.config(interrupt="keep"), pytest.warns(ConvergenceWarning, match=r"^It was cut; fit again\. \[ER003\]$"):
        assert stop.warn_of(Ending.INTERRUPTED, "It was cut")
    assert stop.warn_of(Ending.INTERRUPTED, "It was cut")  # it is raised, so that a warning would say it twice


# --- deadlines --------------------------------------------------------------------------------------------------------


def test_a_deadline_says_why_it_is_over():
    assert not Deadline()()
    assert Deadline().left() is None
    assert not Deadline(100.0)()
    assert 99 < Deadline(100.0).left() <= 100
    late = Deadline(1.0, time.perf_counter() - 2.0)
    assert late()
    assert late.reason == Ending.MAX_TIME
    assert 0 < late.left() < 1e-6
    with stop.listening_to(lambda: True):
        asked = Deadline(1.0, time.perf_counter() - 2.0)
        assert asked()
    assert asked.reason == Ending.INTERRUPTED
    assert asked()  # and that remains so
    assert late.reason == Ending.MAX_TIME


def test_shares_of_a_deadline_begin_with_it():
    half = Deadline(10.0, 50.0).share(0.5)
    assert (half.start, half.end) == (50.0, 55.0)
    assert Deadline().share(0.5).left() is None


def test_work_is_given_up_where_the_flag_says_so():
    with stop.stopping(After(1)):
        stop.check_stop()
        with pytest.raises(Stopped):
            stop.check_stop()
    stop.check_stop()


def test_a_flag_is_kept_beside_a_request():
    with stop.stopping(lambda: True):
        assert stop.flag_or_request()()
    assert not stop.flag_or_request()()
    with stop.listening_to(lambda: True):
        assert stop.flag_or_request()()


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def kept():
    with er.config(interrupt="keep"):
        yield


def test_the_first_press_is_a_request_and_the_second_raises(kept):
    before = signal.getsignal(signal.SIGINT)
    with interruptible():
        assert not requested()
        press()
        assert requested()
        with pytest.raises(KeyboardInterrupt):
            press()
    assert signal.getsignal(signal.SIGINT) is before
    assert not requested()


def test_work_within_work_shares_the_request(kept):
    with interruptible():
        with interruptible():
            press()
            assert requested()
        assert requested()
        with pytest.raises(KeyboardInterrupt):
            press()
        with interruptible():
            assert requested()  # all that is left of this fit ends too
    with interruptible():
        assert not requested()


def test_a_press_at_the_very_end_is_raised_there_and_nowhere_else(monkeypatch):
    # The press comes when the old handler has its place again.
    install, left = signal.signal, []

    def swap(number, handler):
        result = install(number, handler)
        if handler is signal.default_int_handler and left:
            left.pop()
            press()
        return result

    monkeypatch.setattr(stop.signal, "signal", swap)
    for _ in range(20):
        left.append(1)
        with pytest.raises(Interrupted), interruptible():
            assert not requested()
        assert not left
    monkeypatch.undo()
    with interruptible():
        assert not requested()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class PressedOn:
    """A context variable during whose first change Ctrl-C is pressed."""

    def __init__(self, real):
        self.get, self.real, self.left = real.get, real, 1

    def set(self, value):
        token = self.real.set(value)
        if self.left:
            self.left = 0
            press()
        return token


def test_a_press_at_the_very_beginning_leaves_no_request_for_the_next_fit(monkeypatch):
    variable = PressedOn(stop._work)
    monkeypatch.setattr(stop, "_work", variable)
    machine = er.SVM()
    with pytest.raises(KeyboardInterrupt):
        machine.fit(X, CLASSES)
    assert not variable.left
    assert variable.get() is None
    assert machine.fit(X, CLASSES).stopped_ == "converged"


def test_a_press_as_soon_as_a_fit_listens_ends_it_and_not_the_next(monkeypatch):
    install, left = signal.signal, [1]

    def swap(number, handler):
        result = install(number, handler)
        if left:
            left.pop()
            press()
        return result

    monkeypatch.setattr(stop.signal, "signal", swap)
    machine = er.SVM()
    with pytest.raises(Interrupted):
        machine.fit(X, CLASSES)
    assert not left
    assert machine.stopped_ == "interrupted"
    assert machine.fit(X, CLASSES).stopped_ == "converged"


def test_an_interrupt_is_raised_when_the_work_is_done():
    done = []

    def work():
        with keeping("It") as interrupt:
            with interruptible():
                press()
            done.append(1)
            interrupt.kept = done

    with pytest.raises(Interrupted, match=r"It was interrupted and keeps the best point so far; er.config") as raised:
        work()
    assert raised.value.kept is done
    assert pickle.loads(pickle.dumps(raised.value)).args == raised.value.args


@pytest.mark.parametrize("error", [Stopped, Interrupted])
def test_work_that_is_given_up_keeps_nothing_and_says_so(error, kept):
    def work():
        with keeping("It"), interruptible():
            press()
            raise error

    with pytest.raises(Interrupted, match="It was interrupted before there was a point to keep; it is as it was"):
        work()


def test_work_that_is_given_up_for_other_reasons_is_no_interrupt():
    with pytest.raises(Stopped), keeping("It"), interruptible():
        raise Stopped


def test_an_interrupt_ends_a_batch_whatever_is_configured(kept):
    with batch() as event:
        with pytest.raises(Interrupted), interruptible():
            press()
        assert event.is_set()
        with pytest.raises(Interrupted), interruptible():
            assert requested()


def test_a_batch_within_interrupted_work_ends_at_once(kept):
    with keeping("It"):
        with interruptible():
            press()
        with batch(), pytest.raises(Interrupted), interruptible():
            assert requested()


def test_a_batch_leaves_the_request_of_others_alone():
    with stop.listening_to(lambda: True), batch(), interruptible():
        assert requested()


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_process_that_ignores_the_signal_goes_on_doing_so(handler):
    before = signal.signal(signal.SIGINT, handler)
    try:
        with interruptible():
            assert signal.getsignal(signal.SIGINT) is handler
            assert not requested()
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_hear_no_signal():
    found = []

    def work():
        with interruptible():
            found.append(requested())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]


def test_a_counter_counts_two_and_then_ignores():
    with InterruptCounter() as interrupts:
        press()
        assert (interrupts.first.is_set(), interrupts.second.is_set()) == (True, False)
        with pytest.raises(KeyboardInterrupt):
            press()
        assert interrupts.second.is_set()
        with pytest.raises(KeyboardInterrupt):
            interrupts.ignore_interrupts()
        press()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_counters_stand_within_each_other():
    with InterruptCounter() as outer, InterruptCounter() as inner:
        press()
        assert (outer.first.is_set(), inner.first.is_set()) == (False, True)
        press()
        assert outer.first.is_set()
        with pytest.raises(KeyboardInterrupt):
            press()


def test_a_request_from_before_lets_a_fit_end_with_what_it_has(kept):
    with interruptible():
        press()
        assert njit(lambda x: x + 1)(3) == 4  # what the end of a fit needs is compiled
        assert requested()


# --- a callable -------------------------------------------------------------------------------------------------------


def test_a_callable_asks_once_and_for_all(kept):
    answers = iter([False, True, False])
    with er.config(stop=lambda: next(answers)), interruptible():
        assert [requested(), requested(), requested()] == [False, True, True]
    assert not requested()


def test_what_is_no_way_to_stop_is_refused():
    with pytest.raises(EmpiriskError, match="interrupt='ignore' must be 'raise' or 'keep'"):
        er.config(interrupt="ignore")
    with pytest.raises(EmpiriskError, match="stop=3 must be a function"):
        er.config(stop=3)


def test_a_callable_stops_a_fit_in_another_thread():
    machine, raised, begun = er.SVM(solver="gradient_descent", max_iter=10**9, tol=0.0), [], threading.Event()
    asked = threading.Event()

    def fit():
        def stopped():
            begun.set()
            return asked.is_set()

        with er.config(stop=stopped):
            try:
                machine.fit(X, CLASSES)
            except KeyboardInterrupt as interrupt:
                raised.append(interrupt)

    thread = threading.Thread(target=fit)
    thread.start()
    assert begun.wait(60)
    asked.set()
    thread.join(60)
    assert not thread.is_alive()
    assert raised[0].kept is machine
    assert machine.stopped_ == "interrupted"
    assert machine.predict(X).shape == CLASSES.shape


# --- every kind -------------------------------------------------------------------------------------------------------


def drawn(columns, random):
    weights = random.normal(size=columns)
    return lambda A: A @ weights


ENDLESS = {"max_iter": 10**9, "tol": 0.0}
KINDS = {
    "convex": er.SVM(solver="gradient_descent", **ENDLESS),
    "kernel": er.SVM(C=100.0, features=er.kernels.Gaussian(), tol=0.0),
    "regression": er.Lasso(solver="proximal", **ENDLESS),
    "one class": er.OneClassSVM(features=er.kernels.Gaussian(), tol=0.0),
    "parametric": er.Parametric(lambda A, t: A @ t, np.zeros(6), max_iter=10**9, tol=0.0, method="adam"),
    "choice of C": er.LogisticRegression(C="cv"),
    "tree": er.TreeRegressor(),
    "forest": er.ForestClassifier(n_estimators=10**6),
    "boosting": er.BoostingClassifier(n_estimators=10**6),
    "additive": er.AdditiveClassifier(max_iter=10**6, tol=0.0, n_iter_no_change=10**6),
    "AdaBoost": er.AdaBoostClassifier(n_estimators=10**6),
    "bagging": er.BaggingClassifier(er.SVM(), n_estimators=10**6),
    "k-means": er.KMeans(20, n_init=1000, random_state=0),
    "mixture": er.GaussianMixture(3, n_init=1000, tol=0.0, max_iter=10**6, random_state=0),
    "hierarchy": er.Hierarchical(),
    "PCA": er.PCA(2),
    "dictionary": er.Dictionary(4, max_iter=10**6, tol=0.0, random_state=0),
    "metric": er.ContrastiveMetric(max_iter=10**6, tol=0.0),
    "network": er.LogisticRegression(features=er.Network([8], epochs=10**6, random_state=0)),
    "autoencoder": er.PCA(2, features=er.Network([8], epochs=10**6, random_state=0)),
    "best subset": er.selection.BestSubset(12),
    "hypotheses": er.selection.HypothesisSearch(drawn, n_draws=10**6, random_state=0),
}


#: Rows and columns that are too many to be done with before anybody asks.
WIDE = RANDOM.normal(size=(3000, 40))
NUMBERS = ("regression", "parametric", "tree", "best subset")


def rows_for(kind):
    rows = WIDE if kind in ("hierarchy", "PCA", "best subset", "tree") else X
    numbers = rows[:, 0] + rows[:, 1] + RANDOM.normal(size=len(rows))
    return rows, numbers if kind in NUMBERS else (numbers > 0).astype(int)


def begun(kind):
    """A machine of the kind whose loops are compiled: where they are not, an interrupt has nothing to keep."""
    few = {"n_estimators": 2} if hasattr(KINDS[kind], "n_estimators") else {"max_time": 0.01}
    with warnings.catch_warnings(action="ignore"):
        clone(KINDS[kind]).set_params(**few).fit(*rows_for(kind))
    return clone(KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_keeps_its_best_point_and_raises(kind):
    machine, (rows, target) = begun(kind), rows_for(kind)
    asked = After(0 if rows is WIDE else 12)
    with er.config(stop=asked), pytest.raises(KeyboardInterrupt, match="was interrupted and keeps the best") as raised:
        machine.fit(rows, target)
    assert raised.value.kept is machine
    assert machine.stopped_ == "interrupted"
    answer = machine.predict if hasattr(machine, "predict") else getattr(machine, "transform", None)
    assert len(machine.labels_ if answer is None else answer(rows)) == len(rows)


@pytest.mark.parametrize("kind", ["convex", "choice of C", "forest", "k-means", "dictionary"])
def test_every_kind_can_be_returned_instead(kind):
    machine, (rows, target) = begun(kind), rows_for(kind)
    with er.config(stop=After(4), interrupt="keep"), pytest.warns(ConvergenceWarning, match="interrupted"):
        assert machine.fit(rows, target) is machine
    assert machine.stopped_ == "interrupted"


def test_functions_raise_with_what_they_found():
    (problem,) = er.SVM().problems(X, CLASSES)
    with er.config(stop=After(5)), pytest.raises(KeyboardInterrupt, match="solve was interrupted") as raised:
        er.solve(problem, "gradient_descent", tol=0.0, max_iter=10**9)
    assert raised.value.kept.certificate.status == "interrupted"
    with er.config(stop=After(5)), pytest.raises(KeyboardInterrupt, match="minimise was interrupted") as raised:
        er.minimise(lambda x: (x - 2.0) ** 2, 0.0, "adam", tol=0.0, max_iter=10**9)
    assert raised.value.kept.stopped == "interrupted"


# --- searches and loops of others end ---------------------------------------------------------------------------------


class Pressing(er.SVM):
    """Counts its fits, and is interrupted in the first."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        type(self).fits += 1
        with er.config(stop=lambda: True):
            return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    "ask",
    [
        lambda machine: GridSearchCV(machine, {"C": [0.1, 1.0, 10.0]}, cv=5).fit(X, CLASSES),
        lambda machine: cross_val_score(machine, X, CLASSES, cv=5),
        lambda machine: [clone(machine).fit(X, CLASSES) for _ in range(5)],
        lambda machine: er.selection.Search(machine, {"tol": [0.1, 0.01]}).fit(X, CLASSES),
        lambda machine: er.evaluate(machine, X, CLASSES),
    ],
    ids=["GridSearchCV", "cross_val_score", "loop", "Search", "evaluate"],
)
def test_an_interrupt_ends_what_asked_for_the_fit(ask):
    Pressing.fits = 0
    with pytest.raises(KeyboardInterrupt), er.config(threads=1):
        ask(Pressing())
    assert Pressing.fits == 1


def test_a_search_that_is_interrupted_in_its_last_fit_holds_it():
    search = er.selection.Search(er.SVM(), {"C": [0.1, 1.0]})
    search.fit(X, CLASSES)
    best = search.best_params_
    with (
        er.config(stop=lambda: hasattr(search, "cv_results_")),
        pytest.raises(KeyboardInterrupt, match="Search was interrupted and keeps"),
    ):
        search.fit(X, CLASSES)
    assert search.best_params_ == best
    assert search.estimator_.stopped_ == "interrupted"


def test_a_search_that_is_interrupted_before_is_as_it_was():
    search = er.selection.Search(er.SVM(), {"C": [0.1, 1.0]}).fit(X, CLASSES)
    before = search.estimator_
    with er.config(stop=lambda: True), pytest.raises(KeyboardInterrupt, match="Search was interrupted before"):
        search.fit(X, CLASSES)
    assert search.estimator_ is before


def test_machines_of_others_are_interrupted_as_usual():
    class Slow(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            press()
            raise AssertionError("Ctrl-C was lost")

    with pytest.raises(KeyboardInterrupt):
        er.selection.Search(Slow(), {"C": [0.1, 1.0]}).fit(X, CLASSES)


def test_a_partial_fit_that_is_interrupted_says_whether_it_moved():
    machine = er.KMeans(2, random_state=0).partial_fit(X[:100])
    before = machine.cluster_centers_.copy()
    with er.config(stop=lambda: True), pytest.raises(KeyboardInterrupt), warnings.catch_warnings():
        machine.partial_fit(X[100:])
    assert machine.cluster_centers_.shape == before.shape
