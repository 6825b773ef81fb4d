"""Kernels from kernels: what they compute, that they stay kernels, how they read, and what is refused."""

import functools
import operator
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

from empirisk import kernels
from empirisk.errors import EmpiriskError, NotAKernel, Unsuitable
from empirisk.kernels import (
    Anova,
    Centred,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Spectrum,
    Subsequence,
    exp,
    pairwise_product,
    pairwise_sum,
    polynomial,
)
from empirisk.kernels.algebra import Scaled, Sum
from empirisk.kernels.items import size
from tests.kernel_catalog import BINARY, POINTS, UNARY, VECTOR_KERNELS, first_column, points
from tests.kernels import naive_kernels as naive

pytestmark = pytest.mark.row("K2")

PAIRS = [(k1, k2) for i, k1 in enumerate(VECTOR_KERNELS) for k2 in VECTOR_KERNELS[i:]]
NAMESPACE = {**vars(kernels), "first_column": first_column}
EXPRESSION = (
    Gaussian(2.0).on([0, 1]) * Linear().on([2])
    + 0.1 * Polynomial(3)
    + exp(Linear().normalised()) ** 2 * (Laplacian("median", 2) + 2.0 * (Linear() * Gaussian(1.0)))
    + polynomial(Anova(Linear(), order=1), [0.0, 1.0]).times(first_column)
)


def assert_kernel(kernel, X):
    """Positive semidefinite up to rounding, symmetric to the last bit, and consistent with its diagonal."""
    kernel = clone(kernel).fit(X)
    K = kernel(X)
    assert np.array_equal(K, K.T), kernel
    scale = max(1.0, np.abs(K).max())
    assert np.linalg.eigvalsh(K)[0] >= -1e-14 * len(K) * scale, kernel
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(K), rtol=1e-12, atol=1e-13 * scale)


@pytest.mark.parametrize("kind", POINTS)
@pytest.mark.parametrize("outer", [*UNARY, *BINARY])
def test_every_combination_of_depth_two_is_a_kernel(outer, kind):
    X = points(kind)
    if outer in BINARY:
        for k1, k2 in PAIRS:
            assert_kernel(BINARY[outer](k1, k2), X)
        return
    for kernel in VECTOR_KERNELS:
        assert_kernel(UNARY[outer](kernel), X)
        for inner in UNARY.values():
            if not (outer == "on" and inner is UNARY["on"]):  # two columns have no third
                assert_kernel(UNARY[outer](inner(kernel)), X)
    for inner in BINARY.values():
        assert_kernel(UNARY[outer](inner(Linear(), Gaussian(0.8))), X)


@pytest.mark.parametrize("name", [name for name in UNARY if name != "centred"])
def test_unary_combinations_are_the_double_loop(name):
    X, Z = points("random", 7), points("random", 4, seed=1)
    for kernel in VECTOR_KERNELS:
        made = UNARY[name](kernel).fit(X)
        np.testing.assert_allclose(made(X, Z), naive.block(made, X, Z), rtol=1e-11)
        np.testing.assert_allclose(made(X), naive.block(made, X, X), rtol=1e-11)


@pytest.mark.parametrize("name", BINARY)
def test_binary_combinations_are_the_double_loop(name):
    X, Z = points("random", 6), points("random", 4, seed=1)
    for k1, k2 in PAIRS:
        made = BINARY[name](k1, k2).fit(X)
        np.testing.assert_allclose(made(X, Z), naive.block(made, X, Z), rtol=1e-11)


def test_a_deep_expression_is_the_double_loop():
    X, Z = points("random", 8), points("random", 5, seed=1)
    kernel = clone(EXPRESSION).fit(X)
    np.testing.assert_allclose(kernel(X, Z), naive.block(kernel, X, Z), rtol=1e-11)
    A = kernel.prepare(X)
    assert size(A) == 8
    np.testing.assert_allclose(kernel.between(A[[2, 5]], kernel.prepare(Z)), kernel(X[[2, 5]], Z), rtol=1e-12)
    np.testing.assert_allclose(kernel.between(kernel.pack(A), kernel.prepare(Z)), kernel(X, Z), rtol=1e-12)
    out = np.empty((8, 8))
    assert kernel.between(A, out=out) is out
    assert np.array_equal(out, kernel(X))
    single = kernel(X.astype(np.float32), Z.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, kernel(X, Z), rtol=1e-4)


