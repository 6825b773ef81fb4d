"""What holds for every view: it needs no window, changes no setting, draws where it is told, and becomes SVG."""

import inspect
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import empirisk as er
from empirisk.plots import style
from tests.plots.look import assert_readable, figures

pytestmark = pytest.mark.row("P1")

X = np.random.default_rng(0).normal(size=(30, 2))
Y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0, "yes", "no")
CHANCES = 1 / (1 + np.exp(-X[:, 0]))
SCORES = np.array([[0.9, 0.8], [0.95, 0.85], [1.0, 0.9]])

VIEWS = {
    "box_cox": lambda **to: er.plots.box_cox(**to),
    "calibration": lambda **to: er.plots.calibration(Y, CHANCES, **to),
    "coefficients": lambda **to: er.plots.coefficients([0.1, 1.0], [[0.0, 1.0], [2.0, 3.0]], **to),
    "confusion": lambda **to: er.plots.confusion(Y, Y[::-1], **to),
    "cost_curve": lambda **to: er.plots.cost_curve(Y, CHANCES, **to),
    "dendrogram": lambda **to: er.plots.dendrogram(er.Hierarchical().fit(X), **to),
    "density": lambda **to: er.plots.density(er.GaussianDensity().fit(X), X, **to),
    "descent": lambda **to: er.plots.descent(er.LogisticRegression(), X, Y, **to),
    "folds": lambda **to: er.plots.folds(3, X, Y, **to),
    "gains": lambda **to: er.plots.gains(Y, CHANCES, **to),
    "gram": lambda **to: er.plots.gram(X @ X.T, y=Y, **to),
    "history": lambda **to: er.plots.history(er.LogisticRegression().fit(X, Y), **to),
    "impurities": lambda **to: er.plots.impurities(**to),
    "importance": lambda **to: er.plots.importance([0.1, 0.2], **to),
    "kernels": lambda **to: er.plots.kernels(**to),
    "metric": lambda **to: er.plots.metric(er.LearnedKernel().fit(X), **to),
    "learning_curve": lambda **to: er.plots.learning_curve([1, 2, 3], SCORES, SCORES - 0.1, **to),
    "lift": lambda **to: er.plots.lift(Y, CHANCES, **to),
    "losses": lambda **to: er.plots.losses(**to),
    "luck": lambda **to: er.plots.luck(2, 20, **to),
    "margins": lambda **to: er.plots.margins(er.SVM().fit(X, Y), X, Y, **to),
    "outliers": lambda **to: er.plots.outliers(er.OneClassSVM(0.2).fit(X), X, **to),
    "projection": lambda **to: er.plots.projection(er.PCA(2).fit(X), X, Y, **to),
    "precision_at_k": lambda **to: er.plots.precision_at_k(Y, CHANCES, **to),
    "precision_recall": lambda **to: er.plots.precision_recall(Y, CHANCES, threshold=0.5, **to),
    "regions": lambda **to: er.plots.regions(er.SVM().fit(X, Y), X, Y, resolution=20, **to),
    "regression": lambda **to: er.plots.regression(er.Ridge(), X[:, :1], X[:, 1], **to),
    "residuals": lambda **to: er.plots.residuals(X[:, 0], X[:, 1], **to),
    "roc": lambda **to: er.plots.roc(Y, CHANCES, threshold=0.5, **to),
    "rounds": lambda **to: er.plots.rounds(er.AdaBoostClassifier(n_estimators=3).fit(X, Y), **to),
    "scree": lambda **to: er.plots.scree(er.PCA(2).fit(X), **to),
    "stems": lambda **to: er.plots.stems(er.SVM(features="gaussian").fit(X[:, :1], Y), X[:, :1], Y, **to),
    "validation_curve": lambda **to: er.plots.validation_curve([1, 2, 3], SCORES, SCORES - 0.1, **to),
    "voronoi": lambda **to: er.plots.voronoi(er.KMeans(2, random_state=0).fit(X), X, **to),
}
TWO = {"residuals", "history"}
#: Pages of many pictures, and what is no picture; tests of their own are beside.
PAGES = {
    "activations",
    "feature_maps",
    "filters",
    "hidden_units",
    "images",
    "network",
    "tangent",
    "tickets",
    "training",
    "widths",
}
OTHERS = {"additive", "shapes", "animate", "slider", "to_svg", "tree"} | PAGES


def test_every_view_is_here():
    assert set(VIEWS) | OTHERS == set(er.plots.__all__)


