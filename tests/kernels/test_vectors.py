"""Kernels on vectors: equal to a double loop, exactly symmetric, accurate where a matrix product is not."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import empirisk as er
from empirisk.errors import EmpiriskError, TooLarge
from empirisk.kernels import Anova, Gaussian, Laplacian, Linear, Polynomial, find
from empirisk.kernels.compiled import EXPONENTIAL, Formula, walk
from empirisk.kernels.distances import Exponents
from empirisk.kernels.items import size
from empirisk.kernels.tiles import integer_power
from tests.kernel_catalog import SPARSE_KERNELS, VECTOR_KERNELS, points
from tests.kernels import naive_kernels as naive

ids = repr


@pytest.mark.row("K1")
@pytest.mark.parametrize("kernel", VECTOR_KERNELS, ids=ids)
def test_a_block_is_the_double_loop(kernel):
    X, Z = points("random", 9), points("random", 5, seed=1)
    kernel = clone(kernel).fit(X)
    np.testing.assert_allclose(kernel.block(X, Z), naive.block(kernel, X, Z), rtol=1e-12)
    np.testing.assert_allclose(kernel(X), naive.block(kernel, X, X), rtol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(X), [naive.pair(kernel, x, x) for x in X], rtol=1e-12)


@pytest.mark.row("K1")
@pytest.mark.parametrize("kernel", VECTOR_KERNELS, ids=ids)
def test_blocks_over_many_tiles_are_symmetric_to_the_last_bit(kernel):
    X = np.random.default_rng(0).normal(size=(600, 3))
    kernel = clone(kernel).fit(X)
    K = kernel(X)
    assert np.array_equal(K, K.T)
    np.testing.assert_allclose(K, kernel(X, X), rtol=1e-12)
    np.testing.assert_allclose(np.diag(K), kernel.diagonal(X), rtol=1e-12)
    if kernel.constant_diagonal:
        assert np.all(np.diag(K) == 1)


@pytest.mark.parametrize("kernel", VECTOR_KERNELS, ids=ids)
def test_float32_is_kept(kernel):
    X, Z = points("random", 530), points("random", 40, seed=1)
    kernel = clone(kernel).fit(X.astype(np.float32))
    single, double = kernel(X.astype(np.float32), Z.astype(np.float32)), kernel(X, Z)
    assert single.dtype == kernel.diagonal(X.astype(np.float32)).dtype == np.float32
    assert kernel(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single, double, rtol=3e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", VECTOR_KERNELS, ids=ids)
def test_the_bits_do_not_depend_on_threads(kernel):
    X = np.random.default_rng(0).normal(size=(700, 4))
    kernel = clone(kernel).fit(X)
    with er.config(threads=1):
        one = kernel(X), kernel(X, X[:300])
    with er.config(threads=2):
        two = kernel(X), kernel(X, X[:300])
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("kernel", VECTOR_KERNELS, ids=ids)
def test_prepared_items_are_taken_packed_and_written_into_given_memory(kernel):
    X, Z = points("random", 30), points("random", 8, seed=1)
    kernel = clone(kernel).fit(X)
    A, B = kernel.prepare(X), kernel.prepare(Z)
    expected = kernel(X, Z)
    rows = np.array([4, 0, 7])
    assert (size(A), size(A[rows]), size(kernel.pack(A))) == (30, 3, 30)
    np.testing.assert_allclose(kernel.between(A[rows], B), expected[rows], rtol=1e-13)
    np.testing.assert_allclose(kernel.between(kernel.pack(A), kernel.pack(B)), expected, rtol=1e-13)
    np.testing.assert_allclose(kernel.between(B, kernel.pack(A)[3:9]), expected.T[:, 3:9], rtol=1e-13)
    memory = np.full((40, 20), -1.0)
    assert np.shares_memory(kernel.between(A, B, memory[5:35, 2:10]), memory)
    np.testing.assert_array_equal(memory[5:35, 2:10], expected)
    assert np.all(memory[:5] == -1)


def test_prepare_copies_nothing_it_need_not():
    X = points("random")
    assert Gaussian().prepare(X) is X
    assert np.shares_memory(Linear().on([1, 2]).prepare(X), X)


@pytest.mark.row("K1")
@pytest.mark.parametrize("share", [0.005, 0.3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [*SPARSE_KERNELS, Linear() * Gaussian(1.0), Polynomial(2).on([3, 7])], ids=ids)
def test_sparse_is_dense(kernel, dtype, share):
    rng = np.random.default_rng(0)
    X = sparse.random(300, 120, share, format="csr", dtype=dtype, random_state=rng)
    Z = sparse.random(70, 120, share, format="csc", dtype=dtype, random_state=rng)
    kernel = clone(kernel).fit(X)
    tolerance = {"rtol": 1e-5 if dtype == np.float32 else 1e-12, "atol": 1e-7 if dtype == np.float32 else 1e-14}
    np.testing.assert_allclose(kernel(X, Z), kernel(X.toarray(), Z.toarray()), **tolerance)
    np.testing.assert_allclose(kernel.diagonal(X), kernel.diagonal(X.toarray()), **tolerance)
    K = kernel(X)
    assert K.dtype == dtype
    assert np.array_equal(K, K.T)
    np.testing.assert_allclose(K, kernel(X.toarray()), **tolerance)


# --- accuracy -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplacian(0.5, 2), Laplacian(0.5)], ids=ids)
@pytest.mark.parametrize("fitted", [False, True])
def test_points_far_from_the_origin_keep_their_digits(kernel, fitted):
    X = np.random.default_rng(0).integers(-8, 8, size=(40, 3)) / 16.0
    kernel = clone(kernel).fit(X + 2.0**30) if fitted else clone(kernel)
    np.testing.assert_allclose(kernel(X + 2.0**30), naive.block(kernel, X, X), rtol=1e-12)
    np.testing.assert_allclose(kernel(X + 2.0**30, X[:7] + 2.0**30), naive.block(kernel, X, X[:7]), rtol=1e-12)


def test_products_are_taken_around_the_middle_of_the_points():
    X = np.random.default_rng(0).integers(-8, 8, size=(40, 3)) / 16.0
    assert Exponents(X + 2.0**30, X + 2.0**30, 1.0, None).largest == Exponents(X, X, 1.0, None).largest


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(1.0, 2)], ids=ids)
def test_tight_clusters_far_apart_keep_their_digits(kernel, dtype):
    rng = np.random.default_rng(0)
    X = (rng.integers(-3, 4, size=(60, 4)) * 2.0**12 + rng.normal(size=(60, 4)).astype(np.float16)).astype(dtype)
    X = np.concatenate([X, X + dtype(0.25)])
    exact = naive.block(kernel, X.astype(float), X.astype(float))
    np.testing.assert_allclose(kernel(X), exact, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-30)


@pytest.mark.parametrize("kernel", [Gaussian(0.1), Laplacian(0.1, 2), Laplacian(0.1)], ids=ids)
def test_an_outlier_does_not_spoil_the_others(kernel):
    X = np.random.default_rng(0).normal(size=(50, 2))
    X[0] = 1e9
    np.testing.assert_allclose(kernel(X), naive.block(kernel, X, X), rtol=1e-9, atol=1e-300)


def test_points_that_repeat_are_entirely_similar():
    X = np.repeat(np.random.default_rng(0).normal(size=(5, 40)) * 1e3, 3, axis=0)
    for kernel in (Gaussian(1.0), Laplacian(1.0), Laplacian(1.0, 2)):
        np.testing.assert_allclose(kernel(X, X), np.kron(np.eye(5), np.ones((3, 3))), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_similarity_exceeds_one(dtype):
    X = np.random.default_rng(0).normal(size=(300, 40)).astype(dtype)
    for kernel in (Gaussian(3.0), Laplacian(3.0, 2)):
        assert kernel(X, X).max() == 1


@pytest.mark.parametrize("exponent", range(12))
def test_whole_powers(exponent):
    values = np.linspace(-2, 2, 9)
    expected = values**exponent
    integer_power(values, exponent)
    np.testing.assert_allclose(values, expected, rtol=1e-15)


# --- parameters -----------------------------------------------------------------------------------------------------


@pytest.mark.row("K1")
def test_gamma_is_another_name_for_the_width():
    X = points("random")
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    np.testing.assert_allclose(Gaussian.from_gamma(0.7)(X), np.exp(-0.7 * squares), rtol=1e-13)


@pytest.mark.row("K1")
@pytest.mark.parametrize("norm", [1, 2])
def test_the_median_width_is_the_median_distance(norm):
    X = np.random.default_rng(0).normal(size=(41, 3))
    distances = [(abs(x - z) ** norm).sum() ** (1 / norm) for i, x in enumerate(X) for z in X[:i]]
    assert Laplacian("median", norm).fit(X).width_ == pytest.approx(np.median(distances), rel=1e-12)
    if norm == 2:
        assert Gaussian("median").fit(X).width_ == pytest.approx(np.median(distances), rel=1e-12)
        assert Gaussian("median").fit(sparse.csr_matrix(X)).width_ == pytest.approx(np.median(distances), rel=1e-9)


def test_the_median_width_of_points_that_repeat_is_positive():
    assert Gaussian("median").fit(np.zeros((5, 2))).width_ == 1.0
    assert Gaussian("median").fit([[0.0]] * 9 + [[3.0]]).width_ == pytest.approx(3.0)


def test_the_median_width_of_many_points_is_that_of_some():
    X = np.random.default_rng(0).normal(size=(5000, 2))
    distances = np.sqrt(((X[:1500, None] - X[1500:3000]) ** 2).sum(axis=2))
    assert Gaussian("median").fit(X).width_ == pytest.approx(np.median(distances), rel=0.05)


@pytest.mark.row("K2")
def test_anova_counts_the_groups_of_columns():
    X = np.ones((2, 7))
    for order in (1, 2, 5):
        assert Anova(Linear(), order)(X)[0, 1] == naive.groups_of_columns(7, order)


def test_anova_learns_a_width_for_each_column():
    X = np.random.default_rng(0).normal(size=(30, 2)) * [1.0, 100.0]
    kernel = Anova(Gaussian("median"), 1).fit(X)
    widths = [part.width_ for part in kernel.kernels_]
    assert widths == [Gaussian("median").fit(X[:, [j]]).width_ for j in range(2)]
    with pytest.raises(EmpiriskError, match="3 columns, but the kernel was fitted on 2"):
        kernel(np.ones((2, 3)))


def test_a_block_beyond_the_budget_is_refused_before_it_is_made():
    with er.config(memory="1MB"), pytest.raises(TooLarge, match=r"A kernel block of 1000 x 1000 needs.*Nystrom"):
        Gaussian()(np.ones((1000, 2)))


def test_names_stand_for_kernels():
    assert find("gaussian") == Gaussian("median")
    assert find("weisfeiler_lehman") == er.kernels.WeisfeilerLehman()
    assert find(Polynomial(3)) == Polynomial(3)
    with pytest.raises(EmpiriskError, match="did you mean 'laplacian'"):
        find("laplacean")
    with pytest.raises(EmpiriskError, match="neither a name nor an object"):
        find(3.0)


@pytest.mark.parametrize(
    ("kernel", "X", "message"),
    [
        (Gaussian(0.0), [[1.0]], "width=0.0 must be a positive number"),
        (Gaussian(1e-200), [[1.0]], "width=1e-200 must be a positive number .* not beyond 1e-150"),
        (Gaussian(1e200), [[1.0]], "width=1e.200 must be a positive number .* not beyond 1e-150 or 1e.150"),
        (Gaussian("mean"), [[1.0]], "width='mean' must be a positive number or 'median'"),
        (Gaussian("median"), [[1.0]], "call fit"),
        (Laplacian(1.0, 3), [[1.0]], "norm=3 must be 1 or 2"),
        (Polynomial(1.5), [[1.0]], "degree=1.5 must be a whole number of at least 1"),
        (Polynomial(10**9), [[1.0]], "degree=1000000000 must be at most 10000"),
        (Polynomial(2, -1.0), [[1.0]], "constant=-1.0 must be a number >= 0"),
        (Anova(order=0), [[1.0]], "order=0"),
        (Linear(), [1.0, 2.0], "X has 1 dimension.*reshape"),
        (Linear(), [[np.nan]], "X contains NaN or infinity"),
        (Linear(), sparse.csr_matrix([[np.inf]]), "X contains NaN or infinity"),
        (Linear(), [["a"]], "X holds values that are not numbers"),
        (Linear(), [[1j]], "complex"),
        (Linear(), np.empty((0, 2)), "at least one row"),
        (Laplacian(), sparse.csr_matrix([[1.0]]), "X is sparse.*toarray"),
        (Gaussian(), [[1e200], [-1e200]], "overflow; scale its columns"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(kernel, X, message):
    with pytest.raises(EmpiriskError, match=message):
        kernel(X)


@pytest.mark.parametrize("kernel", VECTOR_KERNELS, ids=ids)
def test_tables_of_different_width_are_refused(kernel):
    X = np.ones((3, 2))
    with pytest.raises(EmpiriskError, match="columns"):
        clone(kernel).fit(X)(X, np.ones((3, 4)))


COMPILED = [
    er.kernels.Linear(),
    er.kernels.Polynomial(3, 0.5),
    er.kernels.Gaussian(2.0),
    er.kernels.Laplacian(2.0, norm=2),
]


@pytest.mark.row("K2")
@pytest.mark.parametrize("kernel", COMPILED, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_blocks_and_sums_are_the_same_bits_on_any_number_of_threads(kernel, dtype):
    random = np.random.default_rng(0)
    X, Z = random.normal(size=(1100, 5)).astype(dtype), random.normal(size=(700, 5)).astype(dtype)
    c = random.normal(size=(700, 2))
    blocks, grams, sums = [], [], []
    for threads in (1, 2, 7):
        with er.config(threads=threads):
            blocks.append(kernel(X, Z))
            grams.append(kernel(X))
            sums.append(kernel.formula(kernel.prepare(X), kernel.prepare(Z)).sums(c))
    for found in (blocks, grams, sums):
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])
    assert blocks[0].dtype == grams[0].dtype == dtype
    np.testing.assert_array_equal(grams[0], grams[0].T)
    rounding = 200 * float(np.finfo(dtype).eps)
    exact = kernel(X.astype(np.float64), Z.astype(np.float64))
    np.testing.assert_allclose(blocks[0], exact, rtol=rounding, atol=rounding * np.abs(exact).max())
    np.testing.assert_allclose(sums[0], exact @ c, atol=rounding * float((np.abs(exact) @ np.abs(c)).max()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_exponential_is_right_to_the_last_digits(dtype):
    exponents = np.concatenate([-np.linspace(0, 760, 40_001), [-1e30, 1e-9]]).astype(dtype)
    found = Formula(EXPONENTIAL, np.ones((1, 1), dtype), exponents[:, None], dtype).block(None, False)[0]
    exact = np.exp(np.minimum(exponents.astype(np.float64), 0))
    normal = exact > 4 * np.finfo(dtype).tiny  # what is smaller has fewer digits
    np.testing.assert_allclose(found[normal], exact[normal], rtol=2 * np.finfo(dtype).eps)
    assert np.all((found[~normal] >= 0) & (found[~normal] <= 4 * np.finfo(dtype).tiny))


def test_arrays_that_must_not_be_written_and_blocks_that_are_not_contiguous():
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(40, 3)))
    X.flags.writeable = False
    for kernel in COMPILED:
        whole = kernel(X)
        out = np.zeros((40, 80))[:, ::2]
        kernel.between(kernel.prepare(X), None, out)
        np.testing.assert_allclose(out, whole, rtol=1e-14)
        mixed = kernel(X.astype(np.float32), X)
        assert mixed.dtype == np.float32
        np.testing.assert_allclose(mixed, whole, rtol=1e-4, atol=1e-5)


def test_a_kernel_with_a_block_of_its_own_inherits_no_formula():
    class Twice(er.kernels.Gaussian):
        def between(self, A, B=None, out=None):
            return 2 * super().between(A, B, out)

    assert Twice().formula(np.ones((1, 1)), np.ones((1, 1))) is None
    assert er.kernels.Gaussian().formula(np.ones((1, 1)), np.ones((1, 1))) is not None


@pytest.mark.row("K2")
def test_anova_is_the_sum_over_columns_unless_told_otherwise():
    X = np.random.default_rng(0).normal(size=(5, 3))
    expected = sum(er.kernels.Gaussian()(X[:, [j]]) for j in range(3))
    np.testing.assert_allclose(er.kernels.Anova()(X), expected)


def test_sums_of_no_coefficients_are_no_block():
    """Where nothing is summed, nothing is written: the block that the loop is handed then has no room."""
    X, memory = points("random", 9), np.zeros((9, 9))
    work = (X, X, X[:0], X[:0], np.zeros(0), np.zeros(0))
    rule = np.array([EXPONENTIAL, 1, 1, 1, 1, 0, np.inf, 0, 0, 0], dtype=np.float64)
    tiles, none = np.zeros((1, 2), dtype=np.int64), np.zeros((0, 9))
    walk(tiles, 9, rule, work, np.empty(81), memory[:0, :0], none, none)
    assert not memory.any()
    assert Gaussian(1.0).fit(X).block(X, X).shape == (9, 9)
