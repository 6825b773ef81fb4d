"""What the four ensembles on bins share: weights, threads, files, limits, odd tables."""

import pickle
import signal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.settings import config
from tests.callbacks import Watching

pytestmark = [pytest.mark.row("T6"), pytest.mark.row("T8")]

MACHINES = [er.ForestClassifier, er.ForestRegressor, er.BoostingClassifier, er.BoostingRegressor]
FORESTS = MACHINES[:2]


def problem(kind, n=300, classes=3):
    if kind in (er.ForestClassifier, er.BoostingClassifier):
        return make_classification(n, 6, n_informative=4, n_classes=classes, flip_y=0.1, random_state=0)
    return make_regression(n, 6, noise=10.0, random_state=0)


def answers(machine, X):
    return machine.predict_proba(X) if is_classifier(machine) else machine.predict(X)


def small(kind, n_estimators=12, **options):
    return kind(n_estimators=n_estimators, random_state=0, **options)


@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("options", [{}, {"max_features": 0.5}])
def test_weights_are_counts_of_rows_and_zero_is_absence(kind, options):
    X, y = problem(kind)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = small(kind, **options).fit(X, y, sample_weight=times)
    repeated = small(kind, **options).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(answers(weighted, X), answers(repeated, X), rtol=1e-9)


@pytest.mark.parametrize(
    "options",
    [{"subsample": 0.6}, {"early_stopping": True, "validation_fraction": 0.3}, {"class_weight": "balanced"}],
    ids=lambda options: next(iter(options)),
)
def test_draws_and_class_weights_keep_weights_as_counts(options):
    X, y = problem(er.BoostingClassifier)
    times = np.random.default_rng(1).integers(1, 4, len(y))
    weighted = small(er.BoostingClassifier, **options).fit(X, y, sample_weight=times)
    repeated = small(er.BoostingClassifier, **options).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.n_estimators_ == repeated.n_estimators_
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("kind", MACHINES)
def test_threads_do_not_change_a_bit(kind):
    X, y = problem(kind, n=20_000)
    X[::7, 2] = np.nan
    fitted = []
    for threads in (1, 2, 3):
        with config(threads=threads):
            fitted.append(small(kind, n_estimators=5).fit(X, y))
    for other in fitted[1:]:
        for name, array in fitted[0].packed_.items():
            assert np.array_equal(array, other.packed_[name], equal_nan=True), name
        assert np.array_equal(answers(fitted[0], X), answers(other, X))


def columns_with_words(n=600):
    random = np.random.default_rng(3)
    X = pd.DataFrame({"x": random.normal(size=n), "word": random.choice(list("abcdefgh"), n)})
    X.loc[random.random(n) < 0.2, "x"] = np.nan
    X["word"] = X["word"].where(random.random(n) > 0.1, None)
    y = X["word"].isin(["b", "c", "g"]) ^ (X["x"].isna() | (X["x"] > 0.5))
    return X, y.to_numpy().astype(int)


@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("classes", [2, 3])
def test_files_are_small_and_predict_the_same(kind, classes):
    tables = [problem(kind, n=3000, classes=classes)]
    if classes == 2:
        tables.append(columns_with_words(3000))
    for X, y in tables:
        machine = small(kind, n_estimators=30).fit(X, y)
        file, by_row = pickle.dumps(machine), vars(machine).get("oob_decision_function_", np.zeros((len(y), 1)))
        assert len(file) <= 24 * len(machine.nodes_) + by_row.nbytes + 4000  # out-of-bag answers, parameters, names
        assert np.array_equal(answers(pickle.loads(file), X), answers(machine, X))