def test_identities():
    X = points("random")
    k1, k2 = Gaussian(0.7), Polynomial(2)
    np.testing.assert_allclose((k1 * k1 * k1)(X), (k1**3)(X), rtol=1e-13)
    np.testing.assert_allclose((k1**3)(X), Gaussian(0.7 / np.sqrt(3))(X), rtol=1e-12)
    np.testing.assert_allclose(((k1 + k2) * 2)(X), (2 * k1 + k2 * 2)(X), rtol=1e-13)
    np.testing.assert_allclose(polynomial(k2, [1.0, 2.0, 1.0])(X), (k2(X) + 1) ** 2, rtol=1e-13)
    np.testing.assert_allclose(exp(2.0 * Linear()).normalised()(X), Gaussian(np.sqrt(0.5))(X), rtol=1e-12)
    np.testing.assert_array_equal((k2**0)(X), np.ones((18, 18)))
    np.testing.assert_array_equal((0 * k2)(X), np.zeros((18, 18)))
    assert sum([k1, k2]) == k1 + k2
    assert functools.reduce(operator.mul, [k1, k2, k1]) == k1 * k2 * k1


def test_pairs_in_two_groups_of_columns():
    X = points("random")
    left, right = Gaussian(0.5)(X[:, :2]), Polynomial(2)(X[:, [2]])
    np.testing.assert_allclose(pairwise_product(Gaussian(0.5), Polynomial(2), [0, 1], [2])(X), left * right, rtol=1e-13)
    np.testing.assert_allclose(pairwise_sum(Gaussian(0.5), Polynomial(2), [0, 1], 2)(X), left + right, rtol=1e-13)


def test_normalised_items_without_length_are_similar_to_nothing():
    K = Linear().normalised()([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    np.testing.assert_allclose(K, [[0, 0, 0], [0, 1, 1], [0, 1, 1]], rtol=1e-15)


# --- text, parameters, equality -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Gaussian(2.0).on([0, 1]) * Linear().on([2]) + 0.1 * Polynomial(3)",
        "(Linear() + Gaussian(1.0)) * Polynomial(3)",
        "Linear() + (Gaussian(1.0) + Polynomial(3))",
        "Linear() * (Gaussian(1.0) * Polynomial(3))",
        "0.5 * (Linear() * Gaussian(1.0))",
        "0.5 * Linear() * Gaussian(1.0)",
        "Linear() * (0.5 * Gaussian(1.0))",
        "2 * (3.0 * Linear())",
        "(2 * Linear()) ** 3",
        "(Linear() ** 2) ** 3",
        "(Linear() + Gaussian(1.0)).on(slice(0, 2, None)).normalised()",
        "(Linear() ** 2).times(first_column)",
        "exp(Linear() + Gaussian('median')) * polynomial(Linear(), [1.0, 0.5])",
        "Centred(Laplacian(2.0, 2) + Anova(Gaussian(1.0), 3))",
        "Polynomial(constant=0.5) + Subsequence(4, blended=True)",
        "Spectrum(2, normalise=True).on('text') + Linear().on(['age', 'size'])",
    ],
)
def test_an_expression_reads_as_it_is_written(text):
    kernel = eval(text, NAMESPACE)
    assert repr(kernel) == text
    assert eval(repr(kernel), NAMESPACE) == kernel
    assert clone(kernel) == kernel


@pytest.mark.parametrize("kernel", [*VECTOR_KERNELS, EXPRESSION], ids=repr)
def test_expressions_round_trip_after_changes(kernel):
    changed = clone(kernel)
    numbers = {name: value for name, value in changed.get_params().items() if isinstance(value, (int, float))}
    changed.set_params(**{name: type(value)(value + 1) for name, value in numbers.items()})
    assert eval(repr(changed), NAMESPACE) == changed
    assert (changed == kernel) == (not numbers)
    assert hash(changed) == hash(kernel)


