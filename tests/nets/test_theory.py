"""Theory that runs: the tangent kernel, lottery tickets, width, double descent, boolean functions."""

import itertools

import numpy as np
import pytest

import empirisk as er
from empirisk.nets.plan import through

random = np.random.default_rng(0)


@pytest.mark.row("W8")
def test_the_tangent_kernel_is_that_of_finite_differences():
    X, Z = random.normal(size=(4, 3)), random.normal(size=(2, 3))
    network = er.Network([5], "tanh", random_state=0)
    kernel = er.kernels.Tangent(network)
    fitted = network.fit(X)
    head = np.random.default_rng([fitted.seed_, 1]).normal(size=(5, 1)) / np.sqrt(5)
    W, b = (fitted.weights_[name].astype(float) for name in ("0.weight", "0.bias"))

    def f(rows, W, b, head, last):
        return (np.tanh(rows @ W + b) @ head + last)[:, 0]

    def gradients(rows):
        parts, step = [W, b, head, np.zeros(1)], 1e-6
        columns = []
        for number, part in enumerate(parts):
            for place in np.ndindex(part.shape):
                ahead, back = ([p.copy() for p in parts] for _ in range(2))
                ahead[number][place] += step
                back[number][place] -= step
                columns.append((f(rows, *ahead) - f(rows, *back)) / (2 * step))
        return np.column_stack(columns)

    np.testing.assert_allclose(kernel(X, Z), gradients(X) @ gradients(Z).T, rtol=1e-6)
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(kernel(X)), rtol=1e-12)
    influence = kernel.influence(X)
    assert influence["0.weight"].shape == (3, 5)
    assert sum(part.sum() for part in influence.values()) == pytest.approx(np.trace(kernel(X)) / 4)


@pytest.mark.row("W8")
def test_the_tangent_kernel_of_blocks_and_norms():
    X = random.normal(size=(6, 4))
    layers = [er.nets.Dense(5, "gelu"), er.nets.LayerNorm(), er.nets.Residual([3, 5], "softplus")]
    kernel = er.kernels.Tangent(er.Network(layers, random_state=0))
    gradients = kernel.gradients(X)
    plan, weights, state = kernel._first(X)
    assert gradients.shape == (6, sum(value.size for value in weights.values()))
    moved = weights | {"2.0.weight": weights["2.0.weight"] + 1e-3}
    f = [through(plan, w, state, X) @ weights["head.weight"] for w in (weights, moved)]
    part = kernel._gradients(X)["2.0.weight"].reshape(6, -1).sum(axis=1)
    np.testing.assert_allclose((f[1] - f[0])[:, 0] / 1e-3, part, rtol=0.02, atol=1e-3)


@pytest.mark.row("W8")
def test_the_tangent_kernel_stands_in_the_slot():
    X = random.normal(size=(60, 2))
    y = X[:, 0] * X[:, 1] > 0
    machine = er.SVM(C=10.0, features=er.kernels.Tangent(er.Network([100], random_state=0))).fit(X, y)
    assert machine.score(X, y) > 0.9
    assert machine.certificate_.converged


@pytest.mark.row("W8")
def test_blind_spots_are_what_a_linear_network_cannot_follow():
    X = random.normal(size=(10, 2))
    blind = er.kernels.Tangent(er.Network([30], "linear", random_state=0)).blind_spots(X)
    assert blind.shape == (10, 7)  # all but functions of the two columns and a constant
    np.testing.assert_allclose(blind.T @ np.column_stack([X, np.ones(10)]), 0, atol=1e-6)


@pytest.mark.row("W9")
def test_tickets_keep_their_zeros_and_start_from_the_first_weights():
    X = random.normal(size=(80, 3))
    y = X[:, 0] * X[:, 1] > 0
    machine = er.LogisticRegression(C=10.0, features=er.Network([12], "tanh", epochs=400, random_state=0))
    found = er.nets.lottery_tickets(machine, X, y, X, y, rounds=2, share=0.25)
    np.testing.assert_allclose(found.kept, [1, 0.75, 0.75**2], atol=0.02)
    assert (np.diff(found.kept) < 0).all()
    assert found.scores[0] > 0.9
    assert found.scores[2] > 0.8
    last = found.masks[2]
    first = machine.features.fit(X).weights_
    start = er.Network([12], "tanh", weights=first, masks=last, random_state=0).fit(X).weights_["0.weight"]
    np.testing.assert_array_equal(start, first["0.weight"] * last["0.weight"])
    kept = er.LogisticRegression(C=10.0, features=machine.features).set_params(
        features__masks=last, features__epochs=20, features__n_init=1
    )
    assert not kept.fit(X, y).features_.weights_["0.weight"][last["0.weight"] == 0].any()