@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("limit", [{}, {"max_leaf_nodes": 9}])
def test_predictions_are_those_of_the_public_nodes(kind, limit):
    X, y = columns_with_words()
    machine = small(kind, **limit).fit(X, y)
    codes = np.column_stack([X["x"], pd.Categorical(X["word"], categories=list("abcdefgh")).codes]).astype(float)
    codes[codes[:, 1] < 0, 1] = np.nan
    mean = machine.nodes_.predict(codes)[:, 0]
    expected = mean if kind in FORESTS else machine.baseline_[0] + machine.n_estimators_ * mean
    found = machine.decision_function(X) if kind is er.BoostingClassifier else np.atleast_2d(answers(machine, X).T)[-1]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_categories_and_missing_values_are_learned_and_unseen_ones_are_missing(kind, frame):
    X, y = columns_with_words(2000)
    table = X if frame is pd.DataFrame else pl.from_pandas(X)
    machine = kind(n_estimators=60, random_state=0, max_features=None).fit(table, y)
    assert machine.score(table, y) > 0.97
    new = {"x": [0.0, 0.0, None], "word": ["never seen", None, "a"]}
    found = answers(machine, frame(new))
    assert np.array_equal(found[0], found[1])
    assert np.isfinite(found).all()


@pytest.mark.parametrize("kind", MACHINES)
def test_one_split_divides_categories_named_by_the_user(kind):
    codes = np.tile(np.arange(10.0), 30)
    X, y = np.column_stack([codes, np.sin(codes)]), np.isin(codes, [1, 4, 7, 8]).astype(int)
    rate = {} if kind in FORESTS else {"learning_rate": 1.0, "l2_regularization": 0.0}
    options = {"max_leaf_nodes": 2, "max_features": None, **rate}
    assert small(kind, n_estimators=1, categorical_features=[0], **options).fit(X, y).score(X, y) == 1.0
    assert small(kind, n_estimators=1, **options).fit(X, y).score(X, y) < 0.9


@pytest.mark.parametrize("kind", MACHINES)
def test_sparse_tables_are_the_same_tables(kind):
    X, y = problem(kind)
    X[np.abs(X) < 0.5] = 0.0
    whole, sparse = small(kind).fit(X, y), small(kind).fit(csr_array(X), y)
    assert np.array_equal(answers(whole, X), answers(sparse, csr_array(X)))


@pytest.mark.parametrize("kind", MACHINES)
def test_odd_tables(kind):
    X, y = problem(kind)
    empty = np.column_stack([X, np.full(len(X), np.nan), np.ones(len(X))])
    assert np.isfinite(answers(small(kind).fit(empty, y), empty)).all()
    nothing = small(kind).fit(np.full((20, 2), np.nan), y[:20])
    assert len(np.unique(answers(nothing, [[1.0, np.nan], [np.nan, 2.0]]), axis=0)) == 1
    for rows in (1, 2, 20):
        constant = small(kind).fit(X[:rows], np.full(rows, 3.0))
        assert constant.predict(X[:2]).tolist() == [3.0, 3.0]
    assert small(kind).fit(X[:2], y[:2]).predict(X).shape == (len(X),)


@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scales_of_columns_do_not_matter(kind, scale):
    X, y = problem(kind)
    options = {"bootstrap": False} if kind in FORESTS else {}  # samples depend on the content of the rows
    plain, scaled = small(kind, **options).fit(X, y), small(kind, **options).fit(X * scale, y)
    np.testing.assert_allclose(answers(scaled, X * scale), answers(plain, X), rtol=1e-9)


class Watcher(Watching):
    """A callback that counts pieces of a fit, and after some of them stops it or presses Ctrl-C."""

    def __init__(self, after, press=False):
        self.ended, self.after, self.press = 0, after, press

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        if context.task_name in ("tree", "round"):
            self.ended += 1
            assert fitted_estimator.n_estimators_ == self.ended
            assert np.isfinite(fitted_estimator.predict(np.zeros((1, 6)))).all()
            if self.press and self.ended == self.after:
                signal.raise_signal(signal.SIGINT)
        return not self.press and self.ended >= self.after


@pytest.mark.parametrize("kind", MACHINES)
def test_callbacks_follow_and_stop_a_fit(kind):
    X, y = problem(kind)
    machine = small(kind).set_callbacks(Watcher(5)).fit(X, y)
    assert np.array_equal(answers(machine, X), answers(small(kind, n_estimators=5).fit(X, y), X))


