"""The test for kernels: it passes kernels, and convicts what is none with a witness."""

import numpy as np
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError, NotAKernel, TooLarge
from empirisk.kernels import Callable, Gaussian, Polynomial, check, require_kernel
from tests.kernel_catalog import OBJECT_KERNELS, POINTS, VECTOR_KERNELS, points

pytestmark = pytest.mark.row("K3")

NON_KERNELS = {
    "negative distance": lambda x, z: -np.linalg.norm(x - z),
    "sigmoid": lambda x, z: np.tanh(x @ z - 1.0),
    "maximum": lambda x, z: max(abs(x).max(), abs(z).max()),
    "distance": lambda x, z: np.linalg.norm(x - z),
    "difference of kernels": lambda x, z: np.exp(-((x - z) @ (x - z))) - 0.9 * np.exp(-0.5 * (x - z) @ (x - z)),
}


@pytest.mark.parametrize("kind", POINTS)
@pytest.mark.parametrize("kernel", VECTOR_KERNELS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_pass(kernel, kind, dtype):
    report = check(kernel, points(kind, 40).astype(dtype))
    assert report, report.verdict
    assert "positive semidefinite" in str(report)


@pytest.mark.parametrize(("kernel", "X"), OBJECT_KERNELS, ids=lambda value: repr(value)[:40])
def test_kernels_on_objects_pass(kernel, X):
    assert check(kernel, X)


@pytest.mark.parametrize("name", NON_KERNELS)
def test_non_kernels_are_convicted_by_a_witness(name):
    X = 2 * points("random", 30)
    report = check(NON_KERNELS[name], X)
    assert not report
    assert report.symmetric
    assert not report.positive
    K = np.array([[NON_KERNELS[name](x, z) for z in X] for x in X])
    assert report.witness @ K @ report.witness == pytest.approx(report.smallest)
    assert report.smallest < -report.tolerance
    assert report.largest == pytest.approx(np.linalg.eigvalsh(K)[-1])
    assert f"{report.smallest:.3g}" in report.verdict
    with pytest.raises(NotAKernel, match=rf"the Gram matrix has the eigenvalue {report.smallest:.3g}"):
        require_kernel(K)


def test_asymmetry_is_found_also_where_a_machine_would_compute_one_half_only():
    report = check(Callable(lambda x, z: float(x[0] - 2 * z[0])), [[1.0], [2.0], [4.0]])
    assert not report.symmetric
    assert report.asymmetry == pytest.approx(9.0)
    assert "differ by 9" in report.verdict
    with pytest.raises(NotAKernel, match="gram is not a kernel"):
        require_kernel([[1.0, 0.0], [0.5, 1.0]], "gram")


def test_a_gram_matrix_is_tested_as_it_is():
    K = Polynomial(3)(points("duplicates", 50))
    require_kernel(K)
    assert check(K)
    require_kernel(K.astype(np.float32))
    assert not check(K - 1e-3 * np.trace(K) * np.eye(50))


@pytest.mark.parametrize("rows", [8, 50, 200])
def test_eigenvalues_that_are_all_equal_but_one_are_found(rows):
    report = check(np.eye(rows) - 1 / rows)  # LAPACK's search for a part of them finds none
    assert report
    assert report.largest == pytest.approx(1.0)
    assert report.smallest == pytest.approx(0.0, abs=1e-12)
    assert er.PCA(1, features=Gaussian(1e-3)).fit(np.arange(rows)[:, None]).explained_variance_ == pytest.approx(
        1.0 / (rows - 1)
    )


def test_a_kernel_is_not_changed_by_its_test():
    kernel = Gaussian("median")
    assert check(kernel, points("random"))
    assert not hasattr(kernel, "width_")


def test_bad_input_is_refused():
    with pytest.raises(EmpiriskError, match="X=None"):
        check(Gaussian())
    with pytest.raises(EmpiriskError, match="a Gram matrix is square"):
        check(np.ones((2, 3)))
    with pytest.raises(EmpiriskError, match="K contains NaN"):
        require_kernel([[np.nan]])
    with er.config(memory="1KB"), pytest.raises(TooLarge, match="test on fewer items"):
        check(np.eye(50))
