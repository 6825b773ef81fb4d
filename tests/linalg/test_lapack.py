import pickle
import threading

import numpy as np
import pytest
from scipy import linalg

from empirisk import stop
from empirisk.linalg import lapack, lapack_by_address, threads
from empirisk.linalg.gram_factor import inverse
from empirisk.linalg.lapack_by_address import AddressedRoutines, OtherSignature, routine
from empirisk.linalg.lapack_by_scipy import SciPyRoutines


def _definite(size: int) -> np.ndarray:
    A = np.random.default_rng(0).normal(size=(size, size))
    return A @ A.T / size + np.eye(size)


@pytest.mark.parametrize("size", [1, 7, 300, 1100])
def test_an_inverse_is_the_inverse(size):
    matrix = _definite(size)
    found = inverse(matrix.copy())
    assert np.allclose(found @ matrix, np.eye(size), atol=1e-12)


@pytest.mark.parametrize("size", [1, 7, 1100])
def test_an_inverted_triangle_is_one(size):
    factor = np.linalg.cholesky(_definite(size))
    found = factor.copy()
    lapack.invert_triangle(found)
    assert np.array_equal(found, np.tril(found))
    assert np.allclose(found @ factor, np.eye(size), atol=1e-12)


@pytest.mark.parametrize("invert", [lapack.invert_product, lapack.invert_triangle])
def test_the_inverse_of_a_singular_factor_is_refused(invert):
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        invert(np.diag([1.0, 0.0]))


@pytest.mark.parametrize(("size", "rank"), [(1, 1), (6, 2), (40, 40), (1200, 30)])
def test_a_thin_factor_has_the_rank_of_the_matrix_and_gives_it_back(size, rank):
    A = np.random.default_rng(1).normal(size=(size, rank))
    K = A @ A.T
    before = K.copy()
    thin = lapack.thin_factor(K, 1e-9, rank)
    assert np.array_equal(K, before)
    assert thin is not None
    assert thin.shape == (size, rank)
    assert np.allclose(thin @ thin.T, K, atol=1e-9)
    assert lapack.thin_factor(K, 1e-9, rank - 1) is None


def test_every_other_row_of_a_matrix_is_factored_too():
    K = _definite(50)
    thin = lapack.thin_factor(K[::2, ::2], 1e-9, 25)
    assert thin is not None
    assert np.allclose(thin @ thin.T, K[::2, ::2], atol=1e-12)


@pytest.mark.parametrize(("size", "count"), [(1, 1), (9, 3), (9, 9), (1100, 20)])
def test_the_largest_pairs_are_those_of_all(size, count):
    matrix = _definite(size)
    before = matrix.copy()
    values, vectors = lapack.largest_pairs(matrix, count)
    assert np.array_equal(matrix, before)
    assert np.allclose(values, np.linalg.eigvalsh(matrix)[-count:], atol=1e-12)
    assert np.allclose(matrix @ vectors, vectors * values, atol=1e-10)
    assert np.allclose(vectors.T @ vectors, np.eye(count), atol=1e-12)


@pytest.mark.parametrize(("rows", "columns", "rank"), [(5, 3, 3), (3, 5, 3), (8, 8, 2), (1, 1, 1), (40, 1200, 40)])
def test_least_squares_are_the_shortest_of_the_best(rows, columns, rank):
    random = np.random.default_rng(2)
    matrix = random.normal(size=(rows, rank)) @ random.normal(size=(rank, columns))
    right = random.normal(size=rows)
    before = matrix.copy(), right.copy()
    found = lapack.least_squares(matrix, right)
    assert np.array_equal(matrix, before[0])
    assert np.array_equal(right, before[1])
    assert np.allclose(found, linalg.lstsq(matrix, right)[0], atol=1e-10)


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (3, 0), (0, 0)])
def test_without_rows_or_columns_there_is_nothing_to_weigh(rows, columns):
    assert np.array_equal(lapack.least_squares(np.zeros((rows, columns)), np.zeros(rows)), np.zeros(columns))


@pytest.mark.parametrize("size", [9, 1100])
def test_matrices_of_any_order_are_factored(size):
    matrix = np.asfortranarray(_definite(size))
    assert np.allclose(lapack.largest_pairs(matrix, 2)[0], np.linalg.eigvalsh(matrix)[-2:], atol=1e-12)
    thin = lapack.thin_factor(matrix, 1e-12, size)
    assert thin is not None
    assert np.allclose(thin @ thin.T, matrix, atol=1e-12)


def test_a_routine_never_reads_past_the_end_of_a_matrix():
    with pytest.raises(ValueError, match="not C-ordered"):
        lapack.invert_triangle(np.asfortranarray(_definite(9)))


@pytest.mark.parametrize(("name", "signature"), [("dnothing", "i"), ("dpotri", "cidi"), ("dpotri", "ciiii")])
def test_a_routine_that_scipy_does_not_have_so_is_refused(name, signature):
    with pytest.raises(OtherSignature, match=name):
        routine(name, signature)