def test_overlaps_and_cut_texts_are_found():
    page = Figure()
    page.text(0.5, 0.5, "one")
    page.text(0.51, 0.5, "other")
    with pytest.raises(AssertionError, match="'one' and 'other' overlap"):
        assert_readable(page)
    page.texts[1].set_position((0.98, 0.5))
    with pytest.raises(AssertionError, match="'other' leaves the page"):
        assert_readable(page)


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_has_labels_no_overlap_and_leaves_the_settings_alone(name):
    before = dict(mpl.rcParams)
    figure = VIEWS[name]()
    assert_readable(figure)
    assert dict(mpl.rcParams) == before
    assert any(axes.get_xlabel() for axes in figure.axes)
    assert figure.axes[0].get_title(loc="left")
    assert figure.axes[0].get_ylabel() or name in ("importance", "metric")  # their bars have names instead


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_draws_into_the_axes_given(name):
    page = Figure(figsize=(1.6, 1.2))  # tiny, and still no warning
    axes = list(page.subplots(1, 2)) if name in TWO else page.subplots()
    assert VIEWS[name](axes=axes) is page
    page.canvas.draw()
    drawn = axes if isinstance(axes, list) else [axes]
    assert all(one.has_data() for one in drawn)
    part = Figure().subfigures(1, 2)[1]
    inside = list(part.subplots(1, 2)) if name in TWO else part.subplots()
    assert VIEWS[name](axes=inside) is part.figure


@pytest.mark.parametrize("name", sorted(set(VIEWS) | {"tree"}))
def test_a_view_becomes_a_self_contained_svg(name):
    def draw():
        return er.plots.tree(er.TreeClassifier(max_depth=2).fit(X, Y)) if name == "tree" else VIEWS[name]()

    svg = er.plots.to_svg(draw())
    assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert not re.search(r"<metadata|<!DOCTYPE|<\?xml|dc:date", svg)
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg)) <= set(ids)
    assert set(re.findall(r'href="([^#"][^":]*):', svg)) <= {"data"}
    if name != "history":  # its seconds differ
        assert svg == er.plots.to_svg(draw())


def test_two_figures_share_no_id():
    one, other = (set(re.findall(r'\bid="([^"]+)"', er.plots.to_svg(VIEWS[name]()))) for name in ("losses", "luck"))
    assert one.isdisjoint(other)


GALLERY = sorted((Path(__file__).parents[2] / "examples" / "views").rglob("plot_*.py"))


def test_the_gallery_shows_every_view():
    text = " ".join(script.read_text(encoding="utf-8") for script in GALLERY)
    assert set(re.findall(r"er\.plots\.(\w+)\(", text)) == set(er.plots.__all__)


@pytest.mark.parametrize("section", sorted({script.parent.name for script in GALLERY}))
def test_the_gallery_runs_and_its_pictures_can_be_read(section, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for script in GALLERY:
        if script.parent.name == section:
            drawn = list(figures(script))
            assert drawn, script.name
            for figure in drawn:
                assert_readable(figure)
    assert not list(tmp_path.iterdir())


def test_nothing_needs_a_window_and_names_stay_functions():
    code = """
import sys, warnings
warnings.simplefilter("error")
import empirisk as er
assert "matplotlib" not in sys.modules
import empirisk.plots.equation, empirisk.plots.animation
assert callable(er.plots.losses) and callable(er.plots.animate) and callable(er.plots.regions)
er.plots.losses("hinge").savefig(sys.stdout.buffer, format="png")
assert "matplotlib.pyplot" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.startswith(b"\x89PNG")


def test_an_unknown_view_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"empirisk\.plots has no 'pie'"):
        er.plots.pie  # noqa: B018
    assert dir(er.plots) == sorted(er.plots.__all__)


def test_every_view_takes_axes_and_returns_a_figure():
    for name in VIEWS:
        signature = inspect.signature(getattr(er.plots, name), eval_str=True)
        assert signature.parameters["axes"].default is None
        assert signature.return_annotation is Figure


# Linear RGB as seen by people without the cones for long, middle or short waves (Machado, Oliveira, Fernandes 2009).
BLINDNESS = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour):
    """CIE L*a*b* of a linear RGB colour."""
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ np.clip(
        colour, 0, 1
    )
    f = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eyes", BLINDNESS)
def test_the_first_colours_can_be_told_apart_by_all(eyes):
    linear = [((np.array(to_rgb(c)) + 0.055) / 1.055) ** 2.4 for c in style.PALETTE[:8]]
    seen = [lab(np.asarray(BLINDNESS[eyes]) @ colour) for colour in linear]
    apart = [np.linalg.norm(a - b) for k, a in enumerate(seen) for b in seen[:k]]
    assert min(apart) > 15


def test_names_are_shortened_in_the_middle():
    assert style.plain("short") == "short"
    assert style.plain("x" * 30 + "1", 10) == "xxxxx…xxx1"
    assert len(style.plain("y" * 99)) == 24
    assert style.plain("_private") == " _private"
    assert style.plain("$x$") == r"\$x\$"
    assert style.plain("") == "(empty)"