def test_parameters_are_reached_from_outside_and_forget_what_was_learned():
    X = points("random")
    kernel = Gaussian("median").on([0]) * Linear() + 0.1 * Polynomial(3)
    kernel.fit(X)
    assert kernel.get_params()["left__left__kernel__width"] == "median"
    kernel.set_params(left__left__kernel__width=3.0, right__factor=0.2)
    expected = Gaussian(3.0).on([0]) * Linear() + 0.2 * Polynomial(3)
    np.testing.assert_allclose(kernel(X), expected(X), rtol=1e-13)


def test_fitting_leaves_the_parameters_alone():
    shared = Gaussian("median")
    X = points("random") * [1.0, 10.0, 100.0]
    kernel = (shared.on([0]) + shared.on([1, 2])).fit(X)
    assert not hasattr(shared, "width_")
    expected = sum(Gaussian("median").fit(X[:, part])(X[:, part]) for part in ([0], [1, 2]))
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-13)


# --- columns --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_by_position_name_slice_and_mask(frame):
    X = points("random")
    table = frame({name: X[:, j] for j, name in enumerate("abc")})
    expected = Linear()(X[:, [0, 2]])
    for columns in (["a", "c"], [0, 2], [-3, -1], np.array([0, 2]), [True, False, True], slice(0, None, 2)):
        np.testing.assert_array_equal(Linear().on(columns)(table), expected)
    for columns in ("b", 1, ["b"], slice(1, 2)):
        np.testing.assert_array_equal(Linear().on(columns)(table), Linear()(X[:, [1]]))
    np.testing.assert_array_equal(Linear().on([0, 2])(X), expected)
    np.testing.assert_array_equal(Linear().on([0, 2])(X.tolist()), expected)
    np.testing.assert_allclose(Linear().on([0, 2])(sparse.csc_matrix(X)), expected, rtol=1e-14)
    np.testing.assert_array_equal((Linear() + Gaussian(1.0))(table), (Linear() + Gaussian(1.0))(X))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_numbers_and_text_side_by_side(frame):
    ages, texts = [1.0, 2.0, 4.0], ["abab", "abc", "cab"]
    kernel = Gaussian("median").on("age") * Subsequence(2).on("text") + Linear().on(["age"])
    table = frame({"age": ages, "text": texts})
    column = np.array(ages)[:, None]
    assert kernel.takes == "objects"
    expected = Gaussian("median").fit(column)(column) * Subsequence(2)(texts) + Linear()(column)
    np.testing.assert_allclose(clone(kernel).fit(table)(table), expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([5], "does not have"),
        (["a"], "no data frame"),
        ([True], "mask of length 1"),
        ([0.5], "positions or names"),
        ([], "at least one"),
        (slice("a", "b"), "slice of names"),
    ],
)
def test_bad_columns_are_refused(columns, message):
    with pytest.raises(EmpiriskError, match=message):
        Linear().on(columns)(np.ones((2, 3)))


def test_missing_names_are_refused():
    with pytest.raises(EmpiriskError, match=r"\['z'\] are not in X; it has \['a'\]"):
        Linear().on(["z"])(pd.DataFrame({"a": [1.0]}))


# --- the linear part ------------------------------------------------------------------------------------------------


def test_the_linear_part_of_a_sum_is_its_weight_vector():
    X, Z = points("random"), points("random", 5, seed=1)
    beta = np.random.default_rng(2).normal(size=18)
    linear = 2.0 * Linear() + Linear().on([2, 0]) + 0.5 * Polynomial(1, 0.0).on(slice(0, 2))
    kernel = (Gaussian(0.5) + linear).fit(X)
    w = kernel.linear_part(kernel.prepare(X), beta)
    np.testing.assert_allclose(Z @ w, linear(Z, X) @ beta, rtol=1e-12)
    both = np.stack([beta, -beta], axis=1)
    np.testing.assert_allclose(kernel.linear_part(kernel.prepare(X), both), np.stack([w, -w], axis=1), rtol=1e-12)
    np.testing.assert_allclose(Linear().linear_part(sparse.csr_matrix(X), beta), X.T @ beta, rtol=1e-12)


