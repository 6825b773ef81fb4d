"""Views of rankings draw the numbers of the evaluation."""

import numpy as np
import pytest

import empirisk as er
from tests.plots.look import assert_readable

pytestmark = pytest.mark.row("V10")

RANDOM = np.random.default_rng(0)
TRUTH = RANDOM.random(200) < 0.3
SCORES = RANDOM.normal(size=200) + TRUTH
CHANCES = RANDOM.dirichlet(np.ones(3), 150)
LABELS = np.array([RANDOM.choice(3, p=chances) for chances in CHANCES])


def test_views_draw_the_numbers():
    curve = er.evaluation.cost_curve(TRUTH, SCORES)
    axes = er.plots.cost_curve(TRUTH, SCORES).axes[0]
    drawn = next(line for line in axes.lines if str(line.get_label()).startswith("True"))
    np.testing.assert_allclose(drawn.get_xydata(), np.column_stack([curve.probability_cost, curve.cost]))
    found = er.evaluation.gains(TRUTH, SCORES)
    line = er.plots.gains(TRUTH, SCORES).axes[0].lines[0]
    np.testing.assert_allclose(line.get_xydata(), np.column_stack([found.taken, found.found]))
    line = er.plots.lift(TRUTH, SCORES).axes[0].lines[0]
    np.testing.assert_allclose(line.get_ydata(), found.lift[1:])
    ks, shares = er.plots.precision_at_k(TRUTH, SCORES, most=50).axes[0].lines[0].get_xydata().T
    assert ks.max() == 50
    np.testing.assert_allclose(shares[ks == 7], er.evaluation.precision_at_k(TRUTH, SCORES, 7))
    hull = er.evaluation.roc_hull(TRUTH, SCORES)
    line = er.plots.roc(TRUTH, SCORES, hull=True).axes[0].lines[1]
    np.testing.assert_allclose(line.get_xydata(), np.column_stack([hull.false_positive_rate, hull.true_positive_rate]))


@pytest.mark.parametrize("view", ["cost_curve", "gains", "lift", "precision_at_k"])
def test_several_classes_are_drawn_each(view):
    figure = getattr(er.plots, view)(LABELS, CHANCES)
    assert_readable(figure)
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert sum(text[0] in "012" for text in texts) == 3