@pytest.mark.row("W10")
def test_the_test_error_descends_twice():
    X, Z = random.normal(size=(40, 6)), random.normal(size=(300, 6))
    y = X[:, 0] + 0.5 * random.normal(size=40)
    curve = er.nets.double_descent(X, y, Z, Z[:, 0], [8, 40, 400], repeats=3)
    assert curve.test[1] > 3 * curve.test[0]
    assert curve.test[1] > 3 * curve.test[2]
    assert curve.training[2] < 1e-6 < curve.training[0]


def xor(draw, rows=200):
    """Rows around the corners of a square; the class is that of the corner, and the noise carries rows across."""
    corners = np.sign(draw.normal(size=(rows, 2)))
    return corners + 0.7 * draw.normal(size=(rows, 2)), 1.0 * (corners.prod(axis=1) > 0)


@pytest.mark.row("W10")
def test_the_second_descent_on_noisy_xor_ends_below_the_first():
    draw = np.random.default_rng(0)
    (X, y), (Z, target) = xor(draw), xor(draw, 1000)
    few, peak, many = [4, 8, 16, 32, 64], [200, 220], [2000, 5000]
    curve = er.nets.double_descent(X, y, Z, target, [*few, *peak, *many], repeats=3)
    first, top, second = curve.test[:5].min(), curve.test[5:7].max(), curve.test[7:].min()
    assert top > 3 * first
    assert second < 0.25 * top
    assert second < 1.05 * first
    assert curve.test[8] <= curve.test[7]
    assert curve.training[-1] < 1e-6


@pytest.mark.row("W10")
def test_smooth_units_descend_again_too():
    draw = np.random.default_rng(0)
    (X, y), (Z, target) = xor(draw), xor(draw)
    curve = er.nets.double_descent(X, y, Z, target, [16, 200, 400, 1600], activation="relu", repeats=2)
    assert curve.test[0] < curve.test[1] > curve.test[2] > curve.test[3]


@pytest.mark.row("W10")
def test_random_units_do_not_depend_on_the_units_of_the_columns():
    draw = np.random.default_rng(0)
    (X, y), (Z, target) = xor(draw, 50), xor(draw, 50)
    plain = er.nets.double_descent(X, y, Z, target, [10, 100], repeats=1)
    moved = er.nets.double_descent(64 * X - 8, y, 64 * Z - 8, target, [10, 100], repeats=1)
    np.testing.assert_allclose(moved.test, plain.test, rtol=0.2)


@pytest.mark.row("W1")
def test_every_boolean_function_is_a_network():
    for inputs in (1, 2, 3):
        X = np.array(list(itertools.product((0, 1), repeat=inputs)))
        tables = itertools.product((False, True), repeat=2**inputs)
        for table in list(tables)[:: 1 if inputs < 3 else 37]:
            found = er.nets.boolean_network(table).fit_transform(X)[:, 0]
            np.testing.assert_array_equal(found > 0, table)
    with pytest.raises(er.errors.EmpiriskError, match="2\\^k truth values"):
        er.nets.boolean_network([True, False, True])


@pytest.mark.row("W1")
def test_truth_values_are_0_and_1_or_minus_and_plus_1():
    X = np.array(list(itertools.product((0, 1), repeat=2)))
    for table in itertools.product((-1, 1), repeat=4):
        np.testing.assert_array_equal(er.nets.boolean_network(table).fit_transform(X)[:, 0], table)
    np.testing.assert_array_equal(er.nets.boolean_network([0.0, 1.0]).fit_transform([[0], [1]])[:, 0], [-1, 1])
    for table in ([0, 2, 1, 1], [-1, 0, 1, 1], ["no", "yes"], [np.nan, 1.0]):
        with pytest.raises(er.errors.EmpiriskError, match="False and True, 0 and 1, or -1 and"):
            er.nets.boolean_network(table)


@pytest.mark.row("W1")
@pytest.mark.parametrize("inputs", [(-1, 1), (0, 1), (1, 0), [2.0, 5.0]])
def test_every_boolean_function_of_inputs_as_they_are_written(inputs):
    for columns in (1, 2, 3):
        X = np.array(list(itertools.product(inputs, repeat=columns)))
        for table in list(itertools.product((-1, 1), repeat=2**columns))[:: 1 if columns < 3 else 37]:
            found = er.nets.boolean_network(table, inputs).fit_transform(X)[:, 0]
            np.testing.assert_array_equal(found, table)


def test_inputs_of_a_boolean_network_are_two_numbers():
    for inputs in ((1, 1), (0, np.nan), (0, 1, 2), "01", None, ("no", "yes")):
        with pytest.raises(er.errors.EmpiriskError, match="two different numbers"):
            er.nets.boolean_network([0, 1], inputs)
