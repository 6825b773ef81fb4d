"""One interface for dense, shifted and sparse data: every product is that of the plain matrix."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from empirisk.linalg.blocks import groups
from empirisk.linalg.design import DenseDesign, SparseDesign, design_of
from empirisk.settings import config
from empirisk.stop import Stopped, stopping


def designs():
    random = np.random.default_rng(0)
    X = random.normal(size=(700, 40)) + 3
    shift = random.normal(size=40)
    thin = X * (random.random(X.shape) < 0.2)
    with_duplicates = sparse.csr_matrix((np.ones(4), np.array([1, 1, 0, 2]), np.array([0, 3, 4])), shape=(2, 3))
    return {
        "dense": (DenseDesign(X), X),
        "fortran": (DenseDesign(np.asfortranarray(X)), X),
        "single": (DenseDesign(X.astype(np.float32)), X.astype(np.float32).astype(float)),
        "shifted": (DenseDesign(X, shift), X - shift),
        "wide": (DenseDesign(np.asfortranarray(X.T), X[:, 0]), X.T - X[:, 0]),
        "csr": (SparseDesign(sparse.csr_matrix(thin)), thin),
        "csc": (SparseDesign(sparse.csc_array(thin)), thin),
        "duplicate entries": (SparseDesign(with_duplicates), with_duplicates.toarray()),
    }


@pytest.mark.parametrize("name", designs())
def test_products_are_those_of_the_matrix(name):
    design, A = designs()[name]
    n, d = A.shape
    random = np.random.default_rng(1)
    w, W, u, U = random.normal(size=d), random.normal(size=(d, 3)), random.normal(size=n), random.normal(size=(n, 3))
    rows, columns = random.random(n) * (random.random(n) < 0.7), random.random(d)
    close = {"rtol": 1e-5 if name == "single" else 1e-10, "atol": 1e-3 if name == "single" else 1e-9}
    np.testing.assert_allclose(design.dot(w), A @ w, **close)
    np.testing.assert_allclose(design.dot(W), A @ W, **close)
    np.testing.assert_allclose(design.tdot(u), A.T @ u, **close)
    np.testing.assert_allclose(design.tdot(U), A.T @ U, **close)
    few = np.where(np.arange(d) % 20 == 1, w, 0.0)
    np.testing.assert_allclose(design.dot(few), A @ few, **close)
    f, slopes, correlations = design.predict_and_correlate(w, 0.5, lambda u, f: np.tanh(0.1 * f) * u, u)
    expected = np.tanh(0.1 * (A @ w + 0.5)) * u
    for found, right in ((f, A @ w + 0.5), (slopes, expected), (correlations, A.T @ expected)):
        np.testing.assert_allclose(found, right, **close)
    np.testing.assert_allclose(design.gram(), A.T @ A, **close)
    np.testing.assert_allclose(design.gram(rows), A.T @ (rows[:, None] * A), **close)
    few = np.where(np.arange(n) % 5 == 0, rows, 0.0)
    np.testing.assert_allclose(design.gram(few), A.T @ (few[:, None] * A), **close)
    np.testing.assert_allclose(design.outer(), A @ A.T, **close)
    np.testing.assert_allclose(design.outer(columns), (A * columns) @ A.T, **close)
    np.testing.assert_allclose(design.row_products, A @ A.T, **close)
    np.testing.assert_allclose(design.squared_columns(rows), (rows[:, None] * A**2).sum(axis=0), **close)
    np.testing.assert_allclose(design.squared_rows(), (A**2).sum(axis=1), **close)
    chosen = np.array([d - 1, 0])
    np.testing.assert_allclose(design.columns(chosen), A[:, chosen], **close)
    part = np.arange(0, n, 2)
    np.testing.assert_allclose(design.rows(part).dot(w), A[part] @ w, **close)


def test_centring_shifts_dense_data_only():
    X = np.arange(12.0).reshape(4, 3)
    np.testing.assert_allclose(design_of(X, centre=True).tdot(np.ones(4)), 0, atol=1e-12)
    assert design_of(X, centre=False).shift is None
    constant = np.column_stack([np.full(7, 0.1), np.arange(7.0)])
    np.testing.assert_array_equal(design_of(constant, centre=True).columns(np.array([0])), 0.0)
    assert design_of(sparse.csr_matrix(X), centre=True).shift is None


def test_blocks_do_not_depend_on_threads():
    for threads in (1, 2, 7):
        with config(threads=threads):
            parts = groups(10_000, 800)
    assert parts == groups(10_000, 800)
    flat = [block for group in parts for block in group]
    assert flat[0].start == 0
    assert flat[-1].stop == 10_000
    assert all(a.stop == b.start for a, b in pairwise(flat))


@pytest.mark.parametrize("used", [0, 1, 20])
@pytest.mark.parametrize("kind", ["as it is", "centred", "sparse and shifted"])
def test_sizes_of_terms_are_those_of_the_columns(used, kind):
    random = np.random.default_rng(0)
    X, w = random.normal(size=(30, 32)) + 5.0, np.zeros(32)
    X[:, 0] = 3.0
    w[:used] = random.normal(size=used)
    design = {
        "as it is": DenseDesign(X),
        "centred": DenseDesign(X).centred(),
        "sparse and shifted": SparseDesign(sparse.csr_matrix(X)).shifted(X.mean(axis=0)),
    }[kind]
    shown = X if kind == "as it is" else X - X.mean(axis=0)
    assert design.term_sizes(w) == pytest.approx(np.linalg.norm(shown, axis=0) @ np.abs(w), rel=1e-7, abs=1e-6)


@pytest.mark.parametrize("product", ["gram", "outer"])
def test_sparse_products_look_at_the_flag_between_pieces_that_change_no_bit(product, monkeypatch):
    dense = sparse.random(60, 40, 0.3, random_state=0).toarray()
    dense[7] = 0.0
    make = getattr(SparseDesign(sparse.csr_matrix(dense)), product)
    whole = make()
    np.testing.assert_allclose(whole, dense.T @ dense if product == "gram" else dense @ dense.T, atol=1e-12)
    for name, value in {"PRODUCTS": 100, "FRESH": 100, "STRIP": 16}.items():
        monkeypatch.setattr(f"empirisk.linalg.design.{name}", value)
    looks = []
    with stopping(lambda: looks.append(0) is not None):
        np.testing.assert_array_equal(make(), whole)
    assert len(looks) > 40
    left = iter(range(len(looks)))
    with pytest.raises(Stopped), stopping(lambda: next(left) > 20):
        make()