@pytest.mark.parametrize("kernel", [Gaussian(), Polynomial(2), Linear() * Linear(), Linear().normalised()], ids=repr)
def test_other_kernels_have_no_linear_part(kernel):
    X = points("random")
    assert kernel.linear_part(kernel.prepare(X), np.ones(18)) is None


def test_the_linear_part_on_columns_needs_to_know_the_others():
    kernel = Linear().on([0])
    with pytest.raises(EmpiriskError, match="call fit"):
        kernel.linear_part(kernel.prepare(np.ones((2, 3))), np.ones(2))


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "build",
    [
        lambda k: -k,
        lambda k: k - Linear(),
        lambda k: -0.5 * k,
        lambda k: k * -1,
        lambda k: k**0.5,
        lambda k: k**-1,
        lambda k: polynomial(k, [1.0, -1.0]),
        lambda k: (2 * k).set_params(factor=-1.0)([[1.0]]),
    ],
)
def test_what_is_no_kernel_is_refused(build):
    with pytest.raises(NotAKernel, match=r"positive semidefinite|none is negative"):
        build(Gaussian())


def test_powers_that_take_for_ever_are_refused():
    with pytest.raises(EmpiriskError, match="exponent=1000000000 must be at most 10000"):
        Linear() ** 10**9


@pytest.mark.parametrize("build", [lambda k: k + "a", lambda k: k * None, lambda k: k + 1.0, lambda k: [] * k])
def test_what_has_no_meaning_is_a_type_error(build):
    with pytest.raises(TypeError):
        build(Gaussian())


@pytest.mark.parametrize(
    ("kernel", "X", "message"),
    [
        (Linear().times(lambda X: X), np.ones((3, 2)), "one number per item, here 3"),
        (Linear().times(lambda X: X[:, 0] * np.nan), np.ones((3, 2)), "NaN or infinity"),
        (exp(Linear()), [[100.0]], "overflows"),
        (Centred(Linear()), [[1.0]], "call fit"),
        (Sum(Linear(), 3.0), [[1.0]], "right=3.0 is not a kernel"),
        (Gaussian(-1.0) + Linear(), [[1.0]], "width=-1.0"),
        (Scaled(Linear(), float("nan")), [[1.0]], "finite number"),
        (Spectrum().on([0, 1]), np.array([["a", "b"]]), "single column"),
    ],
)
def test_bad_compositions_are_refused(kernel, X, message):
    with pytest.raises(EmpiriskError, match=message):
        kernel(X)


@pytest.mark.parametrize("kernel", [EXPRESSION, Spectrum() + Gaussian(), Sum(Linear(), 3.0)], ids=str)
def test_notebooks_and_files_take_any_expression(kernel):
    assert kernel._repr_html_()
    assert pickle.loads(pickle.dumps(kernel)) == kernel


def test_kernels_on_different_kinds_of_items_are_not_mixed():
    with pytest.raises(Unsuitable, match=r"mixes kernels on strings and vectors; give each its column"):
        (Spectrum() + Gaussian())(["abc"])


def test_columns_are_chosen_from_frames_whose_names_are_numbers():
    X = np.random.default_rng(0).normal(size=(6, 3))
    kernel = Gaussian(1.0).on([0, 2])
    np.testing.assert_array_equal(kernel(pd.DataFrame(X)), kernel(X))
    np.testing.assert_array_equal(kernel(pd.DataFrame(X, columns=[2, 1, 0])), kernel(X))


def test_a_cosine_whose_norms_overflow_is_refused():
    X = np.float32(1e8) * np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    with pytest.raises(EmpiriskError, match=r"k\(x, x\) overflows in Anova.*; divide X by its size"):
        Anova(Polynomial(), 3).normalised()(X)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, np.ndarray.tolist])
def test_a_function_sees_the_array_of_a_frame(frame):
    X = points("random")
    names = {"schema" if frame is pl.DataFrame else "columns": list("abcdefgh"[: X.shape[1]])}
    table = frame(X) if frame is np.ndarray.tolist else frame(X, **names)
    for kernel in (Linear().times(first_column), Gaussian(1.0).on([0]).times(first_column)):
        np.testing.assert_array_equal(kernel(table), kernel(X))
        np.testing.assert_allclose(clone(kernel).fit(table).diagonal(table), kernel.diagonal(X), rtol=1e-14)
