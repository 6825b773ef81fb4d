"""The whole job from Python: rows and targets as arrays and frames, and a result that predicts, explains and shows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.league.request import Request, with_target

random = np.random.default_rng(0)
X = random.normal(size=(240, 3))
Y = np.where(X[:, 0] + 0.5 * random.normal(size=240) > 0, "up", "down")


@pytest.fixture(scope="module")
def found():
    return er.learn(X, Y, machines=["logistic"], time="600s")


def test_a_result_predicts_and_explains_arrays(found):
    assert found.predict(X[:3]).shape == (3,)
    shares = found.predict_proba(X)
    assert np.allclose(shares.sum(axis=1), 1)
    assert np.array_equal(found.predict(X), found.classes[shares.argmax(axis=1)])
    reasons = found.explain(X[:5])
    assert (reasons.columns, reasons.height) == (["x0", "x1", "x2"], 5)
    assert np.argmax(np.abs(reasons.to_numpy()).mean(axis=0)) == 0


def test_the_leaderboard_is_a_frame(found):
    board = found.leaderboard
    assert board["machine"].to_list() == ["logistic", "baseline"]
    assert board["accuracy"][0] == pytest.approx(found.best.mean)
    assert board["compared"][0] == "chosen"


def test_the_report_is_shown_saved_and_opened(found, tmp_path, monkeypatch):
    report = found.report(tmp_path / "it.html")
    assert "<h1" in (tmp_path / "it.html").read_text()
    assert report._repr_html_().startswith("<iframe srcdoc=")
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    report.open()
    assert opened[0].startswith("file://")


def test_the_model_is_saved(found, tmp_path):
    found.save(tmp_path / "it.model")
    assert np.array_equal(er.load(tmp_path / "it.model").predict(X), found.predict(X))


def line_of(figure):
    return figure.axes[0].lines[0].get_xydata()


def test_views_of_a_result(found):
    drawn = er.plots.importance(found)
    assert {label.get_text() for label in drawn.axes[0].get_yticklabels()} == {"x0", "x1", "x2"}
    assert er.plots.learning_curve(found).axes[0].lines
    assert not any("no room" in line for line in found.warnings)
    for machine in (er.LogisticRegression(), er.TreeClassifier()):
        with pytest.raises(EmpiriskError, match=r"values is a machine; give what importances\(X, y\) of trees"):
            er.plots.importance(machine.fit(X, Y))


def test_the_matrix_of_a_rare_class_is_what_the_model_says():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(3000, 2))
    rare = draw.random(3000) < 1 / (1 + np.exp(5.5 - 1.2 * x[:, 0] - x[:, 1]))
    found = er.learn(x, np.where(rare, "yes", "no"), machines=["logistic"])
    assert found.test.threshold is not None
    said = er.plots.confusion(found, x, np.where(rare, "yes", "no")).axes[0].texts
    assert (
        sum(int(text.get_text().split()[0].replace(",", "")) for text in said[1::2])
        == (found.predict(x) == "yes").sum()
    )


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: er.learn(X, Y, tme=3), "learn has no option 'tme'; did you mean 'time'"),
        (lambda: er.learn(X[:, 0], Y), r"has the shape \(240,\); give rows and columns, as X.reshape\(-1, 1\)"),
        (lambda: er.learn([[1.0, 2.0], [3.0]], [0, 1]), "rows of one length"),
    ],
)
def test_slips_are_answered_in_a_sentence(call, sentence):
    with pytest.raises(EmpiriskError, match=sentence):
        call()


def test_views_take_a_model_with_data(found):
    area = roc_auc_score(Y == "up", found.predict_proba(X)[:, 1])
    for model in (found, found.model, found.pipeline, er.LogisticRegression().fit(X, Y)):
        figure = er.plots.roc(model, X, Y)
        assert figure.axes[0].get_legend().get_texts()[0].get_text().startswith("up: area 0.9")
    assert er.plots.roc(found, X, Y).axes[0].get_legend().get_texts()[0].get_text() == f"up: area {area:.3f}"
    for view in (er.plots.confusion, er.plots.calibration, er.plots.precision_recall, er.plots.lift, er.plots.gains):
        assert view(found, X, Y).axes
    numbers = er.Ridge().fit(X, X[:, 0])
    assert er.plots.residuals(numbers, X, X[:, 0]).axes
    with pytest.raises(EmpiriskError, match="lacks 'y', the column that is predicted; give y"):
        er.plots.roc(found, X)
    with pytest.raises(EmpiriskError, match="give the machine, X and y"):
        er.plots.roc(numbers, X)
    table = pl.DataFrame(X, schema=["x0", "x1", "x2"]).with_columns(y=pl.Series(Y))
    assert np.array_equal(line_of(er.plots.roc(found, table)), line_of(er.plots.roc(found, X, Y)))
    with pytest.raises(EmpiriskError, match="y goes with a fitted machine"):
        er.plots.roc(Y, X[:, 0], Y)


def test_figures_show_in_a_notebook_without_pyplot(found):
    assert er.plots.roc(found, X, Y)._repr_png_().startswith(b"\x89PNG")


def test_rows_and_targets_of_every_kind():
    frame = pd.DataFrame(X, columns=["a", "b", "y"])
    table, name = with_target(frame, pd.Series(Y))
    assert (table.columns, name) == (["a", "b", "y", "y_"], "y_")
    assert with_target(frame, pd.Series(Y, name="way"))[1] == "way"
    assert with_target(frame, pd.DataFrame({"way": Y}))[1] == "way"
    assert with_target(X.tolist(), Y.tolist())[0].shape == (240, 4)
    with pytest.raises(EmpiriskError, match="2 columns; a model predicts one"):
        er.learn(X, np.column_stack([Y, Y]))
    with pytest.raises(EmpiriskError, match="2 values for 240 rows"):
        er.learn(X, Y[:2])


def test_time_as_text():
    assert Request("iris", time="5m").time == 300.0
    with pytest.raises(EmpiriskError, match="is not a time"):
        Request("iris", time="soon")


def test_missing_values_are_refused_with_what_takes_them():
    gaps = np.where(X > 2, np.nan, X)
    for machine in (er.LogisticRegression(), er.SVM(), er.KNNClassifier()):
        with pytest.raises(ValueError, match=r"contains NaN.*er\.BoostingClassifier.*er\.learn.*SimpleImputer"):
            machine.fit(gaps, Y)
