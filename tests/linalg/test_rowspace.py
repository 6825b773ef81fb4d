"""Problems, dual repair and certificates ask the row space for everything of the length of the rows."""

from dataclasses import replace

import numpy as np
import pytest

import empirisk as er
from empirisk import losses, penalties
from empirisk.certificate import Proof
from empirisk.dual import feasible
from empirisk.linalg.design import DenseDesign, Design, design_of, make_design
from empirisk.linalg.rowspace import MemoryRows, RowSpace
from empirisk.problem import Problem

random = np.random.default_rng(0)
ROWS, X = 90, random.normal(size=(90, 4))


class Pieces:
    """A row vector in three pieces; it can do nothing by itself."""

    def __init__(self, pieces):
        self.pieces = list(pieces)


def cut(array):
    return Pieces(np.array_split(np.asarray(array), 3))


class PiecesOfRows(RowSpace):
    """Row vectors that are no arrays, as those on a device, on disk or on workers are none."""

    def sum(self, function, *vectors, width=1):
        return sum(function(*parts) for parts in zip(*(vector.pieces for vector in vectors), strict=True))

    def map(self, function, *vectors, width=1):
        return Pieces(function(*parts) for parts in zip(*(vector.pieces for vector in vectors), strict=True))

    def constant(self, value):
        return cut(np.full((self.count, *np.shape(value)), value))

    def extremes(self, vector):
        return min(part.min() for part in vector.pieces), max(part.max() for part in vector.pieces)

    def gathered(self, vector):
        return np.concatenate(vector.pieces)

    def scattered(self, array):
        return cut(array)


class DesignOfPieces(Design):
    def __init__(self, table):
        self.X, self.parts = DenseDesign(table.array), cut(table.array).pieces
        self.shape = table.array.shape

    @property
    def rowspace(self):
        return PiecesOfRows(self.shape[0])

    def dot(self, w):
        return Pieces(part @ w for part in self.parts)

    def predict(self, w, b):
        return Pieces(part @ w + b for part in self.parts)

    def tdot(self, u):
        return sum(part.T @ entries for part, entries in zip(self.parts, u.pieces, strict=True))

    def squared_columns(self, weights=None):
        return self.X.squared_columns(weights)


class Table:
    """A kind of data of its own."""

    def __init__(self, array):
        self.array = array


@pytest.fixture
def registered():
    make_design.register(Table, DesignOfPieces)
    yield
    make_design.register(Table, make_design.dispatch(object))


def problem_of(loss, penalty, intercept):
    loss = losses.find(loss)
    scores = X @ random.normal(size=4) + random.normal(size=ROWS)
    y = np.digitize(scores, [-1, 1]).astype(float) if loss.joint else scores
    y = np.where(scores > 0, 1.0, -1.0) if loss.margin_form else np.abs(y) if loss.positive else y
    weights = random.uniform(0.5, 2.0, ROWS)
    return Problem(loss, penalties.find(penalty), 0.3, DenseDesign(X), y, weights, intercept, 3 * loss.joint)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("loss", ["squared", "absolute", "logistic", "hinge", "poisson", "softmax", "crammer_singer"])
def test_certificates_of_rows_that_are_no_arrays(loss, penalty, intercept):
    memory = problem_of(loss, penalty, intercept)
    elsewhere = replace(memory, design=DesignOfPieces(Table(X)), y=cut(memory.y), weights=cut(memory.weights))
    fit = er.solve(memory)
    for point in (fit.point, replace(fit.point, u=None)):
        there = point if point.u is None else replace(point, u=cut(point.u))
        mine, theirs = Proof(memory, point), Proof(elsewhere, there)
        assert theirs.certificate.primal == pytest.approx(mine.certificate.primal, rel=1e-12)
        assert theirs.certificate.gap == pytest.approx(mine.certificate.gap, rel=1e-6, abs=1e-9)
        assert theirs.with_rounding().gap == pytest.approx(mine.with_rounding().gap, rel=1e-6, abs=1e-9)
    # Beside the corner that the best constant lies at, slopes depend on its rounding.
    smooth = () if memory.loss.corners or memory.loss.joint else ("critical_C",)
    for name in ("origin_value", "conjugates_at_zero", *smooth):
        assert getattr(elsewhere, name) == pytest.approx(getattr(memory, name), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_dual_points_are_repaired_where_they_lie(loss):
    memory = problem_of(loss, "l2", True)
    elsewhere = replace(memory, design=DesignOfPieces(Table(X)), y=cut(memory.y), weights=cut(memory.weights))
    for u in (random.normal(size=ROWS), np.full(ROWS, 5.0)):  # the second is found by bisection
        mine, theirs = feasible(memory, u), feasible(elsewhere, cut(u))
        np.testing.assert_allclose(np.concatenate(theirs[0].pieces), mine[0], atol=1e-9)
        np.testing.assert_allclose(theirs[1], mine[1], atol=1e-8)


def test_what_follows_from_sums_and_maps_is_what_memory_gives():
    mine, theirs = MemoryRows(ROWS), PiecesOfRows(ROWS)
    u, v, K = random.normal(size=ROWS), random.normal(size=ROWS), random.normal(size=(ROWS, 3))
    y, weights = random.integers(0, 3, ROWS).astype(float), random.uniform(1.0, 2.0, ROWS)
    for name, vectors in {"total": (K,), "norm": (K,), "column_norms": (K,), "dot": (u, v)}.items():
        found = getattr(theirs, name)(*map(cut, vectors))
        np.testing.assert_allclose(found, getattr(mine, name)(*vectors), rtol=1e-12)
    np.testing.assert_allclose(theirs.class_weights(cut(y), cut(weights), 4), mine.class_weights(y, weights, 4))
    for loss in (losses.Squared(), losses.Huber(0.3), losses.Absolute()):
        assert theirs.best_constant(loss, cut(u), cut(weights)) == pytest.approx(
            mine.best_constant(loss, u, weights), rel=1e-9
        )
    moved = np.concatenate(theirs.add_at_largest(cut(u), cut(v), 2.0).pieces)
    np.testing.assert_allclose(moved, mine.add_at_largest(u.copy(), v, 2.0))


def test_a_registered_kind_of_data_reaches_its_design(registered):
    assert isinstance(design_of(Table(X)), DesignOfPieces)
    with pytest.raises(TypeError, match="no kind of data"):
        design_of(object())
    assert design_of(design := DenseDesign(X)) is design


def test_a_machine_takes_a_registered_kind():
    class Wrapped:
        def __init__(self, array):
            self.array = array

    make_design.register(Wrapped, lambda table: DenseDesign(table.array))
    y = X @ np.arange(4.0) + 1
    found, expected = er.Ridge(C=2.0).fit(Wrapped(X), y), er.Ridge(C=2.0).fit(X, y)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.n_features_in_ == 4
