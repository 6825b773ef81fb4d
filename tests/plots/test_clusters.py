"""Views of clusters and densities: cells, trees, contours, and the films of their fits."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans as Theirs
from sklearn.datasets import make_blobs

import empirisk as er
from empirisk.errors import EmpiriskError, Unsuitable
from tests.plots.look import assert_readable, contours, frame, legend, offsets, title

pytestmark = pytest.mark.row("P1")
X, _ = make_blobs(90, 3, centers=3, random_state=2)


@pytest.mark.parametrize("machine", [er.KMeans(3, random_state=0), Theirs(3, n_init=2), er.GaussianMixture(3)], ids=str)
def test_cells_are_predictions_and_means_are_marked(machine):
    machine.fit(X)
    figure = er.plots.voronoi(machine, X, resolution=25, columns=(0, 2))
    assert_readable(figure)
    axes = figure.axes[0]
    (image,) = axes.images
    left, right, bottom, top = image.get_extent()
    across, up = np.linspace(left, right, 25), np.linspace(bottom, top, 25)
    grid = np.column_stack([np.tile(across, 25), np.full(625, np.median(X[:, 1])), np.repeat(up, 25)])
    np.testing.assert_array_equal(image.get_array().ravel(), machine.predict(grid))
    means = getattr(machine, "cluster_centers_", getattr(machine, "means_", None))
    np.testing.assert_allclose(offsets(axes)[-1], means[:, [0, 2]])
    assert legend(axes)[-1] == "mean"


def test_many_cells_are_not_named():
    figure = er.plots.voronoi(er.KMeans(13, random_state=0).fit(X[:, :2]), X[:, :2], resolution=25)
    assert legend(figure.axes[0]) == ["mean"]
    assert sum(map(len, offsets(figure.axes[0]))) == len(X) + 13
    assert len(legend(er.plots.voronoi(er.KMeans(12, random_state=0).fit(X[:, :2]), X[:, :2]).axes[0])) == 13


def test_cells_behind_a_kernel_and_of_a_frame():
    frame = pd.DataFrame(X[:, :2], columns=["long", "wide"])
    figure = er.plots.voronoi(er.KMeans(3, "gaussian", random_state=0).fit(frame), frame, resolution=20)
    assert "mean" not in legend(figure.axes[0])
    assert figure.axes[0].get_xlabel() == "long"


def test_a_dendrogram_has_every_merge_and_the_cut():
    machine = er.Hierarchical("complete", n_clusters=3).fit(X)
    figure = er.plots.dendrogram(machine, leaves=90)
    assert_readable(figure)
    axes = figure.axes[0]
    brackets = [line for line in axes.lines if len(line.get_xdata()) == 4]
    np.testing.assert_allclose(sorted(max(line.get_ydata()) for line in brackets), machine.linkage_[:, 2])
    (cut,) = (line for line in axes.lines if line.get_linestyle() == "--")
    level = cut.get_ydata()[0]
    np.testing.assert_array_equal(machine.cut(height=level), machine.labels_)
    below = {line.get_color() for line in brackets if max(line.get_ydata()) <= level}
    assert len(below) == 3
    assert "cut into 3 clusters" in legend(axes)
    few = er.plots.dendrogram(machine, leaves=12, n_clusters=2)
    assert_readable(few)
    labels = [text.get_text() for text in few.axes[0].get_xticklabels()]
    assert len(labels) == 12
    assert sum(int(label.strip("()")) if label.startswith("(") else 1 for label in labels) == 90
    named = er.plots.dendrogram(er.Hierarchical().fit(X[:3]), names=["a", "b", "$c$"])
    assert_readable(named)


@pytest.mark.parametrize("machine", [er.GaussianDensity(quantile=0.1), er.GaussianMixture(3, random_state=0)], ids=str)
def test_contours_are_levels_of_the_density(machine):
    rows = X[:, :2]
    machine.fit(rows)
    figure = er.plots.density(machine, rows)
    assert_readable(figure)
    for filled in [part for part in figure.axes[0].collections if getattr(part, "filled", False)]:
        filled.remove()
    lines = contours(figure.axes[0])
    for level, piece in lines:
        np.testing.assert_allclose(machine.score_samples(piece), level, atol=0.05)
    assert machine.offset_ in [level for level, _ in lines]
    assert "threshold" in legend(figure.axes[0])


def test_the_film_of_k_means_shows_both_half_steps():
    machine = er.KMeans(3, init="random", random_state=1)
    steps = machine.half_steps(X)
    inertia = [step.inertia for step in steps]
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(inertia))
    assert [step.what.split()[0] for step in steps[:3]] == ["rows", "means", "rows"]
    fitted = er.KMeans(3, init=steps[0].means).fit(X)
    np.testing.assert_allclose(steps[-1].means, fitted.cluster_centers_)
    np.testing.assert_array_equal(steps[-1].labels, fitted.labels_)
    film = er.plots.animate(machine, X, frames=4)
    left, _ = frame(film, 1)
    assert "means move" in title(left)
    assert_readable(left.figure)
    with pytest.raises(Unsuitable, match="half_steps"):
        er.KMeans(3, "gaussian").half_steps(X)


def test_the_film_of_a_mixture_ends_at_its_fit(tmp_path):
    machine = er.GaussianMixture(3, init="random", random_state=0)
    film = er.plots.animate(machine, X, frames=3)
    left, right = frame(film, film._scene.frames - 1)
    assert_readable(left.figure)
    fitted = machine.fit(X)
    np.testing.assert_allclose(offsets(left)[-1], fitted.means_[:, :2])
    assert len(left.patches) == 6
    assert right.lines[0].get_ydata()[-1] == pytest.approx(fitted.lower_bound_)
    path = er.plots.animate(er.KMeans(2, random_state=0), X, frames=2, file=tmp_path / "film.gif")
    assert path.stat().st_size > 1000


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(EmpiriskError, match="not fitted"):
        er.plots.voronoi(er.KMeans(), X)
    with pytest.raises(EmpiriskError, match="has no predict"):
        er.plots.voronoi(er.Hierarchical().fit(X), X)
    with pytest.raises(EmpiriskError, match="has no score_samples"):
        er.plots.density(er.KMeans().fit(X), X)
    with pytest.raises(EmpiriskError, match="has no cut"):
        er.plots.dendrogram(er.KMeans().fit(X))
    with pytest.raises(EmpiriskError, match="kind='mixture' does not show"):
        er.plots.animate(er.KMeans(), X, kind="mixture")
    with pytest.raises(EmpiriskError, match="y=None"):
        er.plots.animate(er.SVM(), X)