@pytest.mark.parametrize("kind", MACHINES)
def test_an_interrupt_keeps_what_is_there(kind):
    X, y = problem(kind)
    machine = small(kind).set_callbacks(Watcher(3, press=True))
    with er.config(interrupt="keep"), pytest.warns(ConvergenceWarning, match=r"interrupted\) after 3 of 12") as caught:
        machine.fit(X, y)
    assert caught[0].filename == __file__
    assert machine.n_estimators_ == 3
    assert answers(machine, X).shape[0] == len(X)


@pytest.mark.parametrize("kind", MACHINES)
def test_time_ends_a_fit(kind):
    X, y = problem(kind)
    machine = kind(n_estimators=100_000, max_time=0.3)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine.fit(X, y)
    assert machine.n_estimators_ < 100_000
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine.set_params(max_time=1e-9).fit(X, y)
    assert machine.n_estimators_ <= 1
    assert np.isfinite(answers(machine, X)).all()


@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_estimators": 0}, "n_estimators=0 must be"),
        ({"max_leaf_nodes": 1}, "max_leaf_nodes=1 must be"),
        ({"max_depth": 0.5}, "max_depth=0.5 must be"),
        ({"max_features": 1.5}, "max_features=1.5 must be"),
        ({"max_bins": 256}, "max_bins=256 must be"),
        ({"min_samples_leaf": -1}, "min_samples_leaf=-1 must be"),
        ({"min_impurity_decrease": np.nan}, "min_impurity_decrease=nan must be"),
        ({"max_time": 0}, "max_time=0 must be"),
        ({"categorical_features": ["no such column"]}, "categorical_features names 'no such column'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_parameters_without_meaning_are_refused_and_leave_the_machine_as_it_was(kind, options, message):
    X, y = problem(kind)
    machine = small(kind).fit(X, y)
    before = answers(machine, X)
    with pytest.raises(EmpiriskError, match=message):
        machine.set_params(**options).fit(X[:, :3], y)
    assert np.array_equal(answers(machine, X), before)


@pytest.mark.parametrize("kind", [er.ForestClassifier, er.BoostingClassifier])
def test_class_weights_are_weights(kind):
    X, y = problem(kind)
    by_class = small(kind, class_weight={0: 2.0}).fit(X, y)
    share = by_class.predict_proba(X)[:, 0].mean()
    assert share > small(kind).fit(X, y).predict_proba(X)[:, 0].mean() + 0.01
    with pytest.raises(EmpiriskError, match="class_weight is zero for every class"):
        small(kind, class_weight=dict.fromkeys(range(3), 0.0)).fit(X, y)


def test_a_row_that_has_no_say_any_more_does_not_stop_the_others():
    """Its gradient and curvature are zero in whole units: beside it all rows looked alike, and trees stayed whole."""
    x = np.array([-2.75, -2.68, 2.97, -0.56, -1.86, -3.1, -3.3, 6.07])[:, None]
    y, times = np.array([1, 0, 0, 0, 1, 0, 1, 1]), np.array([2, 3, 1, 2, 2, 3, 3, 3])
    loss, rows = er.losses.SoftHinge(margin=0.5, temperature=0.3), np.repeat(np.arange(8), times)
    for scale in np.linspace(1.0, 1.1, 24):  # rows come in the order of a hash: any may be the first
        X = scale * x
        machine = er.BoostingClassifier(loss, n_estimators=3, learning_rate=1.0, max_depth=2, min_samples_leaf=1)
        machine.fit(X, y, sample_weight=times)
        assert machine.history_["loss"][-1] < 0.2 * machine.history_["loss"][-2]
        often = clone(machine).fit(X[rows], y[rows])
        np.testing.assert_allclose(machine.decision_function(X), often.decision_function(X), rtol=1e-9)
