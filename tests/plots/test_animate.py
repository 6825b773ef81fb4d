"""Films of fits: every frame shows the state it says."""

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import make_blobs
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LinearRegression
from sklearn.linear_model import LogisticRegression as Logistic
from sklearn.neighbors import KNeighborsClassifier

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.plots.look import assert_readable, contours, frame, legend, offsets, title

pytestmark = pytest.mark.row("P1")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) * [2.0, 1.0]
    return X, np.where(X @ [0.5, 1.0] + 0.5 * rng.normal(size=40) > 0, "yes", "no")


@pytest.mark.row("S1")
def test_descent_grows_to_the_solution(data):
    machine = er.LogisticRegression(C=0.1, solver="gradient_descent").fit(*data)
    film = er.plots.animate(machine, *data, frames=8)
    frames = film._scene.frames
    assert 2 < frames <= 8
    before = 0
    for number in range(frames):
        left, right = frame(film, number)
        way = left.lines[0].get_xydata()
        assert len(way) > before
        before = len(way)
        assert len(right.lines[0].get_ydata()) == number + 1
    np.testing.assert_allclose(way[-1], machine.coef_[0], atol=1e-6)
    assert (np.diff(right.lines[0].get_ydata()) <= 1e-9).all()
    assert right.lines[0].get_ydata()[-1] == pytest.approx(machine.certificate_.primal)
    assert title(left) == f"Gradient descent: iteration {machine.n_iter_}"
    assert_readable(left.figure)


def test_dual_ascent_closes_the_gap_and_shows_the_dual_variables(data):
    X, y = data
    machine = er.SVM(solver="dual_ascent").fit(X, y)
    film = er.plots.animate(machine, X, y, frames=6)
    left, right = frame(film, film._scene.frames - 1)
    primal, dual = (line.get_ydata() for line in right.lines)
    assert (dual <= primal + 1e-9).all()
    assert (np.diff(dual) >= 0).all()
    assert primal[-1] - dual[-1] < 1e-5 * primal[-1] < primal[0] - dual[0]
    for level, piece in contours(left):
        np.testing.assert_allclose(machine.decision_function(piece), level, atol=1e-4)
    assert sorted({level for level, _ in contours(left)}) == [-1, 0, 1]
    sizes = np.concatenate([part.get_sizes() for part in left.collections if hasattr(part, "get_sizes")][-2:])
    places = np.concatenate(offsets(left)[-2:])
    margins = er.Hyperplane.of(machine).margins(
        places, np.repeat(["no", "yes"], [(y == "no").sum(), (y == "yes").sum()]), ["no", "yes"]
    )
    # Rows beyond the margin have no weight, rows inside it have all they can.
    np.testing.assert_allclose(sizes[margins > 1.001], 10)
    np.testing.assert_allclose(sizes[margins < 0.999], 80)
    assert [text.get_text() for text in left.figure.legends[0].get_texts()] == ["no", "yes"]
    assert_readable(left.figure)


@pytest.mark.row("T7")
def test_boosting_shows_the_prediction_after_each_round(data):
    X, y = data
    machine = er.AdaBoostClassifier(n_estimators=12).fit(X, y)
    film = er.plots.animate(machine, X, y, frames=20)
    staged = list(machine.staged_predict(X))
    for number in (0, 4, len(staged) - 1):
        left, right = frame(film, number)
        assert title(left) == f"AdaBoostClassifier: round {number + 1}"
        assert right.lines[0].get_ydata()[-1] == pytest.approx(np.mean(staged[number] != y))
        codes = left.images[0].get_array()
        extent = left.images[0].get_extent()
        across, up = np.linspace(*extent[:2], 120), np.linspace(*extent[2:], 120)
        grid = np.column_stack([np.tile(across, 120), np.repeat(up, 120)])
        said = list(machine.staged_predict(grid))[number]
        np.testing.assert_array_equal(machine.classes_[codes.astype(int).ravel()], said)
    assert_readable(left.figure)


@pytest.mark.parametrize(
    "machine", [GradientBoostingClassifier(n_estimators=5), Logistic(max_iter=4), er.LogisticRegression()]
)
def test_regions_of_anything_that_can_be_replayed(machine, data):
    film = er.plots.animate(machine, *data, kind="regions", frames=4)
    left, right = frame(film, film._scene.frames - 1)
    final = type(machine)(**machine.get_params())
    if isinstance(machine, Logistic):
        final.set_params(max_iter=100)
    final.fit(*data)
    assert right.lines[0].get_ydata()[-1] == pytest.approx(1 - final.score(*data), abs=0.051)
    assert legend(left) == []


@pytest.mark.parametrize("machine", [er.SVM(), er.LogisticRegression()])
def test_several_classes_are_replayed_together(machine, data):
    X, _ = data
    three = np.digitize(X[:, 0], [-1.0, 1.0])
    film = er.plots.animate(machine, X, three, frames=4)
    left, right = frame(film, film._scene.frames - 1)
    final = type(machine)(**machine.get_params()).fit(X, three)
    assert right.lines[0].get_ydata()[-1] == pytest.approx(1 - final.score(X, three))
    assert set(np.unique(left.images[0].get_array())) == {0, 1, 2}
    with pytest.raises(EmpiriskError, match="several functions at once"):
        er.plots.animate(machine, X, three, kind="dual")


