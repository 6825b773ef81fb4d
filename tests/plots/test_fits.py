"""Losses, history, descent, coefficients, Gram matrix: what is drawn is what the parts compute."""

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.plots.look import assert_readable, contours, legend, ticks, title

pytestmark = pytest.mark.row("P1")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) * [3.0, 1.0]
    return X, (X @ [0.5, 1.0] + rng.normal(size=60) > 0).astype(int)


# --- losses ---------------------------------------------------------------------------------------------------------


def test_losses_are_drawn_against_the_margin():
    names = ["perceptron", "hinge", "squared_hinge", "logistic", "exponential"]
    figure = er.plots.losses(names)
    for name, line in zip(names, figure.axes[0].lines, strict=True):
        t, values = line.get_xydata().T
        np.testing.assert_array_equal(values, er.losses.find(name).value(np.ones_like(t), t))
    assert legend(figure.axes[0]) == names
    assert figure.axes[0].get_xlabel().startswith("margin")
    assert figure.axes[0].get_ylim()[1] < 5
    assert len({(line.get_color(), str(line._dash_pattern)) for line in figure.axes[0].lines}) == 5
    assert_readable(figure)
    assert_readable(er.plots.losses())


def test_the_zero_one_loss_has_a_jump_and_no_slope():
    t, values = er.plots.losses("zero_one").axes[0].lines[0].get_xydata().T
    assert set(values[~np.isnan(values)]) == {0.0, 1.0}
    assert np.isnan(values).sum() == 1
    assert np.nanmax(t[values == 1]) <= 0 < np.nanmin(t[values == 0])


def test_losses_for_numbers_are_drawn_against_the_residual():
    axes = er.plots.losses(["absolute", er.losses.EpsilonInsensitive(epsilon=0.5)], reach=2.0).axes[0]
    e, values = axes.lines[1].get_xydata().T
    np.testing.assert_allclose(values, np.maximum(0, np.abs(e) - 0.5))
    assert axes.get_xlim() == (-2, 2)
    assert axes.get_xlabel().startswith("residual")
    squared = er.plots.losses("squared", against="residual").axes[0].lines[0].get_xydata()
    np.testing.assert_allclose(squared[:, 1], squared[:, 0] ** 2)
    margin = er.plots.losses("squared").axes[0].lines[0].get_xydata()
    np.testing.assert_allclose(margin[:, 1], (1 - margin[:, 0]) ** 2)


# --- history --------------------------------------------------------------------------------------------------------


def test_history_is_the_objective_and_its_distance_from_the_bound(data):
    machine = er.LogisticRegression(solver="gradient_descent").fit(*data)
    figure = er.plots.history(machine)
    upper, lower = figure.axes
    np.testing.assert_array_equal(upper.lines[0].get_ydata(), machine.history_["objective"])
    np.testing.assert_array_equal(upper.lines[0].get_xdata(), np.arange(1, 1 + machine.n_iter_))
    above = machine.history_["objective"] - machine.certificate_.dual
    np.testing.assert_allclose(lower.lines[0].get_ydata(), np.maximum(above, machine.certificate_.gap))
    assert lower.get_yscale() == "log"
    assert all(label.get_text().isdigit() for label in ticks(lower.xaxis))
    assert_readable(figure)
    seconds = er.plots.history(machine, against="seconds").axes[0].lines[0].get_xdata()
    np.testing.assert_array_equal(seconds, machine.history_["seconds"])


def test_history_of_several_problems_has_a_curve_for_each(data):
    X, y = data
    three = np.where(X[:, 0] > 3, "far", np.where(y == 1, "yes", "no"))
    machine = er.SVM().fit(X, three)
    figure = er.plots.history(machine)
    (axes,) = figure.axes
    assert legend(axes) == ["far or not", "no or not", "yes or not"]
    for problem, line in enumerate(axes.lines):
        np.testing.assert_array_equal(
            line.get_ydata(), machine.history_["objective"][machine.history_["problem"] == problem]
        )
    assert_readable(figure)


