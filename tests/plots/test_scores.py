"""Confusion, ROC, precision and recall, calibration, residuals: curves equal what is counted by hand."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from sklearn.metrics import roc_auc_score

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.plots.look import assert_readable, legend, offsets, title

pytestmark = [pytest.mark.row("P1"), pytest.mark.row("V5")]


@pytest.fixture(scope="module")
def scores():
    rng = np.random.default_rng(0)
    truth = rng.random(200) < 0.25
    chances = np.clip(rng.normal(0.3 + 0.3 * truth, 0.2), 0, 1).round(2)
    return np.where(truth, "spam", "ham"), chances


@pytest.fixture(scope="module")
def result():
    X = np.random.default_rng(0).normal(size=(90, 2))
    y = np.array(["low", "middle", "top"])[np.digitize(X[:, 0] + 0.4 * X[:, 1], [-0.5, 0.5])]
    return er.evaluate(er.LogisticRegression(), X, y, cv=3)


def test_confusion_counts_pairs():
    truth, said = list("aaabbc"), list("aabbbb")
    figure = er.plots.confusion(truth, said)
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["2", "1", "0", "0", "2", "0", "0", "1", "0"]
    assert [text.get_position() for text in axes.texts][1] == (1, 0)
    np.testing.assert_allclose(axes.images[0].get_array(), [[2 / 3, 1 / 3, 0], [0, 1, 0], [0, 1, 0]])
    assert title(axes) == "Accuracy 66.7 %\n4 of 6 right"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("predicted class", "true class")
    assert_readable(figure)


def test_confusion_with_weights_counts_rows_as_often():
    weighted = er.plots.confusion(["a", "b", "b"], ["a", "a", "b"], sample_weight=[1, 2, 1])
    twice = er.plots.confusion(["a", "b", "b", "b"], ["a", "a", "a", "b"])
    one, other = ([text.get_text() for text in figure.axes[0].texts] for figure in (weighted, twice))
    assert one == other == ["1", "0", "2", "1"]


def test_confusion_keeps_the_order_of_the_classes_and_long_names():
    names = [f"an unusually long name for a class: {k}" for k in range(10)]
    figure = er.plots.confusion(names, names[::-1], classes=names[::-1])
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert [label[-1] for label in labels] == list("9876543210")
    assert len(figure.axes[0].texts) == 100
    assert_readable(figure)
    assert_readable(er.plots.confusion([1], [1]))
    assert not er.plots.confusion(np.arange(40), np.arange(40)).axes[0].texts


def test_numbers_in_cells_can_be_read_on_their_colour():
    axes = er.plots.confusion([0, 0, 1], [0, 0, 0]).axes[0]
    assert [text.get_color() for text in axes.texts] == ["white", "black", "white", "black"]


def test_roc_counts_at_every_threshold(scores):
    truth, chances = scores
    figure = er.plots.roc(truth, chances, threshold=0.5)
    curve, point, chance = figure.axes[0].lines
    spam = truth == "spam"
    counted = [((chances >= t)[~spam].mean(), (chances >= t)[spam].mean()) for t in [2, *np.unique(chances)]]
    assert {tuple(np.round(place, 12)) for place in curve.get_xydata()} <= {tuple(np.round(c, 12)) for c in counted}
    area = np.trapezoid(curve.get_ydata(), curve.get_xdata())
    assert area == pytest.approx(roc_auc_score(spam, chances))
    said = chances >= 0.5
    assert point.get_xydata().tolist() == [[said[~spam].mean(), said[spam].mean()]]
    assert chance.get_xydata().tolist() == [[0, 0], [1, 1]]
    assert legend(figure.axes[0]) == [f"spam: area {area:.3f}", "threshold 0.5", "chance: area 0.5"]
    assert_readable(figure)


def test_the_positive_class_can_be_the_first(scores):
    truth, chances = scores
    first = er.plots.roc(truth, np.column_stack([1 - chances, chances]), positive="ham").axes[0]
    second = er.plots.roc(truth, chances, positive="ham").axes[0]
    assert legend(first) == legend(second)
    assert legend(first)[0].replace("ham", "spam") == legend(er.plots.roc(truth, chances).axes[0])[0]
    np.testing.assert_allclose(first.lines[0].get_xydata(), second.lines[0].get_xydata())


def test_precision_and_recall_are_counted_and_chance_is_the_positive_rate(scores):
    truth, chances = scores
    figure = er.plots.precision_recall(truth, chances, threshold=0.5)
    curve, point, chance = figure.axes[0].lines
    spam, said = truth == "spam", chances >= 0.5
    assert point.get_xydata().tolist() == [[said[spam].mean(), spam[said].mean()]]
    assert chance.get_ydata() == pytest.approx([spam.mean()] * 2)
    for recall, precision in curve.get_xydata()[:-1:20]:
        places = [t for t in np.unique(chances) if (chances >= t)[spam].mean() == pytest.approx(recall)]
        assert any(spam[chances >= t].mean() == pytest.approx(precision) for t in places)
    # No threshold has a precision of one here, and the curve does not pretend so.
    assert curve.get_ydata().max() == max(spam[chances >= t].mean() for t in np.unique(chances))
    assert curve.get_drawstyle() == "steps-post"
    assert legend(figure.axes[0])[-1] == f"chance: {spam.mean():.3f}"
    assert_readable(figure)


def test_a_chosen_threshold_is_marked_where_it_was_found(scores):
    truth, chances = scores
    choice = er.selection.choose_threshold(truth == "spam", chances, by="f1")
    point = er.plots.roc(truth, chances, threshold=choice).axes[0].lines[1].get_xydata()[0]
    expected = choice.false_positive_rate[choice.index], choice.true_positive_rate[choice.index]
    np.testing.assert_allclose(point, expected)
    point = er.plots.precision_recall(truth, chances, threshold=choice).axes[0].lines[1].get_xydata()[0]
    np.testing.assert_allclose(point, (expected[1], choice.precision[choice.index]))


def test_a_threshold_that_nothing_reaches_has_no_precision(scores):
    axes = er.plots.precision_recall(*scores, threshold=2.0).axes[0]
    assert not any("threshold" in entry for entry in legend(axes))


@pytest.mark.parametrize("view", ["roc", "precision_recall", "calibration"])
def test_weight_two_is_the_row_twice(view, scores):
    truth, chances = scores
    weights = np.random.default_rng(1).integers(0, 3, 200)
    draw = getattr(er.plots, view)
    extra = {} if view == "calibration" else {"threshold": 0.4}
    one = draw(truth, chances, sample_weight=weights, **extra).axes[0]
    other = draw(np.repeat(truth, weights), np.repeat(chances, weights), **extra).axes[0]
    assert legend(one) == legend(other)
    for first, second in zip(one.lines, other.lines, strict=True):
        np.testing.assert_allclose(first.get_xydata(), second.get_xydata(), atol=1e-12)


def test_calibration_bins_are_rates_with_intervals(scores):
    truth, chances = scores
    figure = er.plots.calibration(truth, chances, bins=4)
    axes = figure.axes[0]
    spam, bins = truth == "spam", np.minimum((chances * 4).astype(int), 3)
    expected = [(chances[bins == k].mean(), spam[bins == k].mean()) for k in range(4)]
    np.testing.assert_allclose(axes.lines[0].get_xydata(), expected)
    (bars,) = (part for part in axes.collections if isinstance(part, LineCollection))
    for k, bar in enumerate(bars.get_segments()):
        low, high = er.theory.error_interval(int(spam[bins == k].sum()), int((bins == k).sum())).interval
        np.testing.assert_allclose(bar[:, 1], [low, high])
    assert legend(axes) == [f"spam: Brier score {np.mean((chances - spam) ** 2):.3f}", "perfect"]
    assert_readable(figure)


def test_calibration_by_quantiles_has_bins_of_equal_size():
    chances = np.linspace(0, 1, 100) ** 3
    truth = np.arange(100) % 2
    line = er.plots.calibration(truth, chances, bins=5, cut="quantile").axes[0].lines[0]
    np.testing.assert_allclose(line.get_xdata(), chances.reshape(5, 20).mean(axis=1))


@pytest.mark.parametrize("view", ["confusion", "roc", "precision_recall", "calibration"])
def test_views_read_the_result_of_an_evaluation(view, result):
    figure = getattr(er.plots, view)(result)
    assert_readable(figure)
    plain = [result.truth, result.predictions if view == "confusion" else result.probabilities]
    assert legend(figure.axes[0]) == legend(getattr(er.plots, view)(*plain).axes[0])
    if view != "confusion":
        assert [entry.split(":")[0] for entry in legend(figure.axes[0])[:3]] == ["low", "middle", "top"]


def test_decision_values_do_where_there_are_no_probabilities():
    X = np.random.default_rng(0).normal(size=(40, 2))
    result = er.evaluate(er.SVM(), X, X[:, 0] + X[:, 1] > 0.2, cv=3)
    assert legend(er.plots.roc(result).axes[0])[0].startswith("True: area")
    with pytest.raises(EmpiriskError, match="holds no probabilities"):
        er.plots.calibration(result)


def test_residuals_show_every_row():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=80)
    said = truth + 0.3 * rng.normal(size=80) + 0.1
    figure = er.plots.residuals(truth, said)
    left, right = figure.axes
    np.testing.assert_array_equal(offsets(left)[0], np.column_stack([truth, said]))
    assert sum(bar.get_height() for bar in right.patches) == 80
    edges = [bar.get_x() for bar in right.patches]
    assert min(edges) == pytest.approx((truth - said).min())
    assert title(left).startswith(f"Root mean squared error {np.sqrt(np.mean((truth - said) ** 2)):.4g}")
    assert title(right).endswith(f"mean {(truth - said).mean():.3g}")
    assert left.get_xlim() == left.get_ylim()
    assert_readable(figure)
    assert_readable(er.plots.residuals([1.0], [1.0]))
    far = np.append(np.zeros(999), 1e9)
    assert len(er.plots.residuals(far, far * 0).axes[1].patches) <= 70


def test_wrong_arguments_are_named(scores):
    truth, chances = scores
    for call, match in [
        (lambda: er.plots.roc(truth), "scores is missing"),
        (lambda: er.plots.roc(truth, chances[:-1]), "one row for each of the 200"),
        (lambda: er.plots.roc(truth, chances, positive="eggs"), "positive='eggs' is not among the classes"),
        (lambda: er.plots.roc(["a"] * 3, [1, 2, 3]), "one score per row needs two"),
        (lambda: er.plots.roc(truth, np.full(200, np.nan)), "not finite"),
        (lambda: er.plots.roc(truth, chances, sample_weight=np.zeros(200)), "sample_weight is zero for every row"),
        (lambda: er.plots.roc(truth, np.ones((200, 3))), "3 columns for 2 classes"),
        (lambda: er.plots.precision_recall(truth, chances, sample_weight=truth == "ham"), "holds no rows of class"),
        (lambda: er.plots.calibration(truth, 3 * chances), "between 0 and 1"),
        (lambda: er.plots.calibration(truth, chances, bins=0), "bins=0 must be"),
        (lambda: er.plots.calibration(truth, chances, cut="even"), "cut='even' is not known; choose one of"),
        (lambda: er.plots.roc([0, 1, None], [0.1, 0.2, 0.3]), "labels of several types, or missing ones"),
        (lambda: er.plots.confusion(np.array([1, "a"], dtype=object), ["a", "a"]), "labels of several types"),
        (lambda: er.plots.confusion(truth), "predictions is missing"),
        (lambda: er.plots.confusion(truth, truth[:4]), "must be as long as each other"),
        (lambda: er.plots.confusion(truth, truth, classes=["ham"]), "classes leaves out 'spam'"),
        (lambda: er.plots.residuals(truth, truth), "must be numbers"),
        (lambda: er.plots.residuals([1.0, np.nan], [1.0, 1.0]), "must be finite"),
    ]:
        with pytest.raises(EmpiriskError, match=match):
            call()
