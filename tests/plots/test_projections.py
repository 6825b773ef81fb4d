"""Views on a line, of outliers, of vectors as images and of the variance of directions."""

import numpy as np
import polars as pl
import pytest
from matplotlib.container import BarContainer
from matplotlib.contour import ContourSet
from sklearn.decomposition import PCA
from sklearn.svm import OneClassSVM

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.plots.look import assert_readable, legend, offsets, title
from tests.plots.test_animate import frame

pytestmark = pytest.mark.row("P1")


@pytest.fixture(scope="module")
def waves():
    x = np.linspace(0, 6, 40)
    return x, np.sin(x) + 0.1 * np.random.default_rng(0).normal(size=40)


# --- regression -------------------------------------------------------------------------------------------------------


def test_curves_of_several_machines_are_their_predictions(waves):
    x, y = waves
    machines = {"ridge": er.Ridge(features="gaussian"), "tree": er.TreeRegressor(max_depth=2).fit(x[:, None], y)}
    figure = er.plots.regression(machines, x[:, None], y, truth=np.sin, resolution=50)
    axes = figure.axes[0]
    assert legend(axes) == ["data", "truth", "ridge", "tree"]
    truth, ridge, tree = axes.lines
    places = np.asarray(truth.get_xdata())
    np.testing.assert_allclose(truth.get_ydata(), np.sin(places))
    np.testing.assert_allclose(tree.get_ydata(), machines["tree"].predict(places[:, None]))
    fitted = er.Ridge(features="gaussian").fit(x[:, None], y)
    np.testing.assert_allclose(ridge.get_ydata(), fitted.predict(places[:, None]), rtol=1e-6)
    assert not hasattr(machines["ridge"], "dual_coef_")
    np.testing.assert_array_equal(offsets(axes)[0], np.column_stack([x, y]))
    assert_readable(figure)


def test_several_values_of_C_are_several_curves(waves):
    x, y = waves
    machine = er.Ridge(features=er.kernels.Gaussian(0.5))
    figure = er.plots.regression(machine, x, y, C=[0.01, 100.0], extent=(-1, 7))
    assert legend(figure.axes[0]) == ["data", "C = 0.01", "C = 100"]
    weak, strong = (np.ptp(line.get_ydata()) for line in figure.axes[0].lines)
    assert weak < strong
    assert figure.axes[0].get_xlim() == (-1, 7)
    table = pl.DataFrame({"time": x})
    assert len(er.plots.regression([er.Ridge(), er.Ridge()], table, y).axes[0].lines) == 2


def test_wrong_regressions_are_named(waves):
    x, y = waves
    for wrong, match in [
        (lambda: er.plots.regression(er.Ridge(), np.column_stack([x, x]), y), "rows with one column"),
        (lambda: er.plots.regression(er.Ridge(), x, y[:5]), "one number for each"),
        (lambda: er.plots.regression("ridge", x, y), "machines must be a regressor"),
        (lambda: er.plots.regression([er.Ridge(), er.Lasso()], x, y, C=[1.0]), "machines holds 2; give one"),
        (lambda: er.plots.regression(er.Ridge(), x, y, truth=[1.0]), "truth has shape"),
        (lambda: er.plots.regression(er.Ridge(), x, y, extent=(2, 1)), "the smaller one first"),
        (lambda: er.plots.regression(er.Ridge(), x, y, resolution=1), "resolution=1"),
    ]:
        with pytest.raises(EmpiriskError, match=match):
            wrong()


# --- classification on a line -----------------------------------------------------------------------------------------


def test_stems_are_the_dual_coefficients():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 1)), rng.integers(0, 2, 30)
    machine = er.SVM(C=5.0, features=er.kernels.Gaussian(0.5)).fit(X, y)
    figure = er.plots.stems(machine, X, y)
    axes = figure.axes[0]
    heights = np.zeros(30)
    heights[machine.support_] = machine.dual_coef_[0]
    drawn = np.concatenate(offsets(axes))
    expected = np.concatenate([np.column_stack([X[y == k, 0], heights[y == k]]) for k in (0, 1)])
    np.testing.assert_allclose(drawn, expected)
    curve = axes.lines[0]
    np.testing.assert_allclose(curve.get_ydata(), machine.decision_function(np.asarray(curve.get_xdata())[:, None]))
    assert title(axes) == f"SVM: {len(machine.support_)} of 30 rows count"
    assert_readable(figure)
    with pytest.raises(EmpiriskError, match="no dual coefficients of two classes"):
        er.plots.stems(er.TreeClassifier().fit(X, y), X, y)
    with pytest.raises(EmpiriskError, match="rows that the machine was fitted to"):
        er.plots.stems(machine, X[:3], y[:3])


def test_the_film_of_one_column_shows_stems_that_grow():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 1))
    y = np.where(X[:, 0] > 0, "up", "down")
    film = er.plots.animate(er.SVM(features=er.kernels.Gaussian(1.0)), X, y, frames=4)
    first = np.concatenate(offsets(frame(film, 0)[0]))[:, 1]
    left, _ = frame(film, film._scene.frames - 1)
    last = np.concatenate(offsets(left))[:, 1]
    machine = er.SVM(features=er.kernels.Gaussian(1.0)).fit(X, y)
    np.testing.assert_allclose(np.abs(last).sum(), np.abs(machine.dual_coef_).sum(), rtol=1e-3)
    assert np.abs(first - last).max() > 0
    assert_readable(left.figure)