def test_history_of_others_and_of_plain_arrays(data):
    X, y = data
    net = MLPRegressor(hidden_layer_sizes=(2,), max_iter=5, tol=10, n_iter_no_change=10, solver="adam")
    with pytest.warns(match="Maximum iterations"):
        net.fit(X, y)
    np.testing.assert_array_equal(er.plots.history(net).axes[0].lines[0].get_ydata(), net.loss_curve_)
    given = {"loss": [3.0, 2.0, 1.0], "validation_loss": [3.0, 2.5, 2.4]}
    assert legend(er.plots.history(given).axes[0]) == ["loss", "validation loss"]
    figure = er.plots.history({"objective": [1000.0, 2.0], "gap": [999.0, 0.1]})
    assert figure.axes[0].get_yscale() == "log"
    assert figure.axes[1].lines[0].get_ydata().tolist() == [999.0, 0.1]
    assert er.plots.history({"objective": [1000.0, 2.0]}, log=False).axes[0].get_yscale() == "linear"
    assert_readable(er.plots.history({"objective": [1.0]}))


# --- descent --------------------------------------------------------------------------------------------------------


def test_descent_goes_from_the_start_to_the_solution(data):
    X, y = data
    slow = er.LogisticRegression(solver="gradient_descent", C=0.1)
    fitted = er.LogisticRegression(C=0.1).fit(X, y)
    figure = er.plots.descent({"slow": slow, "Newton": fitted.set_params(solver="newton")}, X, y)
    gradient, newton, start, end = figure.axes[0].lines
    for way in (gradient, newton):
        np.testing.assert_allclose(way.get_xydata()[-1], fitted.coef_[0], atol=1e-6)
        assert way.get_xydata()[0].tolist() == [0, 0]
    assert start.get_xydata().tolist() == [[0, 0]]
    np.testing.assert_allclose(end.get_xydata()[0], fitted.coef_[0], atol=1e-6)
    iterations = [clone_fit(machine, X, y).n_iter_ for machine in (slow, fitted)]
    assert legend(figure.axes[0])[:2] == [f"slow: {iterations[0]} iterations", f"Newton: {iterations[1]} iterations"]
    assert_readable(figure)


def clone_fit(machine, X, y):
    return type(machine)(**machine.get_params()).fit(X, y)


def test_contours_are_levels_of_the_objective():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 2))
    y = X @ [1.0, -2.0] + 0.1 * rng.normal(size=30)
    machine = er.Ridge(C=0.3, fit_intercept=False, solver="gradient_descent").fit(X, y)
    axes = er.plots.descent(machine, X, y).axes[0]
    lines = contours(axes)
    assert len({level for level, _ in lines}) >= 5
    lowest = machine.certificate_.primal
    for level, piece in lines:
        penalty = er.penalties.L2().value
        values = [penalty(w) + 0.3 * np.sum((y - X @ w) ** 2) for w in piece[::10]]
        # Contours are straight between the points of the grid, where the objective is curved.
        np.testing.assert_allclose(
            np.array(values) - lowest, level - lowest, rtol=0.1, atol=0.02 * (lines[-1][0] - lowest)
        )


def test_descent_of_two_weights_of_many_and_of_a_chosen_C():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 4))
    y = X @ [1.0, -2.0, 0.5, 3.0] + rng.normal(size=40)
    machine = er.Ridge(C="loo").fit(X, y)
    axes = er.plots.descent([machine, er.Ridge(C=machine.C_, solver="gradient_descent")], X, y, weights=(1, 3)).axes[0]
    for line in axes.lines[:2]:
        np.testing.assert_allclose(line.get_xydata()[-1], machine.coef_[[1, 3]], atol=1e-5)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("weight 1", "weight 3")
    assert [entry.split(":")[0] for entry in legend(axes)[:2]] == ["Ridge", "gradient descent"]


# --- coefficients ---------------------------------------------------------------------------------------------------