def test_many_classes_with_long_names_have_a_key():
    X, y = make_blobs(60, centers=10, random_state=3)
    names = np.array([f"a class whose name is far too long, number {k}" for k in range(10)])
    film = er.plots.animate(GradientBoostingClassifier(n_estimators=2), X, names[y], frames=2)
    left, _ = frame(film, 1)
    assert len(left.figure.legends[0].get_texts()) == 10
    assert_readable(left.figure)


def test_kernel_machines_are_shown_in_the_dual(data):
    X, y = data
    machine = er.SVM(features=er.kernels.Gaussian(width=1.0)).fit(X, y)
    film = er.plots.animate(machine, X, y, frames=3)
    left, right = frame(film, film._scene.frames - 1)
    assert right.lines[0].get_ydata()[-1] == pytest.approx(machine.certificate_.primal, rel=1e-4)
    for level, piece in contours(left):
        # Between the points of the grid the lines are straight.
        np.testing.assert_allclose(machine.decision_function(piece), level, atol=0.02)
    with pytest.raises(EmpiriskError, match="has no weights to draw"):
        er.plots.animate(machine, X, y, kind="descent")


def test_a_long_fit_shows_more_of_its_beginning():
    from empirisk.plots.scenes import spread

    assert spread(5, 10).tolist() == [0, 1, 2, 3, 4]
    shown = spread(1000, 20)
    assert len(shown) <= 20
    assert (shown[0], shown[-1]) == (0, 999)
    assert (np.diff(shown, 2) >= 0).mean() > 0.7


def test_files_are_written_by_their_suffix(data, tmp_path):
    machine = er.LogisticRegression(solver="gradient_descent")
    film = er.plots.animate(machine, *data, file=tmp_path / "fit.gif", frames=3, fps=4)
    assert film == tmp_path / "fit.gif"
    with Image.open(film) as picture:
        assert picture.format == "GIF"
        assert picture.n_frames == 3
        assert picture.info["duration"] == 250
    page = er.plots.animate(machine, *data, file=str(tmp_path / "fit.html"), frames=3).read_text(encoding="utf-8")
    assert page.count("data:image/png;base64") == 3
    assert "http" not in page
    assert "<i class" not in page
    assert '<button title="Play" ' in page
    assert "►" in page


def test_the_machine_stays_as_it_was(data):
    machine = er.SVM(solver="dual_ascent", C=3.0)
    er.plots.animate(machine, *data, frames=2)
    assert machine.C == 3.0
    assert machine.solver == "dual_ascent"
    assert not hasattr(machine, "coef_")


def test_a_film_plays_in_a_notebook_and_may_be_forgotten(data):
    film = er.plots.animate(er.LogisticRegression(solver="gradient_descent"), *data, frames=2)
    assert film._repr_html_().count("data:image/png;base64") == 2
    del film
    er.plots.animate(er.LogisticRegression(), *data, frames=2)  # unseen, and no warning


def test_wrong_arguments_are_named(data, tmp_path):
    X, y = data
    for machine, wrong, match in [
        (er.SVM(), {"kind": "film"}, "kind='film' is not known; choose one of"),
        (er.SVM(), {"file": tmp_path / "fit.mp4"}, "must end in .gif or .html"),
        (er.SVM(), {"frames": 0}, "frames=0 must be"),
        (er.SVM(), {"fps": 0}, "fps=0 must be"),
        (er.SVM(), {"kind": "descent", "columns": (0, 5)}, "two different numbers from 0 to 1"),
        (er.SVM(), {"kind": "dual", "columns": (0, 1, 1)}, "exactly two columns"),
        (KNeighborsClassifier(), {}, "cannot be replayed; give a machine with rounds or with max_iter"),
        (LinearRegression(), {}, "predicts no classes"),
        (er.Ridge(), {"kind": "dual"}, "shows classifiers of two classes"),
    ]:
        target = (y == "yes").astype(float) if isinstance(machine, (er.Ridge, LinearRegression)) else y
        with pytest.raises(EmpiriskError, match=match):
            er.plots.animate(machine, X, target, **wrong)


@pytest.mark.row("E10")
def test_the_path_of_minimise_is_a_film():
    found = er.minimise(lambda x: x[0] ** 2 + 4 * x[1] ** 2, [2.0, 1.0], "gradient_descent")
    film = er.plots.animate(found, frames=5)
    left, right = frame(film, 4)
    np.testing.assert_array_equal(left.lines[0].get_xydata(), found.history["x"])
    assert right.lines[0].get_ydata()[-1] == found.value
    with pytest.raises(EmpiriskError, match="X=None"):
        er.plots.animate(er.KMeans(2))
    with pytest.raises(EmpiriskError, match="kind='path' does not show a KMeans"):
        er.plots.animate(er.KMeans(2), np.eye(3), kind="path")