# --- outliers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", [er.OneClassSVM(0.2, er.kernels.Gaussian(1.0)), OneClassSVM(nu=0.2)])
def test_the_boundary_of_outliers_needs_no_target(machine):
    X = np.random.default_rng(0).normal(size=(60, 3))
    machine.fit(X)
    figure = er.plots.outliers(machine, X, columns=(0, 2), held={1: 0.0}, resolution=60)
    axes = figure.axes[0]
    (boundary,) = (part for part in axes.collections if isinstance(part, ContourSet) and list(part.levels) == [0.0])
    spread = np.ptp(machine.decision_function(X))
    for piece in boundary.allsegs[0]:
        rows = np.column_stack([piece[:, 0], np.zeros(len(piece)), piece[:, 1]])
        np.testing.assert_allclose(machine.decision_function(rows), 0.0, atol=0.01 * spread)
    inside, outside, support = offsets(axes)
    assert len(inside) == (machine.predict(X) > 0).sum()
    assert len(inside) + len(outside) == 60
    np.testing.assert_array_equal(support, X[machine.support_][:, [0, 2]])
    assert legend(axes)[2] == "boundary"
    assert_readable(figure)


def test_outliers_are_refused_for_classifiers_and_before_fit():
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(EmpiriskError, match="is not fitted"):
        er.plots.outliers(er.OneClassSVM(), X)
    with pytest.raises(EmpiriskError, match="does not tell outliers"):
        er.plots.outliers(er.SVM().fit(X, X[:, 0] > 0), X)


# --- images -----------------------------------------------------------------------------------------------------------


def test_images_are_the_vectors_whole_or_in_parts():
    X = np.random.default_rng(0).normal(size=(30, 12))
    pca = er.PCA(5).fit(X)
    figure = er.plots.images(pca, (3, 4))
    pictures = [axes.images[0].get_array() for axes in figure.axes]
    np.testing.assert_array_equal(np.reshape(pictures, (5, 12)), pca.components_)
    assert_readable(figure)
    parts = er.plots.images(pca, (3, 4), parts=True, names=list("abcde"))
    halves = np.reshape([axes.images[0].get_array() for axes in parts.axes], (5, 2, 12))
    np.testing.assert_array_equal(halves[:, 0] - halves[:, 1], pca.components_)
    assert (halves >= 0).all()
    assert [axes.get_title() for axes in parts.axes][:4] == ["a +", "a -", "b +", "b -"]
    assert_readable(parts)


def test_any_vectors_can_be_drawn():
    X = np.random.default_rng(0).normal(size=(30, 9))
    y = X[:, 0] > 0
    vectors = np.linalg.svd(X)[2]
    assert len(er.plots.images(vectors, most=4).axes) == 4
    assert len(er.plots.images(er.SVM().fit(X, y)).axes) == 1
    dictionary = er.Dictionary(4, coding="omp", nonzeros=1, random_state=0).fit(X)
    assert len(er.plots.images(dictionary, common=True).axes) == 4
    limits = {axes.images[0].get_clim() for axes in er.plots.images(dictionary, common=True).axes}
    assert len(limits) == 1
    assert len(er.plots.images(dictionary.transform(X), (2, 2)).axes) == 30


def test_wrong_images_are_named():
    for wrong, match in [
        (lambda: er.plots.images(np.ones((2, 8))), "shape=None is for squares"),
        (lambda: er.plots.images(np.ones((2, 8)), (3, 3)), "does not hold the 8 entries"),
        (lambda: er.plots.images(er.PCA()), "has no vectors to draw"),
        (lambda: er.plots.images("vectors"), "fitted machine or an array"),
        (lambda: er.plots.images(np.ones((2, 4)), names=["a"]), "names holds 1 names for 2 images"),
        (lambda: er.plots.images(np.ones((2, 4)), most=0), "most=0"),
        (lambda: er.plots.images([[np.nan] * 4]), "finite numbers"),
    ]:
        with pytest.raises(EmpiriskError, match=match):
            wrong()


# --- variance ---------------------------------------------------------------------------------------------------------


def test_bars_are_shares_and_the_line_their_sum():
    X = np.random.default_rng(0).normal(size=(50, 5)) * [5, 3, 2, 1, 0.5]
    for pca in (er.PCA(None).fit(X), PCA().fit(X)):
        figure = er.plots.scree(pca, share=0.9)
        axes = figure.axes[0]
        (bars,) = (part for part in axes.containers if isinstance(part, BarContainer))
        np.testing.assert_allclose([bar.get_height() for bar in bars], pca.explained_variance_ratio_)
        np.testing.assert_allclose(axes.lines[0].get_ydata(), np.cumsum(pca.explained_variance_ratio_))
        enough = int(np.argmax(np.cumsum(pca.explained_variance_ratio_) >= 0.9)) + 1
        assert f"{enough} directions reach 90 %" in legend(axes)
        assert_readable(figure)
    assert "90 % is not reached" in legend(er.plots.scree(er.PCA(1).fit(X), share=0.9).axes[0])
    with pytest.raises(EmpiriskError, match="fitted PCA"):
        er.plots.scree(er.PCA())
    with pytest.raises(EmpiriskError, match="share=2 must be"):
        er.plots.scree(er.PCA(1).fit(X), share=2)
