"""Margins, rounds, importance, luck: the numbers behind the pictures."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.ensemble import RandomForestClassifier as Forest
from sklearn.inspection import permutation_importance
from sklearn.neighbors import KNeighborsClassifier

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.plots.look import assert_readable, legend, title

pytestmark = pytest.mark.row("P1")


@pytest.fixture(scope="module")
def boosted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.where((X**2).sum(axis=1) + 0.3 * rng.normal(size=80) > 1.2, "out", "in")
    return er.AdaBoostClassifier(n_estimators=30).fit(X[:50], y[:50]), X, y


@pytest.mark.row("T7")
def test_margins_are_shares_of_rows(boosted):
    machine, X, y = boosted
    figure = er.plots.margins(machine, X, y, rounds=[2, 30])
    early, late = figure.axes[0].lines[:2]
    for count, line in ((2, early), (30, late)):
        shorter = er.AdaBoostClassifier(n_estimators=count).fit(X[:50], y[:50])
        expected = shorter.margins(X, y)
        np.testing.assert_allclose(np.sort(expected), line.get_xdata()[1:-1])
        np.testing.assert_allclose(line.get_ydata()[1:-1], np.arange(1, 81) / 80)
    assert legend(figure.axes[0])[1] == f"30 rounds: error {1 - machine.score(X, y):.3g}"
    assert figure.axes[0].get_xlim() == (-1.03, 1.03)
    assert_readable(figure)


def test_margins_of_other_machines():
    X = np.array([[0.0], [1.0], [2.0], [4.0]])
    two = er.SVM().fit(X, [0, 0, 1, 1])
    line = er.plots.margins(two, X, [0, 0, 1, 1]).axes[0].lines[0]
    np.testing.assert_allclose(line.get_xdata()[1:-1], np.sort([-1, -1, 1, 1] * two.decision_function(X)))
    three = er.LogisticRegression().fit(X, [0, 0, 1, 2])
    scores = three.decision_function(X)
    lead = [scores[i, k] - np.delete(scores[i], k).max() for i, k in enumerate([0, 0, 1, 2])]
    line = er.plots.margins(three, X, [0, 0, 1, 2]).axes[0].lines[0]
    np.testing.assert_allclose(line.get_xdata()[1:-1], np.sort(lead))


@pytest.mark.row("T7")
def test_rounds_show_errors_below_their_bound(boosted):
    machine, X, y = boosted
    figure = er.plots.rounds(machine, X[50:], y[50:])
    bound, training, held_out = figure.axes[0].lines
    np.testing.assert_array_equal(bound.get_ydata(), machine.bound_)
    np.testing.assert_array_equal(training.get_ydata(), machine.training_errors_)
    assert (training.get_ydata() <= bound.get_ydata()).all()
    assert held_out.get_ydata()[-1] == pytest.approx(1 - machine.score(X[50:], y[50:]))
    assert legend(figure.axes[0]) == ["bound", "training error", "error on the rows given"]
    assert_readable(figure)


def test_rounds_of_a_regressor_are_root_mean_squared_errors(boosted):
    _, X, _ = boosted
    machine = GradientBoostingRegressor(n_estimators=5).fit(X, X[:, 0])
    axes = er.plots.rounds(machine, X, X[:, 0]).axes[0]
    left = machine.predict(X) - X[:, 0]
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(np.sqrt(np.mean(left**2)))
    assert axes.get_ylabel() == "root mean squared error"


def test_importance_is_sorted_and_has_whiskers():
    figure = er.plots.importance([0.1, 0.5, -0.2], [0.01, 0.02, 0.03], names=["a", "b", "c"])
    axes = figure.axes[0]
    assert [bar.get_width() for bar in axes.patches] == [0.5, 0.1, -0.2]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["b", "a", "c"]
    (whiskers,) = (part for part in axes.collections if hasattr(part, "get_segments"))
    np.testing.assert_allclose(
        [part[:, 0] for part in whiskers.get_segments()], [[0.48, 0.52], [0.09, 0.11], [-0.23, -0.17]]
    )
    low, high = axes.get_ylim()
    assert low > high  # the largest stands on top
    assert_readable(figure)


def test_importance_reads_tables_and_scikit_learns_results(boosted):
    machine, X, y = boosted
    table = machine.importances(X, y, n_repeats=3, random_state=0)
    axes = er.plots.importance(table).axes[0]
    assert [bar.get_width() for bar in axes.patches] == sorted(table["importance"], reverse=True)
    assert axes.get_xlabel() == "fall of the score when the column is shuffled"
    found = permutation_importance(Forest(5, random_state=0).fit(X, y), X, y, n_repeats=2, random_state=0)
    assert len(er.plots.importance(found, names=["first", "second"]).axes[0].patches) == 2
    many = er.plots.importance(np.arange(50.0), names=[f"a long name of a column: {k}" for k in range(50)])
    assert len(many.axes[0].patches) == 20
    assert title(many.axes[0]) == "Importance, 20 of 50 columns"
    assert_readable(many)
    assert_readable(er.plots.importance([1.0]))


def test_luck_is_the_binomial_tail():
    figure = er.plots.luck(34, 100)
    axes = figure.axes[0]
    centres = np.array([bar.get_x() + bar.get_width() / 2 for bar in axes.patches])
    heights = np.array([bar.get_height() for bar in axes.patches])
    np.testing.assert_allclose(heights, binom.pmf(centres.round(), 100, 0.5))
    assert heights.sum() == pytest.approx(1, abs=1e-5)
    colours = np.array([bar.get_facecolor() for bar in axes.patches])
    tail = (colours == colours[0]).all(axis=1)
    assert centres[tail].max() == pytest.approx(34)
    assert axes.lines[0].get_xdata() == [34, 34]
    assert legend(axes)[2] == f"34 or fewer: {er.luck(34, 100).value:.3g}"
    assert_readable(figure)


@pytest.mark.parametrize(
    ("errors", "n", "rate"), [(0, 1, 0.5), (1, 1, 0.5), (0, 100_000, 0.5), (100, 100, 0.01), (5, 20, 0.25)]
)
def test_luck_at_the_ends(errors, n, rate):
    figure = er.plots.luck(errors, n, rate)
    low, high = figure.axes[0].get_xlim()
    assert low <= errors <= high
    assert len(figure.axes[0].patches) <= 101
    assert_readable(figure)


def test_wrong_arguments_are_named(boosted):
    machine, X, y = boosted
    neighbours = KNeighborsClassifier().fit(X, y)
    for call, match in [
        (lambda: er.plots.margins(er.AdaBoostClassifier(), X, y), "is not fitted"),
        (lambda: er.plots.margins(machine, X, y, rounds=[31]), "numbers from 1 to the 30 rounds"),
        (lambda: er.plots.margins(neighbours, X, y), "has no decision_function"),
        (lambda: er.plots.margins(er.SVM().fit(X, y), X, y, rounds=[3]), "rounds needs an AdaBoostClassifier"),
        (lambda: er.plots.rounds(neighbours, X, y), "has no staged_predict"),
        (lambda: er.plots.rounds(neighbours), "keeps no errors; give X and y"),
        (lambda: er.plots.rounds(machine, X), "y is missing"),
        (lambda: er.plots.importance([0.1], [0.1, 0.2]), "must have 1 entries"),
        (lambda: er.plots.importance([0.1], most=0), "most=0 must be"),
        (lambda: er.plots.importance([np.nan]), "a finite number for each column"),
        (lambda: er.plots.importance(pl.DataFrame({"a": [1]})), "has no column 'feature'"),
        (lambda: er.plots.luck(5, 4), "errors"),
        (lambda: er.plots.luck(1, 4, 1.5), "rate"),
    ]:
        with pytest.raises(EmpiriskError, match=match):
            call()
