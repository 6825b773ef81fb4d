"""Functions as kernels: of pairs or of blocks, on tables or on any objects."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.kernels import Callable, Gaussian, Linear, find
from tests.kernel_catalog import points

pytestmark = pytest.mark.row("K2")

X, Z = points("random"), points("random", 5, seed=1)


def of_pairs(x, z):
    return float(np.exp(-((x - z) @ (x - z)) / 2))


def of_dots(x, z):
    return float(np.sum(x * z))


def of_blocks(A, B):
    return rbf_kernel(A, B, gamma=0.5)


@pytest.mark.parametrize("function", [of_pairs, of_blocks])
def test_the_form_of_a_function_is_found(function):
    kernel = find(function)
    np.testing.assert_allclose(kernel(X, Z), Gaussian(1.0)(X, Z), rtol=1e-12)
    K = kernel(X)
    assert np.array_equal(K, K.T)
    np.testing.assert_allclose(K, Gaussian(1.0)(X), rtol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(X), 1.0, rtol=1e-12)
    form = "blocks" if function is of_blocks else "pairs"
    np.testing.assert_array_equal(Callable(function, form)(X, Z), kernel(X, Z))
    np.testing.assert_allclose((0.5 * kernel + Linear())(X), 0.5 * K + Linear()(X), rtol=1e-12)


def test_pairs_are_computed_once():
    calls = []

    def counted(x, z):
        calls.append(1)
        return float(x @ z)

    Callable(counted, "pairs")(X)
    assert len(calls) == 18 * 19 // 2


def test_objects_of_any_kind():
    kernel = Callable(lambda a, b: len(a & b))
    sets = [{1, 2}, {2, 3, 4}, set()]
    np.testing.assert_array_equal(kernel(sets), [[2, 1, 0], [1, 3, 0], [0, 0, 0]])
    np.testing.assert_allclose(kernel.normalised()(sets)[0, 1], 1 / np.sqrt(6))
    rows = Callable(lambda a, b: (a @ b.T).sum(), "pairs")
    np.testing.assert_allclose(rows(sparse.csr_matrix(X)), X @ X.T, rtol=1e-12)


def test_a_function_reads_as_its_name():
    assert repr(Callable(of_pairs) + 0.5 * Callable(of_blocks, "blocks")) == (
        "Callable(of_pairs) + 0.5 * Callable(of_blocks, 'blocks')"
    )
    assert clone(Callable(of_pairs)) == Callable(of_pairs)


@pytest.mark.parametrize(
    ("kernel", "data", "message"),
    [
        (Callable(3), X, "function=3 cannot be called"),
        (Callable(of_pairs, "rows"), X, "form='rows' is not known"),
        (Callable(lambda x, z: np.nan, "pairs"), X, "NaN or infinity"),
        (Callable(lambda A, B: A, "blocks"), X, r"returned an array of shape \(18, 3\) where \(18, 18\) was expected"),
        (Callable(of_pairs), [], "not empty"),
    ],
)
def test_bad_functions_are_refused(kernel, data, message):
    with pytest.raises(EmpiriskError, match=message):
        kernel(data)


def test_a_product_of_two_vectors_is_a_function_of_pairs_for_any_number_of_columns():
    for columns in range(1, 5):
        A = np.random.default_rng(columns).normal(size=(6, columns))
        for rows in (2, 3, 6):
            np.testing.assert_allclose(Callable(lambda x, z: x @ z)(A[:rows]), Linear()(A[:rows]), rtol=1e-12)


def test_what_a_function_of_pairs_raises_for_blocks_does_not_matter():
    def same(x, z):
        if isinstance(x, list):
            raise RuntimeError("one item at a time")
        return float(x == z)

    np.testing.assert_array_equal(Callable(same)(["a", "b", "a"]), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    for function in (lambda x, z: x * z, lambda x, z: "near"):
        with pytest.raises(EmpiriskError, match="where one number is needed"):
            Callable(function)(np.ones((4, 3)))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_rows_of_every_sparse_format_support_a_machine(form):
    y = X[:, 0] > 0
    for machine in (
        er.Perceptron(features=Callable(of_dots)),
        er.SVM(features=Callable(of_dots)),
        er.KNNClassifier(1, Callable(of_dots)),
    ):
        dense = clone(machine).fit(X, y).predict(Z)
        found = machine.fit(sparse.csr_array(X).asformat(form), y).predict(sparse.csr_array(Z).asformat(form))
        np.testing.assert_array_equal(found, dense)
