"""Evaluation: every way to split, every kind of machine, the same result however it is run."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.metrics import confusion_matrix, make_scorer, mean_absolute_error, recall_score
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import empirisk as er
from empirisk.errors import Unsuitable

random = np.random.default_rng(0)
X = random.normal(size=(90, 4))
F = X[:, 0] - 0.5 * X[:, 1] + 0.5 * random.normal(size=90)
LABELS = np.where(F > 0, "yes", "no")


# --- ways to split --------------------------------------------------------------------------------------------------


@pytest.mark.row("V1")
def test_folds_are_stratified_and_test_every_row_once():
    result = er.evaluate(er.LogisticRegression(), X, LABELS, cv=5)
    assert sorted(np.concatenate([fold.test for fold in result.folds])) == list(range(90))
    share = (LABELS == "yes").mean()
    for fold in result.folds:
        assert set(fold.train).isdisjoint(fold.test)
        assert abs((LABELS[fold.test] == "yes").mean() - share) < 0.06
    assert result.score.name == "accuracy"
    assert result.score.value == pytest.approx(np.mean([fold.scores["accuracy"] for fold in result.folds]))
    low, high = result.score.interval
    assert low < result.score.value < high


@pytest.mark.row("V1")
def test_a_holdout_is_one_split():
    result = er.evaluate(er.Ridge(), X, F, cv="holdout", test_size=0.3)
    assert len(result.folds) == 1
    assert len(result.rows) == 27 == len(result.predictions) == len(result.truth)
    np.testing.assert_array_equal(result.truth, F[result.rows])


@pytest.mark.row("V2")
@pytest.mark.parametrize("repeats", [1, 3])
def test_scores_are_those_of_scikit_learn(repeats):
    result = er.evaluate(LinearRegression(), X, F, repeats=repeats, scoring=["r2", "neg_mean_absolute_error", "mae"])
    splits = [(fold.train, fold.test) for fold in result.folds]
    assert len(splits) == 5 * repeats
    for name in ("r2", "neg_mean_absolute_error"):
        expected = cross_val_score(LinearRegression(), X, F, cv=splits, scoring=name)
        np.testing.assert_allclose(result.scores[name].folds, expected)
    labels = er.evaluate(er.LeastSquaresClassifier(), X, LABELS, repeats=repeats, scoring="balanced_accuracy")
    splits = [(fold.train, fold.test) for fold in labels.folds]
    expected = cross_val_score(er.LeastSquaresClassifier(), X, LABELS, cv=splits, scoring="balanced_accuracy")
    assert labels.score.value == pytest.approx(expected.mean())
    assert result.scores["mae"].value == pytest.approx(-result.scores["neg_mean_absolute_error"].value)
    assert not result.scores["mae"].higher_is_better


@pytest.mark.row("V2")
def test_random_splits_groups_time_and_splitters():
    assert len(er.evaluate(er.Ridge(), X, F, cv="random", repeats=4).folds) == 4
    groups = np.arange(90) // 6
    for cv in (5, "random", "loo"):
        for machine, y in ((er.Ridge(), F), (er.LeastSquaresClassifier(), LABELS)):
            for fold in er.evaluate(machine, X, y, cv=cv, groups=groups).folds:
                assert set(groups[fold.train]).isdisjoint(groups[fold.test])
    times = random.permutation(90)
    for fold in er.evaluate(er.Ridge(), X, F, cv=4, time=times).folds:
        assert times[fold.train].max() < times[fold.test].min()
    assert er.evaluate(er.Ridge(), X, F, cv="holdout", time=True).rows.tolist() == list(range(68, 90))
    assert len(er.evaluate(er.Ridge(), X, F, cv=KFold(3)).folds) == 3
    assert len(er.evaluate(er.Ridge(), X, F, cv=[(np.arange(50), np.arange(50, 90))]).folds) == 1


@pytest.mark.row("V2")
@pytest.mark.row("V3")
@pytest.mark.parametrize("weighted", [False, True])
def test_closed_form_leave_one_out_is_that_of_refitting(weighted):
    weights = random.uniform(0.5, 2, size=90) if weighted else None
    quick = er.evaluate(er.Ridge(C=0.3), X, F, cv="loo", sample_weight=weights)
    slow = er.evaluate(er.Ridge(C=0.3), X, F, cv=LeaveOneOut(), sample_weight=weights)
    np.testing.assert_allclose(quick.predictions, slow.predictions, rtol=1e-6, atol=1e-8)
    assert quick.certificates[0] is None  # nothing was refitted
    assert slow.certificates[0].converged
    for name in quick.scores:
        assert quick.scores[name].value == pytest.approx(slow.scores[name].value)
        assert quick.scores[name].interval == pytest.approx(slow.scores[name].interval, rel=1e-5)


@pytest.mark.row("V3")
@pytest.mark.parametrize(
    ("features", "formula"),
    [
        (er.kernels.Gaussian(1.5), True),
        (er.kernels.Gaussian(1.0) * er.kernels.Linear().on([1]) + 0.5 * er.kernels.Polynomial(2), True),
        (er.kernels.Gaussian("median"), False),
        (er.kernels.Gaussian("median").on([0, 1]) + er.kernels.Linear(), False),
        (er.kernels.Centred(er.kernels.Linear()), False),
        (er.maps.Nystrom(er.kernels.Gaussian(1.5), rank=5), False),
    ],
    ids=str,
)
def test_leave_one_out_behind_a_kernel_is_that_of_refitting(features, formula):
    """A kernel that learns nothing sees no other row, so that the formula holds; one that learns refits."""
    weights = random.uniform(0.5, 2, size=40)
    machine = er.Ridge(C=10.0, features=features, random_state=0)
    quick = er.evaluate(machine, X[:40], F[:40], cv="loo", sample_weight=weights)
    slow = er.evaluate(machine, X[:40], F[:40], cv=LeaveOneOut(), sample_weight=weights)
    np.testing.assert_allclose(quick.predictions, slow.predictions, rtol=1e-8, atol=1e-8)
    assert (quick.certificates[0] is None) == formula


@pytest.mark.row("V2")
def test_leave_one_out_of_a_classifier_scores_all_answers_together():
    result = er.evaluate(er.LeastSquaresClassifier(), X, LABELS, cv="loo", scoring=["accuracy", "roc_auc"])
    assert len(result.folds) == 90
    assert result.score.value == pytest.approx((result.predictions == LABELS).mean())


# --- what comes out -------------------------------------------------------------------------------------------------


@pytest.mark.row("V4")
def test_scores_by_name_are_those_of_the_answers():
    names = [
        "accuracy",
        "precision",
        "recall",
        "f1",
        "false_positive_rate",
        "roc_auc",
        "average_precision",
        "brier",
        "log_loss",
    ]
    result = er.evaluate(er.LogisticRegression(), X, LABELS, cv="holdout", scoring=names, test_size=0.5)
    (no, false_alarms), (missed, hits) = confusion_matrix(result.truth, result.predictions)
    np.testing.assert_array_equal(result.confusion, [[no, false_alarms], [missed, hits]])
    scores = {name: result.scores[name].value for name in names}
    assert scores["accuracy"] == pytest.approx((no + hits) / 45)
    assert scores["precision"] == pytest.approx(hits / (hits + false_alarms))
    assert scores["recall"] == pytest.approx(hits / (hits + missed))
    assert scores["f1"] == pytest.approx(2 * hits / (2 * hits + false_alarms + missed))
    assert scores["false_positive_rate"] == pytest.approx(false_alarms / (false_alarms + no))
    assert scores["brier"] == pytest.approx(np.mean((result.probabilities[:, 1] - (result.truth == "yes")) ** 2))
    own = np.where(result.truth == "yes", result.probabilities[:, 1], result.probabilities[:, 0])
    assert scores["log_loss"] == pytest.approx(-np.log(own).mean())
    pairs = result.decisions[result.truth == "yes"][:, None] > result.decisions[result.truth == "no"]
    assert scores["roc_auc"] == pytest.approx(pairs.mean())
    for score in result.scores.values():
        assert score.interval[0] <= score.value <= score.interval[1]
    numbers = er.evaluate(er.Ridge(), X, F, cv="holdout")
    residual = numbers.truth - numbers.predictions
    assert numbers.scores["rmse"].value == pytest.approx(np.sqrt(np.mean(residual**2)))
    assert numbers.scores["mae"].value == pytest.approx(np.mean(np.abs(residual)))


@pytest.mark.row("V2")
def test_nested_search_reports_what_each_fold_chose():
    result = er.evaluate(er.selection.Search(er.SVM(), {"C": [0.01, 1.0]}, scoring="accuracy"), X, LABELS, cv=3)
    assert all(chosen.keys() == {"C"} for chosen in result.parameters)
    assert len(result.seconds) == 3 == len(result.certificates)
    assert all(certificate.converged for certificate in result.certificates)
    assert "chosen: C=" in str(result)
    assert "3 of 3 certified optimal" in repr(result)
    chosen = er.evaluate(er.Ridge(C="loo"), X, F, cv=3).parameters
    assert all(one["C"] > 0 for one in chosen)
    grid = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2]}, cv=3)
    assert all("max_depth" in one for one in er.evaluate(grid, X, LABELS, cv=3, scoring="accuracy").parameters)


@pytest.mark.row("V1")
@pytest.mark.parametrize(
    "table",
    [pd.DataFrame(X, columns=list("abcd")), pl.DataFrame(X, schema=list("abcd")), sparse.csc_array(X), X.tolist()],
    ids=["pandas", "polars", "sparse", "list"],
)
def test_tables_of_every_kind(table):
    machine = er.LeastSquaresClassifier(penalty="l2")
    plain = er.evaluate(machine, X, LABELS, scoring="accuracy")
    np.testing.assert_array_equal(
        er.evaluate(machine, table, list(LABELS), scoring="accuracy").predictions, plain.predictions
    )


@pytest.mark.row("V1")
def test_weights_reach_fits_and_scores_through_pipelines():
    weights = np.where(F > 0, 3.0, 1.0)
    pipeline = make_pipeline(StandardScaler(), er.LeastSquaresClassifier())
    result = er.evaluate(pipeline, X, LABELS, sample_weight=weights, cv="holdout", scoring=["accuracy", "recall"])
    kept = weights[result.rows]
    assert result.score.value == pytest.approx(np.average(result.predictions == result.truth, weights=kept))
    with pytest.raises(ValueError, match="takes none in fit"):
        er.evaluate(KNeighborsClassifier(), X, LABELS, sample_weight=weights)


@pytest.mark.row("V4")
def test_scorers_of_ones_own():
    mine = {"sensitivity": make_scorer(recall_score, pos_label="yes")}
    result = er.evaluate(er.LeastSquaresClassifier(), X, LABELS, scoring=mine)
    assert result.score.method == "corrected t"
    usual = er.evaluate(er.LeastSquaresClassifier(), X, LABELS, scoring="recall")
    assert result.score.value == pytest.approx(usual.score.value)
    worst = er.evaluate(er.Ridge(), X, F, scoring=lambda machine, X, y: -mean_absolute_error(y, machine.predict(X)))
    assert worst.score.value < 0


# --- the same however it is run -------------------------------------------------------------------------------------


@pytest.mark.row("V2")
@pytest.mark.parametrize(
    ("machine", "y"),
    [
        (er.Ridge(C="loo"), F),
        (er.BaggingClassifier(n_estimators=5), LABELS),
        (RandomForestClassifier(n_estimators=5), LABELS),
    ],
    ids=["ridge", "bagging", "forest"],
)
def test_any_number_of_threads_gives_the_same_bits(machine, y):
    found = []
    for threads in (1, 3):
        with er.config(threads=threads):
            found.append(er.evaluate(machine, X, y, cv=4))
    np.testing.assert_array_equal(found[0].predictions, found[1].predictions)
    for name, score in found[0].scores.items():
        assert score.interval == found[1].scores[name].interval


def test_the_machine_is_left_alone():
    machine = er.Ridge()
    er.evaluate(machine, X, F)
    assert not hasattr(machine, "coef_")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"cv": 1}, "cv=1 must be a number of folds of at least 2"),
        ({"cv": "leave"}, "cv='leave' must be"),
        ({"cv": 60}, "needs 60 rows of every class"),
        ({"cv": []}, "cv holds no split"),
        ({"repeats": 0}, "repeats=0 must be a whole number"),
        ({"test_size": 1.5}, r"test_size=1\.5 must lie between"),
        ({"time": True, "repeats": 2}, "time= leaves one way to split"),
        ({"cv": "loo", "repeats": 2}, "repeats=2 draws folds anew, but cv='loo' draws none"),
        ({"cv": KFold(3), "repeats": 2}, "draws none; leave repeats out"),
        ({"scoring": "acuracy"}, "scoring='acuracy' is not known"),
        ({"scoring": []}, "at least one score"),
        ({"confidence": 95}, "confidence=95 must lie between 0 and 1"),
        ({"sample_weight": np.ones(3)}, "one sample_weight per row"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(options, sentence):
    with pytest.raises(er.errors.EmpiriskError, match=sentence):
        er.evaluate(er.SVM(), X, LABELS, **options)


@pytest.mark.row("V2")
def test_rows_of_one_moment_are_not_earlier_than_each_other():
    days = np.repeat(np.arange(15), 6)
    dates = np.datetime64("2024-01-01") + days.astype("timedelta64[D]")
    for options in ({"cv": 4}, {"cv": "holdout", "test_size": 0.4}):
        for fold in er.evaluate(er.Ridge(), X, F, time=dates, **options).folds:
            assert days[fold.train].max() < days[fold.test].min()
    with pytest.raises(ValueError, match="time holds missing values"):
        er.evaluate(er.Ridge(), X, F, time=np.where(days == 3, np.datetime64("NaT"), dates))
    with pytest.raises(ValueError, match="time leaves no rows before the first test"):
        er.evaluate(er.Ridge(), X, F, time=np.zeros(90))
    with pytest.raises(ValueError, match="time has 89 entries for 90 rows"):
        er.evaluate(er.Ridge(), X, F, time=days[:89])


@pytest.mark.row("V4")
def test_a_score_that_a_fold_does_not_allow_is_said_once_and_without_warnings():
    ordered = np.argsort(LABELS)
    result = er.evaluate(er.LogisticRegression(C=1e-3), X[ordered], LABELS[ordered], cv=KFold(5))
    assert np.isnan(result.scores["roc_auc"].value)
    assert np.isnan(result.scores["roc_auc"].interval).all()
    assert np.isfinite(result.scores["accuracy"].interval).all()
    assert "roc_auc is NaN: a test set lacks a class" in str(result)


@pytest.mark.parametrize(
    ("machine", "scoring", "sentence"),
    [
        (er.SVM(), "brier", "scoring='brier' needs probabilities or decision values, which the machine does not give"),
        (er.SVM(), lambda machine, X, y: {"a": 1}, "must give one number, not dict"),
        (er.SVM(), "roc_auc", "is for two classes, but y holds 3; use 'roc_auc_ovr'"),
        (er.Ridge(), "accuracy", "scoring='accuracy' does not suit these answers: continuous is not supported"),
    ],
)
def test_scores_that_do_not_suit_are_refused_in_a_sentence(machine, scoring, sentence):
    y = np.arange(90) % 3 if scoring == "roc_auc" else F if isinstance(machine, er.Ridge) else LABELS
    with pytest.raises(er.errors.EmpiriskError, match=re.escape(sentence)):
        er.evaluate(machine, X, y, scoring=scoring)


def test_bad_data_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="X has 90 rows but y has 80"):
        er.evaluate(er.SVM(), X, LABELS[:80])
    with pytest.raises(ValueError, match="one class only"):
        er.evaluate(er.SVM(), X, np.ones(90))
    with pytest.raises(ValueError, match="must be a classifier or regressor"):
        er.evaluate("svm", X, LABELS)
    with pytest.raises(ValueError, match="'precision' is for two classes"):
        er.evaluate(er.SVM(), X, np.arange(90) % 3, scoring="precision")
    with pytest.raises(ValueError, match="counts classes"):
        er.evaluate(er.Ridge(), X, F).confusion  # noqa: B018


@pytest.mark.row("V1")
def test_gram_matrices_are_cut_in_rows_and_columns():
    gram = X @ X.T
    machine = SVC(kernel="precomputed")
    expected = cross_val_score(machine, gram, LABELS, cv=KFold(4))
    np.testing.assert_allclose(
        er.evaluate(machine, gram, LABELS, cv=KFold(4), scoring="accuracy").score.folds, expected
    )
    found = er.selection.search(machine, {"C": [0.1, 1.0]}, gram, LABELS, cv=KFold(4))
    assert found.cv_results_["mean_test_score"][1] == pytest.approx(expected.mean())


def test_graphs_and_samples_of_different_sizes_are_items():
    random = np.random.default_rng(0)
    rings = [([(k, (k + 1) % size) for k in range(size)], None) for size in random.integers(4, 8, 20)]
    paths = [([(k, k + 1) for k in range(size)], None) for size in random.integers(4, 8, 20)]
    narrow, broad = ([random.normal(0, scale, (size, 2)) for size in range(5, 25)] for scale in (1.0, 5.0))
    known = [([mean], [[1.0]]) for mean in (0.0, 5.0) for _ in range(20)]
    y = np.repeat(["one", "other"], 20)
    for kernel, X in [
        (er.kernels.WeisfeilerLehman(1), rings + paths),
        (er.kernels.MeanEmbedding(), narrow + broad),
        (er.kernels.ExpectedLikelihood(), known),
    ]:
        assert er.evaluate(er.SVM(features=kernel), X, y).score.value > 0.9


@pytest.mark.parametrize("labels", [[[0, 1], [1, 0]] * 10, [["a", "x"], ["b", "y"]] * 10], ids=["0 and 1", "words"])
def test_columns_of_labels_are_judged_one_at_a_time(labels):
    """Folds cannot be stratified by them, nor has a row one right class: both ended in other people's sentences."""
    X = np.arange(20.0)[:, None]
    for ask in (er.evaluate, lambda *given: er.selection.Search(given[0], {"max_depth": [1]}).fit(*given[1:])):
        with pytest.raises(Unsuitable, match=r"2 columns of labels, and one is judged at a time: give y\[:, j\]"):
            ask(er.TreeClassifier(), X, labels)
    assert er.evaluate(er.TreeClassifier(), X, np.asarray(labels)[:, 1]).score.value >= 0