def test_coefficients_are_those_of_the_path():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 12))
    path = er.selection.path(er.Lasso(), X, X @ np.arange(12.0), Cs=15)
    names = [f"a column with a very long name, number {k}" for k in range(12)]
    figure = er.plots.coefficients(path, names=names, most=3, chosen=path.Cs[7])
    axes = figure.axes[0]
    drawn = {line.get_ydata().tobytes() for line in axes.lines if len(line.get_xdata()) == 15}
    assert drawn == {np.ascontiguousarray(path.coefs[:, k]).tobytes() for k in range(12)}
    entries = legend(axes)
    assert [entry[-2:].strip() for entry in entries[:3]] == ["11", "10", "9"]
    assert entries[3:] == ["9 others", f"chosen C = {path.Cs[7]:.3g}"]
    assert axes.get_xscale() == "log"
    assert axes.get_xlim() == (path.Cs[0], path.Cs[-1])
    assert_readable(figure)


def test_coefficients_from_arrays_and_of_one_class():
    coefs = np.arange(12.0).reshape(2, 2, 3)
    axes = er.plots.coefficients([1.0, 0.1], coefs, output=1).axes[0]
    assert axes.lines[0].get_ydata().tolist() == [11, 5]  # in the order of C
    assert_readable(er.plots.coefficients([1.0], [[1.0, 2.0]]))


# --- Gram matrix ----------------------------------------------------------------------------------------------------


def test_gram_matrix_is_ordered_by_class():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.array(["b", "a"] * 10)
    figure = er.plots.gram(lambda rows: rows @ rows.T, X, y)
    axes, bar = figure.axes
    order = np.argsort(y, kind="stable")
    np.testing.assert_allclose(axes.images[0].get_array(), (X @ X.T)[np.ix_(order, order)])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    assert axes.get_yticks().tolist() == [4.5, 14.5]
    assert [line.get_ydata()[0] for line in axes.lines] == [9.5, 0]
    # A linear kernel has both signs: the scale is symmetrical, and its middle is zero.
    low, high = axes.images[0].get_clim()
    assert low == -high == -np.abs(X @ X.T).max()
    assert bar.get_ylabel() == "k(x, x')"
    assert_readable(figure)


def test_gram_matrix_of_a_kernel_object_and_many_classes():
    X = np.random.default_rng(0).normal(size=(60, 2))
    kernel = er.kernels.Gaussian(width=2.0)
    image = er.plots.gram(kernel, X).axes[0].images[0]
    np.testing.assert_allclose(image.get_array(), kernel(X))
    many = np.array([f"class with a long name {k}" for k in range(30)])[np.arange(60) % 30]
    figure = er.plots.gram(kernel, X, many)
    assert len(ticks(figure.axes[0].yaxis)) == 0  # no room for thirty names
    assert_readable(figure)
    assert_readable(er.plots.gram(kernel, X, many[np.arange(60) % 12]))
    assert_readable(er.plots.gram(np.eye(1)))


# --- errors ---------------------------------------------------------------------------------------------------------


