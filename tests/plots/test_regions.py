"""Decision regions: the predicted classes, the borders, the margin and the support vectors."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
from sklearn.svm import SVC

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.plots.look import assert_readable, contours, legend, offsets, title

pytestmark = pytest.mark.row("P1")


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(60, noise=0.25, random_state=0)
    return X, np.where(y == 1, "up", "down")


def picture(figure):
    (image,) = figure.axes[0].images
    return image.get_array(), image.get_extent()


def centres(extent, count):
    """The middles of the cells that a picture has between its edges."""
    return [np.linspace(*extent[i : i + 2], count) for i in (0, 2)]


@pytest.mark.parametrize(
    "machine", [er.SVM(), er.TreeClassifier(max_depth=3), SVC(), KNeighborsClassifier(3), GaussianNB()]
)
def test_the_picture_is_the_prediction(machine, moons):
    X, y = moons
    machine.fit(X, y)
    codes, extent = picture(er.plots.regions(machine, X, y, resolution=30))
    across, up = centres(extent, 30)
    grid = np.column_stack([np.tile(across, 30), np.repeat(up, 30)])
    np.testing.assert_array_equal(machine.classes_[codes.astype(int).ravel()], machine.predict(grid))
    assert extent[0] < X[:, 0].min() < X[:, 0].max() < extent[1]


def test_borders_and_margins_are_levels_of_the_decision_function(moons):
    X, y = moons
    machine = er.SVM().fit(X, y)
    figure = er.plots.regions(machine, X, y)
    axes = figure.axes[0]
    lines = contours(axes)
    assert sorted(level for level, _ in lines) == [-1, 0, 1]
    for level, piece in lines:
        np.testing.assert_allclose(machine.decision_function(piece), level, atol=1e-9)
    *classes, rings = offsets(axes)
    np.testing.assert_array_equal(np.concatenate(classes), np.concatenate([X[y == "down"], X[y == "up"]]))
    support = er.Hyperplane.of(machine).support(X, y, machine.classes_)
    np.testing.assert_array_equal(rings, X[support])
    assert legend(axes) == ["down", "up", "margin, f = ±1", f"support vector ({len(support)})"]
    assert_readable(figure)


def test_a_fitted_svc_names_its_own_support_vectors(moons):
    X, y = moons
    machine = SVC(kernel="rbf", C=2.0).fit(X, y)
    *_, rings = offsets(er.plots.regions(machine, X, y).axes[0])
    np.testing.assert_array_equal(rings, machine.support_vectors_)
    scaled = make_pipeline(StandardScaler(), SVC(C=2.0)).fit(X, y)
    *_, rings = offsets(er.plots.regions(scaled, X, y).axes[0])
    assert {tuple(row) for row in rings} == {tuple(row) for row in X[scaled[-1].support_]}


def test_machines_without_a_margin_show_none(moons):
    X, y = moons
    for machine in (er.LogisticRegression(), er.TreeClassifier(), GaussianNB()):
        assert legend(er.plots.regions(machine.fit(X, y), X, y, resolution=20).axes[0]) == ["down", "up"]
    shown = er.plots.regions(er.LogisticRegression().fit(X, y), X, y, margins=True, resolution=20)
    assert len(legend(shown.axes[0])) == 4
    hidden = er.plots.regions(er.SVM().fit(X, y), X, y, margins=False, resolution=20)
    assert legend(hidden.axes[0]) == ["down", "up"]


def test_borders_follow_the_prediction_where_scores_say_otherwise(moons):
    X, y = moons
    machine = FixedThresholdClassifier(GaussianNB(), threshold=0.95, pos_label="up").fit(X, y)
    axes = er.plots.regions(machine, X, y, resolution=80).axes[0]
    step = np.diff(centres(picture(axes.figure)[1], 80))[:, 0].max()
    for _, piece in contours(axes):
        chances = machine.predict_proba(piece)[:, 1]
        assert np.abs(chances - 0.95).max() < 0.5
        moved = [machine.predict(piece + step * np.array(way)) for way in ((1, 0), (-1, 0), (0, 1), (0, -1))]
        assert all(len(set(around)) == 2 for around in zip(*moved, strict=True))


def test_several_classes_have_a_border_between_each_two():
    X, y = load_iris(return_X_y=True)
    machine = er.LogisticRegression().fit(X, y)
    figure = er.plots.regions(machine, X, y, columns=(2, 3))
    assert title(figure.axes[0]).endswith("other columns held at their medians")
    middle = np.median(X, axis=0)
    for _, piece in contours(figure.axes[0]):
        rows = np.tile(middle, (len(piece), 1))
        rows[:, 2:] = piece
        scores = np.sort(machine.decision_function(rows), axis=1)
        # The contour is straight between the points of the grid, as the scores are.
        np.testing.assert_allclose(scores[:, 2], scores[:, 1], atol=0.02)
    assert_readable(figure)


def test_other_columns_keep_the_values_given():
    X, y = load_iris(return_X_y=True)
    machine = er.TreeClassifier().fit(X, y)
    codes, extent = picture(er.plots.regions(machine, X, y, columns=(0, 1), held={2: 1.0, 3: 0.1}, resolution=12))
    across, up = centres(extent, 12)
    rows = np.column_stack([np.tile(across, 12), np.repeat(up, 12), np.full(144, 1.0), np.full(144, 0.1)])
    np.testing.assert_array_equal(codes.ravel(), machine.predict(rows))


@pytest.mark.parametrize("library", [pl, pd])
def test_data_frames_keep_their_names_and_categories(library):
    rng = np.random.default_rng(0)
    frame = library.DataFrame(
        {
            "age": rng.integers(20, 60, 40),
            "city": rng.choice(["oslo", "bern", "bern"], 40),
            "income": rng.normal(size=40),
        }
    )
    y = np.where((rng.random(40) < 0.2) ^ (frame["income"].to_numpy() > 0), "a", "b")
    machine = er.TreeClassifier(max_depth=4).fit(frame, y)
    figure = er.plots.regions(machine, frame, y, columns=["age", "income"], held={"city": "oslo"}, resolution=15)
    codes, extent = picture(figure)
    across, up = centres(extent, 15)
    rows = library.DataFrame({"age": np.tile(across, 15), "city": ["oslo"] * 225, "income": np.repeat(up, 15)})
    np.testing.assert_array_equal(machine.classes_[codes.astype(int).ravel()], machine.predict(rows))
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("age", "income")
    er.plots.regions(machine, frame, y, columns=["age", "income"], resolution=5)
    with pytest.raises(EmpiriskError, match="does not occur in the column"):
        er.plots.regions(machine, frame, y, columns=["age", "income"], held={"city": "rome"})
    with pytest.raises(EmpiriskError, match="'city' is not numeric"):
        er.plots.regions(machine, frame, y, columns=["age", "city"])
    pipeline = make_pipeline(OrdinalEncoder(), KNeighborsClassifier()).fit(frame[["city"]], y)
    with pytest.raises(EmpiriskError, match="'city' is not numeric"):
        er.plots.regions(pipeline, frame[["city", "age"]], y)


def test_ten_classes_with_long_names_can_be_told_apart():
    X, y = make_blobs(100, centers=10, random_state=3)
    names = np.array([f"a class whose name is far too long, and ends in {k}" for k in range(10)])
    figure = er.plots.regions(KNeighborsClassifier(3).fit(X, names[y]), X, names[y], resolution=40)
    entries = legend(figure.axes[0])
    assert len(set(entries)) == 10
    assert max(map(len, entries)) <= 24
    looks = {
        (tuple(part.get_facecolor()[0]), part.get_paths()[0].vertices.tobytes())
        for part in figure.axes[0].collections[-10:]
    }
    assert len(looks) == 10
    assert_readable(figure)


def test_names_are_text_and_not_formulas():
    X, y = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]), ["_hidden", "$5 or $6", "two\nlines"]
    figure = er.plots.regions(KNeighborsClassifier(1).fit(X, y), X, y, resolution=10)
    assert [text.replace("\\", "").strip() for text in legend(figure.axes[0])] == ["$5 or $6", "_hidden", "two lines"]
    assert_readable(figure)


def test_one_point_is_enough():
    X, y = np.array([[1.0, 2.0]]), [3]
    figure = er.plots.regions(DummyClassifier().fit(X, y), X, y, resolution=10)
    left, right = figure.axes[0].get_xlim()
    assert left < 1 < right
    assert contours(figure.axes[0]) == []
    assert_readable(figure)


def test_wrong_arguments_are_named(moons):
    X, y = moons
    machine = er.SVM().fit(X, y)
    for wrong, match in [
        ({"columns": (0, 1, 2)}, r"columns=\(0, 1, 2\) must name exactly two columns"),
        ({"columns": (0, 0)}, "two different columns"),
        ({"columns": (0, 7)}, "names the column 7, which X has not; its 2 are x0, x1"),
        ({"columns": (0, "width")}, "the column 'width', which X has not"),
        ({"resolution": 1}, "resolution=1 must be"),
        ({"axes": 3}, "axes=3 must be one Matplotlib Axes"),
    ]:
        with pytest.raises(EmpiriskError, match=match):
            er.plots.regions(machine, X, y, **wrong)
    with pytest.raises(EmpiriskError, match="The SVM is not fitted; call its fit"):
        er.plots.regions(er.SVM(), X, y)
    with pytest.raises(EmpiriskError, match="predicts no classes"):
        er.plots.regions(LinearRegression().fit(X, X[:, 0]), X, y)
    with pytest.raises(EmpiriskError, match="is not a classifier"):
        er.plots.regions("svm", X, y)
    with pytest.raises(EmpiriskError, match="y holds 'sideways', which is not a class"):
        er.plots.regions(machine, X, np.where(y == "up", "sideways", y))
    with pytest.raises(EmpiriskError, match="y holds 5 labels for the 60 rows of X"):
        er.plots.regions(machine, X, y[:5])
    with pytest.raises(EmpiriskError, match="margins=True needs"):
        er.plots.regions(GaussianNB().fit(X, y), X, y, margins=True)