def test_other_types_of_routines_leave_the_work_to_scipys_own_functions(monkeypatch):
    """As in a build with integers of 64 bits."""
    letters = lapack_by_address._letters
    monkeypatch.setattr(lapack_by_address, "_letters", lambda capsule: letters(capsule).replace("i", "g"))
    routine.cache_clear()
    lapack.routines.cache_clear()
    try:
        assert isinstance(lapack.routines(), SciPyRoutines)
    finally:
        lapack.routines.cache_clear()
    monkeypatch.undo()
    assert isinstance(lapack.routines(), AddressedRoutines)


#: What each routine is given, beside numbers: a definite matrix, its factor, one that is smaller, a row.
OPERATIONS = {
    "factor": lambda by, definite, factor, part, row: (by.factor(definite), definite),
    "invert_product": lambda by, definite, factor, part, row: (by.invert_product(factor), factor),
    "invert_triangle": lambda by, definite, factor, part, row: (by.invert_triangle(factor), factor),
    "factor_with_pivots": lambda by, definite, factor, part, row: (*by.factor_with_pivots(definite, 1e-3), definite),
    "largest_pairs": lambda by, definite, factor, part, row: by.largest_pairs(definite, min(3, len(definite))),
    "least_squares": lambda by, definite, factor, part, row: (by.least_squares(part, row, 1e-7), row),
    "subtract": lambda by, definite, factor, part, row: (by.subtract(definite, factor, factor), definite),
    "subtract_square": lambda by, definite, factor, part, row: (by.subtract_square(definite, factor), definite),
    "divide": lambda by, definite, factor, part, row: (by.divide(definite, factor), definite),
    "solve": lambda by, definite, factor, part, row: (by.solve(definite, factor, False), definite),
    "solve transposed": lambda by, definite, factor, part, row: (by.solve(definite, factor, True), definite),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1, 7, 300])
@pytest.mark.parametrize("name", OPERATIONS)
def test_scipys_own_functions_find_the_same_bits(name, size, dtype):
    found = []
    for kind in (AddressedRoutines, SciPyRoutines):
        definite = np.zeros((size, size + 2), dtype)[:, 1:-1]  # a part of a larger matrix
        definite[...] = _definite(size)
        given = definite, np.linalg.cholesky(definite), definite[: max(size - 2, 1)].copy(), definite[:1] + 1
        found.append(pickle.dumps(OPERATIONS[name](kind("s" if dtype == np.float32 else "d"), *given)))
    assert found[0] == found[1]


CALLS = {
    "invert_product": lapack.invert_product,
    "invert_triangle": lapack.invert_triangle,
    "thin_factor": lambda matrix: lapack.thin_factor(matrix, 1e-12, 0),
    "largest_pairs": lambda matrix: lapack.largest_pairs(matrix, 5),
    "least_squares": lambda matrix: lapack.least_squares(matrix, matrix[0]),
    "column_basis": lambda matrix: lapack.column_basis(matrix, 1e-9),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_long_call_is_left_when_the_flag_goes_up(monkeypatch, name):
    monkeypatch.setattr(threads, "POLL_SECONDS", 1e-4)
    with pytest.raises(stop.Stopped), stop.stopping(lambda: True):
        CALLS[name](_definite(1500))


@pytest.mark.parametrize("name", CALLS)
def test_another_thread_works_during_a_call(monkeypatch, name):
    beats, ended, counts = [], threading.Event(), []

    def heart():
        while not ended.wait(1e-4):
            beats.append(1)

    def counted(function, order):
        before, found = len(beats), function()
        counts.append(len(beats) - before)
        return found

    monkeypatch.setattr(lapack, "interruptible_call", counted)
    thread = threading.Thread(target=heart)
    thread.start()
    try:
        while len(counts) < 5 and max(counts, default=0) <= 10:  # a busy machine may leave the thread no turn
            CALLS[name](_definite(1500))
    finally:
        ended.set()
        thread.join()
    assert max(counts) > 10  # one that waits for the lock beats once or twice


@pytest.mark.parametrize(("rows", "columns", "rank"), [(1, 1, 1), (5, 9, 3), (9, 5, 5), (7, 7, 0), (1100, 40, 30)])
def test_a_basis_of_columns_spans_them_all(rows, columns, rank):
    random = np.random.default_rng(2)
    matrix = random.normal(size=(rows, rank)) @ random.normal(size=(rank, columns))
    q, r, chosen = lapack.column_basis(matrix, 1e-9)
    assert q.shape == (rows, rank)
    np.testing.assert_allclose(q.T @ q, np.eye(rank), atol=1e-12)
    np.testing.assert_allclose(q @ r, matrix[:, chosen], atol=1e-11)
    np.testing.assert_allclose(q @ (q.T @ matrix), matrix, atol=1e-10)
    assert lapack.column_basis(np.empty((rows, 0)), 1e-9)[0].shape == (rows, 0)