def test_wrong_arguments_are_named(data):
    X, y = data
    three = y + (X[:, 0] > 3)
    for call, match in [
        (lambda: er.plots.losses(["hinge", "hing"]), "loss='hing' is not known; did you mean 'hinge'"),
        (lambda: er.plots.losses("softmax"), "is a function of several scores"),
        (lambda: er.plots.losses(["hinge", "absolute"]), "mixes losses for classes, for numbers and for means"),
        (lambda: er.plots.losses("hinge", against="residual"), "'hinge' is not a function of the residual"),
        (lambda: er.plots.losses("hinge", against="x"), "against='x' is not known"),
        (lambda: er.plots.losses([]), "which holds no loss"),
        (lambda: er.plots.losses(reach=0), "reach=0 must be"),
        (lambda: er.plots.history(er.SVM()), "The SVM keeps no history; fit it first"),
        (lambda: er.plots.history({"gap": [1.0]}), "it needs one of"),
        (lambda: er.plots.history({"objective": [1.0], "loss": [1.0, 2.0]}), "as long as each other"),
        (lambda: er.plots.history({"objective": [1.0]}, against="seconds"), "holds no seconds"),
        (lambda: er.plots.history({"objective": [1.0]}, against="time"), "against='time' is not known"),
        (lambda: er.plots.descent(er.SVM(), X, three), "fits several functions at once"),
        (lambda: er.plots.descent(er.SVM(), X, y, weights=(0, 2)), "two different numbers from 0 to 1"),
        (lambda: er.plots.descent(er.SVM(), X, y, weights=(0, 1, 1)), "exactly two weights"),
        (lambda: er.plots.descent(er.TreeClassifier(), X, y), "cannot be replayed"),
        (lambda: er.plots.descent([], X, y), "machines is empty"),
        (lambda: er.plots.coefficients(er.Lasso()), "must be what er.selection.path returns"),
        (lambda: er.plots.coefficients([1.0, 2.0], [[1.0]]), "a row for each of the 2 values"),
        (lambda: er.plots.coefficients([0.0], [[1.0]]), "not positive"),
        (lambda: er.plots.coefficients([1.0], [[1.0]], names=["a", "b"]), "2 names for 1 weights"),
        (lambda: er.plots.coefficients([1.0], [[[1.0]]], output=1), "output=1 is outside the 1 machines"),
        (lambda: er.plots.gram(np.ones((2, 3))), "a Gram matrix is square"),
        (lambda: er.plots.gram(np.eye(3), y=[0, 1]), "has 3 rows, so give 3"),
        (lambda: er.plots.gram(np.dot), "X is missing"),
        (lambda: er.plots.gram(np.full((2, 2), np.nan)), "not finite"),
    ]:
        with pytest.raises(EmpiriskError, match=match):
            call()
    assert title(er.plots.losses("hinge").axes[0]) == "Losses of the margin"


# --- paths of minimise ------------------------------------------------------------------------------------------------


def squares(x):
    return x[0] ** 2 + 4 * x[1] ** 2 + x[0] * x[1]


@pytest.mark.row("E10")
def test_paths_of_minimise_are_drawn_over_the_contours_of_the_function():
    found = {method: er.minimise(squares, [2.0, 1.0], method) for method in ("gradient_descent", "newton")}
    figure = er.plots.descent(found)
    (axes,) = figure.axes
    for one, line in zip(found.values(), axes.lines, strict=False):
        np.testing.assert_array_equal(line.get_xydata(), one.history["x"])
    for level, piece in contours(axes):
        np.testing.assert_allclose(squares(piece.T), level, rtol=0.05, atol=0.05)
    assert legend(axes)[-2:] == ["start", "end"]
    assert_readable(figure)
    history = er.plots.history(found["newton"]).axes[0].lines[0].get_ydata()
    np.testing.assert_array_equal(history, found["newton"].history["objective"])


@pytest.mark.row("E10")
def test_paths_over_one_number_and_over_two_of_many():
    one = er.minimise(lambda x: (x - 2) ** 2, -1.0, "gradient_descent")
    (axes,) = er.plots.descent(one).axes
    places, values = axes.lines[0].get_xydata().T
    np.testing.assert_allclose(values, (places - 2) ** 2)
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), one.history["objective"])
    assert axes.get_xlabel() == "x"
    many = er.minimise(lambda x: x @ x, np.ones((2, 2)).ravel(), "gradient_descent")
    (axes,) = er.plots.descent(many, weights=(1, 3)).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x[1]", "x[3]")
    wanted = r"weights=\(1, 1\) must name exactly two weights: two different numbers from 0 to 3"
    with pytest.raises(EmpiriskError, match=wanted):
        er.plots.descent(many, weights=(1, 1))
    with pytest.raises(EmpiriskError, match="different shapes"):
        er.plots.descent([one, many])
    with pytest.raises(EmpiriskError, match="X or y is missing"):
        er.plots.descent(er.LogisticRegression())
