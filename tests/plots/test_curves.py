"""Learning and validation curves: means and spread over folds, and the names of what ails."""

from types import SimpleNamespace

import numpy as np
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.plots.look import assert_readable, legend, ticks, title

pytestmark = [pytest.mark.row("P1"), pytest.mark.row("V9")]

SIZES = np.array([10, 100, 1000])
TRAIN = np.array([[1.0, 1.0], [0.98, 1.0], [0.96, 0.98]])
VALIDATION = np.array([[0.5, 0.6], [0.7, 0.74], [0.8, 0.84]])


def band(collection):
    """The lower and upper edge of a band, by place."""
    (path,) = collection.get_paths()
    edges = {}
    for place, value in path.vertices:
        edges.setdefault(place, set()).add(round(value, 12))
    return {place: (min(values), max(values)) for place, values in edges.items()}


def test_learning_curve_shows_means_and_spread_over_folds():
    figure = er.plots.learning_curve(SIZES, TRAIN, VALIDATION)
    axes = figure.axes[0]
    training, validation = axes.lines
    np.testing.assert_allclose(training.get_xydata(), np.column_stack([SIZES, TRAIN.mean(axis=1)]))
    np.testing.assert_allclose(validation.get_xydata(), np.column_stack([SIZES, VALIDATION.mean(axis=1)]))
    for scores, drawn in zip((TRAIN, VALIDATION), axes.collections, strict=True):
        for size, row in zip(SIZES, scores, strict=True):
            np.testing.assert_allclose(band(drawn)[size], (row.mean() - row.std(), row.mean() + row.std()))
    assert legend(axes) == ["training", "validation"]
    assert axes.get_xscale() == "log"
    assert_readable(figure)


def test_learning_curve_names_overfitting_and_its_absence():
    found = title(er.plots.learning_curve(SIZES, TRAIN, VALIDATION).axes[0])
    assert "Overfitting: score 0.97 on training rows, 0.82 on new ones" in found
    alike = title(er.plots.learning_curve(SIZES, VALIDATION + 0.01, VALIDATION).axes[0])
    assert "Still learning: score 0.83 on training rows, 0.82 on new ones" in alike
    # The size of the scores does not matter: negative squared errors are judged alike.
    errors = er.plots.learning_curve(SIZES, -1000 * (1 - TRAIN), -1000 * (1 - VALIDATION))
    assert "Overfitting" in title(errors.axes[0])
    said = er.plots.learning_curve(SIZES, TRAIN, VALIDATION, diagnosis="as it should be")
    assert title(said.axes[0]) == "Learning curve\nAs it should be"


def test_a_curve_object_brings_its_own_diagnosis():
    curve = SimpleNamespace(sizes=SIZES, train=TRAIN, validation=VALIDATION, diagnosis="It overfits.")
    axes = er.plots.learning_curve(curve).axes[0]
    assert title(axes) == "Learning curve\nIt overfits."
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), SIZES)


def test_single_scores_and_missing_ones_are_drawn_without_a_band():
    figure = er.plots.learning_curve([5], [0.9], [0.8])
    assert not figure.axes[0].collections
    assert_readable(figure)
    holes = VALIDATION.copy()
    holes[0], holes[1, 0] = np.nan, np.nan
    drawn = er.plots.learning_curve(SIZES, TRAIN, holes).axes[0].lines[1].get_ydata()
    np.testing.assert_allclose(drawn, [np.nan, 0.74, 0.82])


def test_validation_curve_marks_the_best_and_names_both_sides():
    Cs, train = [0.01, 0.1, 1.0, 10.0], np.array([0.6, 0.8, 0.9, 1.0])
    figure = er.plots.validation_curve(Cs, train, [0.55, 0.75, 0.7, 0.5], parameter="C")
    axes = figure.axes[0]
    assert axes.lines[2].get_xdata() == [0.1, 0.1]
    assert legend(axes) == ["training", "validation", "best: 0.1"]
    assert [(text.get_text(), text.get_ha()) for text in axes.texts] == [
        ("underfitting", "left"),
        ("overfitting", "right"),
    ]
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "C")
    assert_readable(figure)
    # A parameter that simplifies the machine as it grows: overfitting is on the left.
    other = er.plots.validation_curve(Cs, train[::-1], [0.5, 0.7, 0.75, 0.55], parameter="min_leaf").axes[0]
    assert [text.get_text() for text in other.texts] == ["overfitting", "underfitting"]
    # The best value at an end has nothing beyond it.
    edge = er.plots.validation_curve(Cs, train, [0.5, 0.6, 0.7, 0.8]).axes[0]
    assert [(text.get_text(), text.get_ha()) for text in edge.texts] == [("underfitting", "left")]


def test_validation_curve_over_names():
    names = ["linear", "a kernel with quite a long name", "gaussian", "polynomial of degree three"]
    figure = er.plots.validation_curve(names, [0.7, 0.8, 0.9, 1.0], [0.7, 0.75, 0.8, 0.7], parameter="features")
    axes = figure.axes[0]
    assert [label.get_text()[:6] for label in ticks(axes.xaxis)] == ["linear", "a kern", "gaussi", "polyno"]
    assert legend(axes)[2] == "best: gaussian"
    assert_readable(figure)
    assert_readable(er.plots.validation_curve([None, 3], [1.0, 0.9], [0.5, 0.6]))
    assert_readable(er.plots.validation_curve([3], [1.0], [0.5]))


def test_a_validation_curve_object_is_read():
    curve = SimpleNamespace(
        parameter="max_depth", values=[1, 2, 3], train=TRAIN, validation=VALIDATION, best=2, diagnosis="Fine."
    )
    axes = er.plots.validation_curve(curve).axes[0]
    assert legend(axes)[2] == "best: 2"
    assert title(axes) == "Validation curve\nFine."
    assert axes.get_xlabel() == "max_depth"


def test_curves_of_selection_are_drawn_with_their_score():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(40, 1))
    y = np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=40)
    machine = er.Ridge(C=1e4, features=er.maps.Polynomial())
    degrees = [1, 3, 12]
    found = er.evaluation.validation_curve(machine, X[:20], y[:20], "features__degree", degrees, scoring="rmse")
    figure = er.plots.validation_curve(found)
    axes = figure.axes[0]
    assert axes.get_ylabel() == "rmse"
    np.testing.assert_allclose(axes.lines[1].get_ydata(), found.validation.mean(axis=1))
    # Errors are low where scores are high: the sides are named the same way.
    assert [text.get_text() for text in axes.texts] == ["underfitting", "overfitting"]
    assert "underfitting before it; overfitting after it" in found.diagnosis
    assert legend(axes)[2] == f"best: {found.best}"
    assert_readable(figure)
    learned = er.evaluation.learning_curve(machine, X, y, sizes=[10, 30])
    figure = er.plots.learning_curve(learned)
    assert title(figure.axes[0]).replace("\n", " ").lower() == f"learning curve {learned.diagnosis}".lower()
    assert figure.axes[0].get_ylabel() == learned.metric
    assert_readable(figure)


def test_wrong_arguments_are_named():
    for call, match in [
        (lambda: er.plots.learning_curve(SIZES), "train is missing"),
        (lambda: er.plots.learning_curve(SIZES, TRAIN, VALIDATION[:2]), "validation of shape"),
        (lambda: er.plots.learning_curve([0], [1.0], [1.0]), "positive numbers of rows"),
        (lambda: er.plots.validation_curve([]), "values is empty"),
        (lambda: er.plots.validation_curve([1], [[[1.0]]], [1.0]), "train of shape"),
    ]:
        with pytest.raises(EmpiriskError, match=match):
            call()
