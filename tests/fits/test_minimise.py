"""Descent on a function of one's own: every method against known minima, limits, and what is refused."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.solvers.functions.methods import METHODS
from empirisk.solvers.functions.objective import UserObjective
from empirisk.stop import Ending

pytestmark = pytest.mark.row("E10")
ROUGH = ("subgradient", "rmsprop")  # steps that only shrink, as fast as they do
EXACT = [name for name in METHODS if name not in ROUGH]


def rosenbrock(x):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def bowl(x):
    """Its minimum is 7 at (3, -1)."""
    return (x[0] - 3) ** 2 + 10 * (x[1] + 1) ** 2 + 7


def slope_of_bowl(x):
    return np.array([2 * (x[0] - 3), 20 * (x[1] + 1)])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_method_finds_the_minimum_of_a_quadratic(method):
    found = er.minimise(bowl, [0.0, 0.0], method)
    assert found.x == pytest.approx([3.0, -1.0], abs=5e-3 if method in ROUGH else 1e-4)
    assert found.value == pytest.approx(7.0, abs=1e-4 if method in ROUGH else 1e-8)
    assert found.converged or method in ROUGH
    assert found.stopped == (Ending.FINISHED if method == "subgradient" else found.stopped)


@pytest.mark.parametrize("method", EXACT)
def test_units_of_x_and_of_f_change_nothing(method):
    small = er.minimise(bowl, [1.0, 2.0], method)
    large = er.minimise(lambda x: 1e9 * bowl(x / 1e5), [1e5, 2e5], method)
    assert large.converged
    assert large.x / 1e5 == pytest.approx(small.x, abs=2e-4)


@pytest.mark.parametrize("method", ["auto", "newton", "bfgs", "l_bfgs", "conjugate_gradient", "accelerated", "powell"])
def test_a_curved_valley(method):
    found = er.minimise(rosenbrock, [-1.2, 1.0], method)
    assert found.converged
    assert found.x == pytest.approx([1.0, 1.0], abs=1e-3)


@pytest.mark.parametrize("step", ["auto", "backtracking", "exact", "fixed", "bold_driver"])
def test_steps_of_gradient_descent(step):
    found = er.minimise(bowl, [0.0, 0.0], "gradient_descent", step=step, gradient=slope_of_bowl)
    assert found.converged
    assert found.x == pytest.approx([3.0, -1.0], abs=1e-5)
    assert np.all(np.diff(found.history["objective"]) <= 1e-12)


def test_fixed_and_decreasing_steps_by_their_definition():
    for step, power in (("fixed", 0.0), ("decreasing", 1.0), ("decreasing_root", 0.5)):
        with pytest.warns(ConvergenceWarning, match=r"\(max_iter\) after 4"):
            found = er.minimise(
                bowl, [0.0, 0.0], "gradient_descent", step=step, rate=0.02, max_iter=4, gradient=slope_of_bowl
            )
        x = np.zeros(2)
        for k in range(4):
            x = x - 0.02 * (k + 1) ** -power * slope_of_bowl(x)
            assert found.history["x"][k + 1] == pytest.approx(x, rel=1e-12)


def test_heavy_ball_by_its_definition():
    with pytest.warns(ConvergenceWarning):
        found = er.minimise(bowl, [0.0, 0.0], "momentum", rate=0.01, max_iter=3, gradient=slope_of_bowl)
    before = x = np.zeros(2)
    for k in range(3):
        before, x = x, x - 0.01 * slope_of_bowl(x) + 0.9 * (x - before)
        assert found.history["x"][k + 1] == pytest.approx(x, rel=1e-12)


def test_one_newton_step_solves_a_quadratic():
    found = er.minimise(bowl, [0.0, 0.0], "newton", gradient=slope_of_bowl, hessian=lambda x: np.diag([2.0, 20.0]))
    assert found.iterations == 1
    assert found.x == pytest.approx([3.0, -1.0], rel=1e-12)


def test_newton_leaves_a_saddle():
    found = er.minimise(lambda x: x[0] ** 2 - x[1] ** 2 + x[1] ** 4, [1.0, 0.1], "newton")
    assert abs(found.x[1]) == pytest.approx(0.5**0.5, abs=1e-5)


def test_corners_by_subgradients():
    found = er.minimise(lambda x: np.abs(x - [1.0, 2.0]).sum(), [5.0, -3.0], "subgradient")
    assert found.stopped == Ending.FINISHED
    assert found.x == pytest.approx([1.0, 2.0], abs=0.02)
    assert found.value == found.history["objective"].min()


def test_functions_that_are_not_defined_everywhere():
    found = er.minimise(lambda x: np.sum(x - np.log(x)), [0.01, 50.0])
    assert found.converged
    assert found.x == pytest.approx([1.0, 1.0], abs=1e-4)


def test_a_function_of_one_number_and_of_a_matrix():
    one = er.minimise(lambda x: (x - 2) ** 2, 0)
    assert isinstance(one.x, float)
    assert one.x == pytest.approx(2.0, abs=1e-6)
    assert one.history["x"].shape == (one.iterations + 1,)
    matrix = er.minimise(lambda A: np.sum((A - np.eye(3)) ** 2), np.zeros((3, 3)), "newton")
    assert matrix.x == pytest.approx(np.eye(3), abs=1e-6)
    assert matrix.gradient.shape == (3, 3)


def test_gradients_agree_however_they_are_found():
    jnp = pytest.importorskip("jax.numpy")
    x = np.array([0.3, -0.7])

    def function(x):
        return (jnp.sin(x[0]) * jnp.exp(x[1]) + x[0] * x[1] ** 2) / 3

    true = np.array([np.cos(x[0]) * np.exp(x[1]) + x[1] ** 2, np.sin(x[0]) * np.exp(x[1]) + 2 * x[0] * x[1]]) / 3
    by_jax, by_differences = UserObjective(function, x), UserObjective(function, x, "differences")
    assert by_jax.gradient(x) == pytest.approx(true, rel=1e-14)
    assert by_differences.gradient(x) == pytest.approx(true, rel=1e-8)
    mixed = UserObjective(function, x, lambda x: by_jax.gradient(x))
    assert mixed.hessian(x) == pytest.approx(by_jax.hessian(x), rel=1e-8)
    assert by_differences.hessian(x) == pytest.approx(by_jax.hessian(x), abs=1e-5)


def test_jax_functions_that_cannot_be_compiled():
    jnp = pytest.importorskip("jax.numpy")
    found = er.minimise(lambda x: jnp.sum((x - 2) ** 2) if x[0] < 5 else jnp.sum(x), [0.0, 0.0], "newton")
    assert found.x == pytest.approx([2.0, 2.0], abs=1e-12)


def test_a_pair_of_value_and_gradient_is_one_call():
    calls = []

    def pair(x):
        calls.append(1)
        return bowl(x), slope_of_bowl(x)

    found = er.minimise(pair, [0.0, 0.0], gradient=True)
    assert found.converged
    assert found.calls == len(calls) < 30


def test_history_and_the_best_point():
    found = er.minimise(rosenbrock, [-1.2, 1.0], "adam", rate=0.1)
    values = np.array([rosenbrock(x) for x in found.history["x"]])
    np.testing.assert_array_equal(values, found.history["objective"])
    np.testing.assert_array_equal(found.history["x"][0], [-1.2, 1.0])
    assert found.value == values.min()
    assert np.all(np.diff(found.history["seconds"]) >= 0)
    assert repr(found).startswith("Minimum(")
    assert "converged" in found._repr_html_()


def test_long_paths_keep_some_of_their_points():
    rates = {"step": "fixed", "rate": 1e-4, "max_iter": 100}
    with er.config(memory="1MB"), pytest.warns(ConvergenceWarning):
        found = er.minimise(lambda x: (x @ x, 2 * x), np.ones(100), "gradient_descent", gradient=True, **rates)
    assert len(found.history["x"]) < 25
    assert found.history["x"][:, 0] == pytest.approx(np.sqrt(found.history["objective"] / 100))


def test_limits_end_a_descent_and_say_so():
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        assert er.minimise(rosenbrock, [-1.2, 1.0], max_iter=3).stopped == Ending.MAX_ITER

    def slow(x):
        time.sleep(0.02)
        return rosenbrock(x)

    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        found = er.minimise(slow, [-1.2, 1.0], max_time=0.3)
    assert found.stopped == Ending.MAX_TIME
    assert time.perf_counter() - begin < 1.0
    assert found.value <= rosenbrock([-1.2, 1.0])


def test_a_callback_stops_it():
    seen = []

    def callback(x, value):
        seen.append((x.copy(), value))
        return len(seen) == 3

    found = er.minimise(rosenbrock, [-1.2, 1.0], callback=callback)
    assert (found.stopped, found.iterations, len(seen)) == (Ending.CALLBACK, 3, 3)
    assert all(rosenbrock(x) == value for x, value in seen)


@pytest.mark.parametrize("method", ["gradient_descent", "bfgs", "nelder_mead"])
def test_ctrl_c_keeps_the_best_point(method):
    def slow(x):
        time.sleep(0.01)
        return rosenbrock(x)

    threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.perf_counter()
    with er.config(interrupt="keep"), pytest.warns(ConvergenceWarning, match="interrupted"):
        found = er.minimise(slow, [-1.2, 1.0], method, tol=0.0)
    assert found.stopped == Ending.INTERRUPTED
    assert time.perf_counter() - begin < 1.4
    assert found.value <= rosenbrock([-1.2, 1.0])


@pytest.mark.parametrize("method", ["gradient_descent", "newton", "l_bfgs", "nelder_mead"])
def test_what_has_no_lower_bound_ends(method):
    with pytest.warns(ConvergenceWarning):
        assert er.minimise(lambda x: -np.sum(x**2), [1.0, 2.0], method).stopped == Ending.STALLED


BAD = [
    ({"start": [np.nan, 0.0]}, r"start=\[nan, 0\] holds NaN or infinity"),
    ({"start": []}, "start is empty"),
    ({"start": "here"}, "start is no array of numbers"),
    ({"start": [1j]}, "complex"),
    ({"f": 3}, "f=3 cannot be called"),
    ({"f": lambda x: x}, r"f returned an array of shape \(2,\), where one number is needed"),
    ({"f": lambda x: None}, "f returned None"),
    ({"f": lambda x: np.nan}, r"f is inf at start=\[0, 0\]|f is nan at start"),
    ({"gradient": lambda x: np.zeros(3)}, r"gradient has shape \(3,\), where start asks for \(2,\)"),
    ({"gradient": lambda x: "up"}, "gradient returned what is no array of numbers"),
    ({"gradient": 7}, "gradient=7 must be a function"),
    ({"gradient": "magic"}, "gradient='magic' must be"),
    ({"gradient": True}, "gradient=True asks for the pair"),
    ({"hessian": lambda x: np.eye(3), "method": "newton"}, r"hessian has shape \(3, 3\)"),
    ({"hessian": lambda x: np.eye(2)}, "use method='newton'"),
    ({"method": "magic"}, "method='magic' is not known"),
    ({"method": "bfgs", "step": "exact"}, "step='exact' is no step of method='bfgs'"),
    ({"method": "adam", "step": "exact"}, "choose one of"),
    ({"method": "newton", "rate": 0.1}, "rate=0.1 has no meaning"),
    ({"method": "adam", "rate": -1.0}, "rate=-1.0 must be a positive number"),
    ({"method": "gradient_descent", "grow": 0.5}, "grow=0.5"),
    ({"method": "gradient_descent", "shrink": 2}, "shrink=2"),
    ({"tol": -1.0}, "tol=-1.0"),
    ({"max_iter": 0}, "max_iter=0"),
    ({"max_time": 0}, "max_time=0"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "sentence"), BAD, ids=[sentence for _, sentence in BAD])
def test_bad_input_is_refused_with_a_sentence(changed, sentence):
    with pytest.raises(EmpiriskError, match=sentence):
        er.minimise(**{"f": bowl, "start": [0.0, 0.0]} | changed)
